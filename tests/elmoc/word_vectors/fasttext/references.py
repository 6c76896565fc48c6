"""A slow, obvious twin of the look-up of fastText vectors: words and n-grams one after another."""

import struct
from collections.abc import Sequence

import numpy as np


def fnv(data: bytes) -> int:
    """FNV-1a, which takes its bytes for signed in fastText."""
    value = 2166136261
    for byte in data:
        value = ((value ^ ((byte - 256 if byte > 127 else byte) & 0xFFFFFFFF)) * 16777619) & 0xFFFFFFFF
    return value


def slow_vectors(content: bytes, words: Sequence[bytes]) -> np.ndarray:
    """float32 [n, E] from the bytes of a file; a label has zeros."""
    (dim,), (bucket, shortest, longest) = struct.unpack_from("<i", content, 8), struct.unpack_from("<3i", content, 40)
    if struct.unpack_from("<i", content, 4)[0] == 11 and struct.unpack_from("<i", content, 36)[0] == 3:
        longest = 0  # the classifiers of version 11 have no n-grams
    entries, number_of_words = struct.unpack_from("<2i", content, 64)
    dictionary: dict[bytes, int] = {}
    position = 92
    for number in range(entries):
        end = content.index(b"\0", position)
        dictionary[content[position:end]] = number  # of those that are there twice the last
        position = end + 10
    rows = np.frombuffer(content, np.uint8, offset=position + 17)[: 4 * dim * (number_of_words + bucket)]
    matrix = np.frombuffer(rows.tobytes(), np.float32).reshape(-1, dim)
    vectors = np.zeros((len(words), dim), np.float32)
    for vector, word in zip(vectors, words, strict=True):
        own = dictionary.get(word, -1)
        if own >= number_of_words:
            continue
        numbers = [own] if own >= 0 else []
        if word != b"</s>":
            grams = ngrams(b"<" + word + b">", max(1, shortest), longest)
            numbers += [number_of_words + fnv(gram) % bucket for gram in grams]
        for number in numbers:
            vector += matrix[number]
        if numbers:
            vector *= np.float32(1.0 / len(numbers))
    return vectors


def ngrams(text: bytes, shortest: int, longest: int) -> list[bytes]:
    """The n-grams of a word between `<` and `>`, in fastText's order; a character begins at every byte but 10xxxxxx."""
    begins = [place for place, byte in enumerate(text) if byte & 0xC0 != 0x80]
    ends = [*begins[1:], len(text)]
    found = []
    for first, begin in enumerate(begins):
        for length, end in enumerate(ends[first : first + longest], 1):
            if length >= shortest and not (length == 1 and (begin == 0 or end == len(text))):
                found.append(text[begin:end])
    return found
