"""Version of elmoc, which the build reads from here."""

VERSION = "0.1.0"
