"""What compact vectors are worth, in words: their error, and how codes are used."""

from collections.abc import Sequence

import numpy as np

from elmoc.word_vectors.sources import WordVectors

# Words whose neighbours are looked for, among this number of the most frequent words.
ASKED, NEIGHBOURS_AMONG = 500, 20_000


def reconstruction(words: Sequence[str], rows: np.ndarray, vectors: WordVectors) -> str:
    """How far the vectors of words are from rows float32 [n, E]: what a file that was written gives."""
    found = vectors.lookup(words)
    squares = np.square(rows - found).sum(axis=1, dtype=np.float64)
    of_rows = np.square(rows).sum(axis=1, dtype=np.float64)
    centred = np.square(rows - rows.mean(axis=0)).sum(axis=1, dtype=np.float64)
    lengths = np.sqrt(of_rows) * np.linalg.norm(found, axis=1)
    cosine = float(np.mean((rows * found).sum(axis=1) / np.maximum(lengths, 1e-30)))
    return (
        f"loss ‖e − ẽ‖² {squares.mean():.4g} (‖e‖² {of_rows.mean():.4g}, around their mean {centred.mean():.4g}), "
        f"distance {np.sqrt(squares).mean():.4g}, cosine {cosine:.4f}"
    )


def usage(codes: np.ndarray, entries: int) -> np.ndarray:
    """float64 [M, K]: the share of words with each codeword, from codes [n, M] (Figure 3 of Shu and Nakayama 2018)."""
    return np.stack([np.bincount(column, minlength=entries) for column in codes.T]) / len(codes)


def balance(codes: np.ndarray, entries: int) -> str:
    """The largest and smallest share of words that a codeword has, their entropy, and how many no word has."""
    shares = usage(codes, entries)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    bits = -(shares * logs).sum(axis=1).mean()
    return (
        f"share of words a codeword: {shares.min():.2%} to {shares.max():.1%}; {bits:.2f} of {np.log2(entries):.2f} "
        f"bits a codebook; unused codewords: {(shares == 0).sum():,} of {shares.size:,}"
    )


def shared_codes(words: Sequence[str], rows: np.ndarray, codes: np.ndarray) -> str:
    """How many of its M codes a word shares with its nearest neighbour by cosine, beside any other word; examples."""
    rows, codes = rows[:NEIGHBOURS_AMONG], codes[:NEIGHBOURS_AMONG]
    centred = rows - rows.mean(axis=0)
    centred = centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-30)
    asked = np.linspace(0, len(rows) - 1, min(ASKED, len(rows))).astype(int)
    cosines = centred[asked] @ centred.T
    cosines[np.arange(len(asked)), asked] = -1
    nearest = cosines.argmax(axis=1)
    same, other = ((codes[asked] == codes[those]).mean() for those in (nearest, np.roll(asked, 1)))
    _, members, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    together = [
        " ".join(words[row] for row in np.flatnonzero(members == code)[:8])
        for code in np.argsort(-counts, kind="stable")[:3]
        if counts[code] > 1
    ]
    text = f"codes shared with the nearest word: {same:.1%}, with another one: {other:.1%}"
    whole = (counts[members] > 1).mean()
    return (
        f"{text}; words with the whole code of another: {whole:.1%}{''.join(f'{chr(10)}  {each}' for each in together)}"
    )
