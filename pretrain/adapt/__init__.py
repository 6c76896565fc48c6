"""Adapting: a trained model goes on with new text, without forgetting the old."""
