"""Several processes: who trains what, and how values travel between them."""
