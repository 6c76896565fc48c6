"""Run: its directory, what it records there and prints, and how it is asked to stop."""
