"""Kernels of the fused recurrence: matrix products, and what is computed between them."""
