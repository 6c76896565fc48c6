"""Text as sentences of words: what is said twice."""
