"""Encoders: from the vectors of a window to layer states, one direction at a time."""
