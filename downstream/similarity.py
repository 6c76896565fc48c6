"""The command `python -m downstream similarity`: do word vectors, or layers, rank pairs
of words as people do?

python -m downstream similarity VECTORS|MODEL FILES…

Of an encoder layer 0, its input projection, is a word vector: it does not depend on the
words around.
"""

import argparse
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from downstream.printing import Column, Table, say, text_table
from elmoc.errors import InputError, shortened
from elmoc.files.compression import unpacked_name
from elmoc.files.text import read_lines
from elmoc.model import ElmoC
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.subwords import SubwordVectors

# Parts of speech, which may stand between words and score.
PARTS_OF_SPEECH = ("A", "J", "N", "R", "V")

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")
_TAGGED = re.compile(r".+-[ajnrv]")


@dataclass(frozen=True)
class WordPairs:
    """Pairs of words of a file, and how similar people found them: scores [N], higher
    is more similar.
    """

    name: str
    pairs: Sequence[tuple[str, str]]
    scores: np.ndarray


def run_similarity(arguments: Sequence[str]) -> None:
    """`python -m downstream similarity …`."""
    parser = argparse.ArgumentParser(
        prog="python -m downstream similarity",
        description="Correlate the cosines of words with human judgements of their similarity (Spearman's ρ), over the "
        "pairs whose words both have a vector. Of a model, these are its word vectors, and layer 0, which reads each "
        "word by itself.",
    )
    text = "FILE.bin, FILE.vec, FILE.txt, FILE.safetensors or random:SEED:SIZE; or a model or run directory"
    parser.add_argument("source", metavar="VECTORS|MODEL", help=text)
    text = "two words and a score a line, or SimLex, WordSim, MEN as they are (plain or .gz)"
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help=text)
    options = parser.parse_args(arguments)
    files = [read_pairs(path) for path in options.files]
    words = list(
        dict.fromkeys(word for file in files for pair in file.pairs for word in pair)
    )
    vectors = vectors_of(options.source, words)
    correlations = {
        name: [
            correlation(file, dict(zip(words, found, strict=True))) for file in files
        ]
        for name, found in vectors.items()
    }
    columns = [
        Column("pairs of words", [file.name for file in files]),
        Column("pairs", [f"{len(file.pairs):,}" for file in files], right=True),
        Column(
            "found",
            [f"{found:,}" for _, found in next(iter(correlations.values()))],
            right=True,
        ),
    ]
    for name, values in correlations.items():
        columns.append(
            Column(
                name,
                ["–" if math.isnan(rho) else f"{100 * rho:.1f}" for rho, _ in values],
                right=True,
            )
        )
    title = f"Spearman's ρ × 100 of cosines and human judgements: {options.source}"
    say(text_table(Table(title, columns)))


def read_pairs(path: Path) -> WordPairs:
    """Pairs of words and their scores; an `InputError` for the first line that is
    something else.

    Cells are separated by tabs, commas, semicolons or spaces. These files are read as
    they are handed out:

    | file | a line | what else |
    |---|---|---|
    | WordSim-353, MTurk, RG-65 and others | word, word, score | a heading; comments
    (#); scores of each judge |
    | SimLex-999, SimVerb-3500 | word, word, part of speech, score | a heading; other
    figures |
    | MEN | word-n, word-n, score | a part of speech after each word |
    """
    pairs = []
    scores = []
    heading = ""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        separator = next((each for each in "\t,;" if line.count(each) >= 2), None)
        cells = [cell.strip().strip('"') for cell in line.split(separator)]
        score = "".join(
            cells[3:4] if "".join(cells[2:3]) in PARTS_OF_SPEECH else cells[2:3]
        )
        if _NUMBER.fullmatch(score):
            pairs.append((cells[0], cells[1]))
            scores.append(float(score))
        elif pairs or heading or len(cells) < 3:
            needed = "two words and a score are needed, with nothing but a part of speech between them"
            raise InputError(f"{path}, line {number}: {needed}")
        else:
            heading = line
            say(
                f"{path}: its first line is read as a heading: {shortened(line)}",
                note=True,
            )
    if not pairs:
        raise InputError(f"{path} holds no pairs of words")
    if all(_TAGGED.fullmatch(word) for pair in pairs for word in pair):
        pairs = [(first[:-2], second[:-2]) for first, second in pairs]
    return WordPairs(
        unpacked_name(path.name).removesuffix(".txt"), pairs, np.array(scores)
    )


def vectors_of(source: str, words: Sequence[str]) -> dict[str, np.ndarray]:
    """Vectors [n, E] of words by their name: word vectors, and of a model layer 0, too.

    Of a model that reads subwords, layer 0 alone. A word that the word vectors do not
    know has zeros in both.
    """
    if not os.path.isdir(source):
        return {"vectors": open_word_vectors(source, only=words).lookup(words)}
    model = ElmoC.from_pretrained(source)
    states = model.embed_batch([[word] for word in words])
    layer_0 = np.stack([each[0, 0].numpy() for each in states])
    if isinstance(model.word_vectors, SubwordVectors):
        return {"layer 0": layer_0}
    vectors = model.word_vectors.lookup(words)
    return {"vectors": vectors, "layer 0": layer_0 * vectors.any(axis=1, keepdims=True)}


def correlation(
    file: WordPairs, vectors: Mapping[str, np.ndarray]
) -> tuple[float, int]:
    """Spearman's ρ of the cosines with the scores, and over how many pairs: those whose
    words both have a vector.

    Ranks of equal values are their mean. ρ is not a number for fewer than three pairs,
    or where all are alike.
    """
    cosines = []
    scores = []
    for (first, second), score in zip(file.pairs, file.scores, strict=True):
        a = vectors[first]
        b = vectors[second]
        if a.any() and b.any():
            cosines.append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
            scores.append(score)
    enough = len(scores) > 2 and len(set(scores)) > 1 and len(set(cosines)) > 1
    return float(spearmanr(cosines, scores).statistic) if enough else math.nan, len(
        scores
    )
