"""Probes: what are features worth on a task?"""
