"""Benchmark: what users wait for, measured in one run by `python -m elmoc.benchmark`."""
