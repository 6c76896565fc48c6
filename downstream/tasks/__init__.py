"""Tasks: a reader, a model and a metric each."""
