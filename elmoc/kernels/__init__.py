"""Kernels of the fused recurrence: matrix multiplication, and what an LSTM step computes between them."""
