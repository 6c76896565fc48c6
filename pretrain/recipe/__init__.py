"""Recipe: from tokenised text to a model directory, by the commands of a user one after the other."""
