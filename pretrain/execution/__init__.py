"""Execution of updates: the device and precision of a run, and CUDA graphs."""
