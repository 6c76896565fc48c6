"""Quickstart: every step from raw text to a score, once, on small real text."""
