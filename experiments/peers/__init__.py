"""Peers: what people would train instead, for a given time on the same text, and their
features for the same probes.
"""
