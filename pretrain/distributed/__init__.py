"""Several processes: what each of them trains, and how values travel between them."""
