"""Probes: what every task shares, from the command line to the saved probe."""
