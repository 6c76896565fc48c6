"""Random damage to every kind of file that is read."""
