"""Readers of task data."""
