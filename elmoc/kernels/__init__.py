"""Kernels of the fused recurrence and of inference, and how they are compiled."""
