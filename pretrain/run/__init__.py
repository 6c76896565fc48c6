"""Run: its directory, what it records, its clock, and how it is asked to stop."""
