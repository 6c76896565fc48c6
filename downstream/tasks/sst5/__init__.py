"""Sentiment in five classes."""
