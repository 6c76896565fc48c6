"""Experiments: plain scripts that measure speed and compare with the papers and with
what people train instead.
"""
