"""Tests: a package of its own name, which others that install one (flair does) would otherwise hide."""
