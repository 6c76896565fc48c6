"""What compact vectors are worth, in words: their error, and how codes are used."""

from collections.abc import Sequence

import numpy as np

from elmoc.word_vectors.sources import WordVectors

# Words whose neighbours are looked for, among this number of the most frequent words.
ASKED, NEIGHBOURS_AMONG = 500, 20_000


def reconstruction(words: Sequence[str], rows: np.ndarray, vectors: WordVectors) -> str:
    """How far the vectors of words are from rows float32 [n, E]: what a file that was written gives."""
    found = vectors.lookup(words)
    squares, of_rows, centred = (
        np.square(each).sum(axis=1, dtype=np.float64) for each in (rows - found, rows, rows - rows.mean(axis=0))
    )
    lengths = np.sqrt(of_rows) * np.linalg.norm(found, axis=1)
    cosine = np.mean((rows * found).sum(axis=1) / np.maximum(lengths, 1e-30))
    return (
        f"loss ‖e − ẽ‖² {squares.mean():.4g} (‖e‖² {of_rows.mean():.4g}, around their mean {centred.mean():.4g}), "
        f"distance {np.sqrt(squares).mean():.4g}, cosine {cosine:.4f}"
    )


def balance(codes: np.ndarray, entries: int) -> str:
    """The share of words that a codeword has (Figure 3 of Shu and Nakayama 2018), its entropy, and unused codewords."""
    shares = np.stack([np.bincount(column, minlength=entries) for column in codes.T]) / len(codes)  # [M, K]
    bits = -(shares * np.log2(shares, out=np.zeros_like(shares), where=shares > 0)).sum(axis=1).mean()
    return (
        f"share of words a codeword: {shares.min():.2%} to {shares.max():.1%}; {bits:.2f} of {np.log2(entries):.2f} "
        f"bits a codebook; unused codewords: {(shares == 0).sum():,} of {shares.size:,}"
    )


def shared_codes(rows: np.ndarray, codes: np.ndarray) -> str:
    """How many of its M codes a word shares with its nearest neighbour by cosine, beside any other word."""
    rows, codes = rows[:NEIGHBOURS_AMONG] - rows.mean(axis=0), codes[:NEIGHBOURS_AMONG]
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    asked = np.linspace(0, len(rows) - 1, min(ASKED, len(rows))).astype(int)
    cosines = rows[asked] @ rows.T
    cosines[np.arange(len(asked)), asked] = -1
    same, other = ((codes[asked] == codes[those]).mean() for those in (cosines.argmax(axis=1), np.roll(asked, 1)))
    _, members, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    text = f"codes shared with the nearest word: {same:.1%}, with another one: {other:.1%}"
    return f"{text}; words with the whole code of another: {(counts[members] > 1).mean():.1%}"
