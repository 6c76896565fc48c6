"""Text as sentences of words: which files hold it, and what is said twice."""
