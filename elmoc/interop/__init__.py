"""Interop: models and layer states as other libraries have them."""
