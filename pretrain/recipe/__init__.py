"""The recipe: from text to a model by one command."""
