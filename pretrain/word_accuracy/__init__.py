"""Word accuracy of models that read subwords: how often a whole word is found among the most frequent words."""
