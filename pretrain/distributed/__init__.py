"""Several processes: who trains what, and how they agree."""
