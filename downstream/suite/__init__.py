"""Suites: many probes for one encoder, run side by side, and one figure of merit at the
end.
"""
