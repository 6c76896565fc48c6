"""What would the slow, obvious program give?"""

import gzip
import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import numpy as np


class PlainCorpus(NamedTuple):
    """A corpus as plain lists; documents are the numbers of the sentences that start one."""

    lexicon: list[str]
    counts: list[int]
    train: list[list[str]]
    train_documents: list[int]
    held_out: list[list[str]]
    held_out_documents: list[int]


def plain_corpus(train: Sequence[Path], held_out: Sequence[Path], min_count: int) -> PlainCorpus:
    """What data_scripts.build_corpus has to make of the files."""
    splits, documents = [], []
    for files in (train, held_out):
        sentences: list[list[str]] = []
        starts: list[int] = []
        for file in files:
            data = file.read_bytes()
            text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
            new = True
            for line in text.split("\n"):
                if line.split():
                    starts += [len(sentences)] if new else []
                    sentences.append(line.split())
                new = not line.split()
        splits.append(sentences)
        documents.append(starts)
    counts = Counter(word for sentence in splits[0] for word in ["<s>", *sentence, "</s>"])
    for sentence in splits[1]:
        counts.update(dict.fromkeys(sentence, 0))
    if min_count > 1:
        rare = {word for word, times in counts.items() if times < min_count and word not in ("<s>", "</s>", "<unk>")}
        counts["<unk>"] += sum(counts.pop(word) for word in rare)
        splits = [[["<unk>" if word in rare else word for word in row] for row in rows] for rows in splits]
    lexicon = sorted(counts, key=lambda word: (-counts[word], word))
    return PlainCorpus(lexicon, [counts[word] for word in lexicon], splits[0], documents[0], splits[1], documents[1])


# downstream


def scalar_mix(states: np.ndarray, weights: np.ndarray, gamma: float) -> np.ndarray:
    """Peters et al. (2018), equation 1: states [L + 1, n, W], weights [L + 1] before the softmax → [n, W]."""
    shares = np.exp(weights) / np.exp(weights).sum()
    return gamma * sum(share * layer for share, layer in zip(shares, states, strict=True))


def crf_path_score(logits: np.ndarray, transitions: np.ndarray, path: Sequence[int]) -> float:
    """The score of one path under a linear-chain CRF without start and end scores; logits [T, K]."""
    score = sum(logits[step, tag] for step, tag in enumerate(path))
    return float(score + sum(transitions[before, after] for before, after in pairwise(path)))


def crf_negative_log_likelihood(logits: np.ndarray, transitions: np.ndarray, path: Sequence[int]) -> float:
    """−log of the path's share among all paths, each of which is enumerated; logits [T, K]."""
    steps, tags = logits.shape
    scores = [crf_path_score(logits, transitions, other) for other in product(range(tags), repeat=steps)]
    return math.log(sum(math.exp(score) for score in scores)) - crf_path_score(logits, transitions, path)


def conlleval_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Entity F1 in percent, by the rules of conlleval: an entity is its type, its first and its last word."""

    def entities(sentences: Sequence[Sequence[str]]) -> set[tuple[int, int, int, str]]:
        found = set()
        for number, tags in enumerate(sentences):
            begin = 0
            for end, tag in enumerate(tags):
                before = tags[end - 1] if end else "O"
                if tag.startswith("B") or before[2:] != tag[2:]:
                    begin = end  # an I that follows O or another type begins an entity, too
                after = tags[end + 1] if end + 1 < len(tags) else "O"
                if tag != "O" and (not after.startswith("I") or after[2:] != tag[2:]):
                    found.add((number, begin, end, tag[2:]))
        return found

    wanted, given = entities(gold), entities(predicted)
    right = len(wanted & given)
    return 100 * 2 * right / (len(wanted) + len(given)) if right else 0.0
