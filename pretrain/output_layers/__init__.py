"""Output layers: what an encoder is trained against."""
