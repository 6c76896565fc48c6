"""Results of many runs, gathered into one table."""
