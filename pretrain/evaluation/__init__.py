"""Evaluation on held-out text."""
