"""Results of many runs: their file, how they compare, and the table of them."""
