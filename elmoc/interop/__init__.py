"""Interop: what lets an `ElmoC` take the place of other tools' models, and theirs that of an `ElmoC`."""
