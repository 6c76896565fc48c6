"""Sentiment in two classes."""
