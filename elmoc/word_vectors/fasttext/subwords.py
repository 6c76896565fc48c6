"""FastText vectors by NumPy: which rows of the input matrix a word is made of, and their mean.

A word's vector is the mean of its own row, where the dictionary has it, and of the rows of its character n-grams
(Bojanowski et al. 2017, Section 3.2). N-grams are hashed into buckets; their characters are those of UTF-8. Vectors are
equal to the library's bit for bit: rows are added in its order, in float32, from zero.

Texts are words in UTF-8, one behind another, each between `<` and `>`, which n-grams count as characters.
"""

from dataclasses import dataclass

import numpy as np

from elmoc.word_vectors.fasttext.file import FastTextFile, Header

BASIS, _PRIME = 2166136261, 16777619  # of FNV-1a, which takes its bytes for signed here
_FEW = 32  # strings: so few are faster one after another
_BLOCK_NUMBERS = 1 << 20


def hash_strings(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """uint32 [n]: fastText's hashes of the strings that lie in `data` (uint8) at these places."""
    longest_first = np.argsort(-lengths, kind="stable")
    places, negated = starts[longest_first], -lengths[longest_first]
    hashes = np.full(len(starts), BASIS, dtype=np.uint32)
    step, more = 0, len(starts)
    while (more := int(np.searchsorted(negated[:more], -step))) > _FEW:  # the strings that are longer than `step`
        hashes[:more] = _folded(hashes[:more], data[places[:more] + step])
        step += 1
    for row in range(more):
        rest = data[int(places[row]) + step : int(places[row]) - int(negated[row])]
        hashes[row] = _hash_bytes(rest.tobytes(), int(hashes[row]))
    result = np.empty_like(hashes)
    result[longest_first] = hashes
    return result


def _folded(hashes: np.ndarray, data: np.ndarray) -> np.ndarray:
    """uint32 [n]: the hashes of strings, from the hashes of all but their last byte."""
    return (hashes ^ data.view(np.int8).astype(np.uint32)) * np.uint32(_PRIME)


def _hash_bytes(data: bytes, value: int) -> int:
    for byte in data:
        value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * _PRIME) & 0xFFFFFFFF
    return value


@dataclass(frozen=True)
class _Characters:
    """The characters of a text: where each begins, the word that it is of, and its place in that."""

    data: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    words: np.ndarray
    first: np.ndarray
    followed: np.ndarray

    @classmethod
    def of(cls, text: bytes, ends: np.ndarray) -> "_Characters":
        data = np.frombuffer(text, np.uint8)
        begins = np.flatnonzero((data & 0xC0) != 0x80)
        words = np.searchsorted(ends, begins, side="right")
        new = np.diff(words, prepend=-1, append=len(ends)) > 0
        return cls(data, begins, np.append(begins[1:], len(data)), words, new[:-1], ~new[1:])


def add_vectors(
    file: FastTextFile, text: bytes, ends: np.ndarray, own: np.ndarray, divided: np.ndarray, vectors: np.ndarray
) -> None:
    """Add the vectors of words to `vectors`, which are zeros.

    text     the words, as above
    ends     int64 [n]: where each ends in `text`
    own      int64 [n]: the row of each word itself, −1 where it has none
    divided  bool [n]: whether it has n-grams
    vectors  float32 [n, E]
    """
    characters = _Characters.of(text, ends)
    counts = np.zeros(len(ends), dtype=np.int64)
    rows = _rows_of(file)
    block = max(64, _BLOCK_NUMBERS // max(file.header.dim, 8 * file.header.maxn))
    for start in range(0, len(characters.begins), block):
        here = np.arange(start, min(start + block, len(characters.begins)))
        numbers, there = _row_numbers(file.header, characters, here, own, divided)
        words = characters.words[here].repeat(there.sum(axis=1))
        counts += np.bincount(words, minlength=len(ends))
        _add_rows(rows, numbers[there], words, vectors)
    some = counts > 0
    vectors[some] *= (1.0 / counts[some]).astype(np.float32)[:, None]


def _rows_of(file: FastTextFile) -> np.ndarray:
    """The input matrix as one void a row: its floats may lie at any byte, which arrays of floats cannot take."""
    header = file.header
    return np.frombuffer(file.content, f"V{4 * header.dim}", count=header.inputs, offset=file.input_start)


def _row_numbers(
    header: Header, characters: _Characters, here: np.ndarray, own: np.ndarray, divided: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The rows that begin at characters, int64 [characters, 1 + n-grams], and where there is one.

    The first column is the row of the word itself, at its first character.
    """
    words, first = characters.words[here], characters.first[here]
    columns, there = [own[words]], [first & (own[words] >= 0)]
    hashes = np.full(len(here), BASIS, dtype=np.uint32)
    last, inside = here, divided[words]
    for length in range(1, header.maxn + 1):
        begins, ends = characters.begins[last], characters.ends[last]
        for byte in range(int((ends - begins).max())):
            more = begins + byte < ends
            hashes[more] = _folded(hashes[more], characters.data[begins[more] + byte])
        if length >= header.shortest:
            columns.append(header.words + (hashes % np.uint32(header.bucket)).astype(np.int64))
            there.append(inside & ~first & characters.followed[last] if length == 1 else inside)  # no < or > alone
        inside = inside & characters.followed[last]
        last = np.minimum(last + 1, len(characters.begins) - 1)
    return np.stack(columns, axis=1), np.stack(there, axis=1)


def _add_rows(rows: np.ndarray, numbers: np.ndarray, of: np.ndarray, vectors: np.ndarray) -> None:
    """Add rows to the vectors of words: `of` (ascending) says to which; those of one word in their order."""
    words, starts, counts = np.unique(of, return_index=True, return_counts=True)
    most_first = np.argsort(-counts, kind="stable")
    words, starts, negated = words[most_first], starts[most_first], -counts[most_first]
    sums = vectors[words]
    active = len(words)
    for step in range(int(counts.max(initial=0))):
        active = int(np.searchsorted(negated[:active], -step))  # the words that have more rows
        sums[:active] += rows.take(numbers[starts[:active] + step]).view("<f4").reshape(active, -1)
    vectors[words] = sums
