"""Similarity of words: do word vectors, or layer 0 of a model, rank pairs of words as
people do?

    python -m experiments.similarity VECTORS|MODEL FILES…

Prints Spearman's ρ of cosines and human judgements, over the pairs whose words both
have a vector. FILES have two words and a score a line, or are SimLex-999, SimVerb,
WordSim-353 and MEN as they are handed out. Layer 0 of an encoder, its input projection,
does not depend on the words around.
"""

import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta
from scipy.stats import spearmanr

from downstream.printing import Table, say_lines, text_table
from elmoc.command_line import run_main
from elmoc.corpus import UNKNOWN
from elmoc.errors import InputError, note, shortened
from elmoc.files.compression import unpacked_name
from elmoc.files.text import read_lines
from elmoc.model import ElmoC
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import WordVectors
from elmoc.word_vectors.subwords import SubwordVectors

# Two words, and how similar people found them: higher is more similar.
Pair = tuple[str, str, float]

_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?")
_TAGGED = re.compile(r".+-[ajnrv]")


@dataclass(frozen=True, kw_only=True)
class SimilarityCommand:
    """Options of `python -m experiments.similarity`."""

    source: Annotated[
        str,
        Meta(
            description="FILE.bin, FILE.vec, FILE.txt, FILE.safetensors or "
            "random:SEED:SIZE; or a model or run directory",
            extra={"metavar": "VECTORS|MODEL"},
        ),
    ]
    files: Annotated[
        list[Path],
        Meta(
            description="two words and a score a line, or SimLex, WordSim, MEN as they "
            "are (plain or .gz)",
            extra={"metavar": "FILE"},
        ),
    ]


def run(command: SimilarityCommand) -> None:
    """Print the table of correlations."""
    files = {path: read_pairs(path) for path in command.files}
    pairs = chain.from_iterable(files.values())
    words = list(dict.fromkeys(chain.from_iterable(pair[:2] for pair in pairs)))
    by_name = vectors_of(command.source, words)
    tables = [dict(zip(words, each, strict=True)) for each in by_name.values()]
    headers = ["pairs of words", "pairs", "found", *by_name]
    rows = []
    for path, judged in files.items():
        found = [correlation(judged, table) for table in tables]
        cells = ["–" if math.isnan(rho) else f"{100 * rho:.1f}" for rho, _ in found]
        name = unpacked_name(path.name).removesuffix(".txt")
        # A model's word vectors and its layer 0 know the same words.
        rows.append([name, f"{len(judged):,}", f"{found[0][1]:,}", *cells])
    title = f"Spearman's ρ × 100 of cosines and human judgements: {command.source}"
    say_lines(text_table(Table(title, headers, rows, right=headers[1:])))


def read_pairs(path: Path) -> list[Pair]:
    """Pairs of words of a file, with their scores.

    Cells are separated by tabs, commas, semicolons or spaces. These files are read as
    they are handed out:

    | file | a line | besides |
    |---|---|---|
    | WordSim-353, MTurk, RG-65 and others | word, word, score | a heading; comments
    (#); scores of each judge |
    | SimLex-999, SimVerb-3500 | word, word, part of speech, score | a heading; other
    figures |
    | MEN | word-n, word-n, score | a part of speech after each word |

    Raises:
        InputError: names the first line that is something else.
    """
    pairs: list[Pair] = []
    heading = ""
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip() or line.startswith("#"):
            continue
        # Words may hold blanks where tabs, commas or semicolons divide the cells.
        separator = next((each for each in "\t,;" if line.count(each) >= 2), None)
        cells = [cell.strip().strip('"') for cell in line.split(separator)]
        # SimLex has a part of speech between the words and the score.
        place = 3 if cells[2:] and cells[2] in ("A", "J", "N", "R", "V") else 2
        score = "".join(cells[place : place + 1])
        if _NUMBER.fullmatch(score) and math.isfinite(float(score)):
            pairs.append((cells[0], cells[1], float(score)))
        elif pairs or heading or len(cells) < 3:
            raise InputError(
                f"{path}, line {number}: two words and a score are needed, with "
                "nothing but a part of speech between them"
            )
        else:
            heading = line
            note(f"{path}: its first line is read as a heading: {shortened(line)}")
    if not pairs:
        raise InputError(f"{path} holds no pairs of words")
    # Files of MEN have a part of speech behind every word.
    if all(map(_TAGGED.fullmatch, chain.from_iterable(pair[:2] for pair in pairs))):
        pairs = [(first[:-2], second[:-2], score) for first, second, score in pairs]
    return pairs


def vectors_of(source: str, words: Sequence[str]) -> dict[str, np.ndarray]:
    """Vectors [n, E] of words by their name: `vectors`, and `layer 0` of a model.

    A model that reads subwords has layer 0 alone. A word that the word vectors do not
    know has zeros in both.
    """
    if not os.path.isdir(source):
        return {
            "vectors": known(open_word_vectors(source, only=[*words, UNKNOWN]), words)
        }
    model = ElmoC.from_pretrained(source, precision="float32")
    states = model.embed_batch([[word] for word in words])
    layer_0 = np.stack([each[0, 0].numpy() for each in states])
    if isinstance(model.word_vectors, SubwordVectors):
        return {"layer 0": layer_0}
    vectors = known(model.word_vectors, words)
    return {"vectors": vectors, "layer 0": layer_0 * vectors.any(axis=1, keepdims=True)}


def known(vectors: WordVectors, words: Sequence[str]) -> np.ndarray:
    """Vectors [n, E]; those that stand for unknown words become zeros."""
    *found, unknown = vectors.lookup([*words, UNKNOWN])
    return np.stack([each * (each != unknown).any() for each in found])


def correlation(
    pairs: Sequence[Pair], vectors: Mapping[str, np.ndarray]
) -> tuple[float, int]:
    """Spearman's ρ of the cosines with the scores, and its number of pairs.

    Only pairs whose words both have a vector count. Ranks of equal values are their
    mean. ρ is not a number for fewer than three pairs, or where all are alike.
    """
    cosines = []
    scores = []
    for first, second, score in pairs:
        a = vectors[first]
        b = vectors[second]
        if a.any() and b.any():
            cosines.append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
            scores.append(score)
    # Ranks of fewer pairs, or of equal numbers, say nothing.
    if len(scores) < 3 or len(set(scores)) == 1 or len(set(cosines)) == 1:
        return math.nan, len(scores)
    return float(spearmanr(cosines, scores).statistic), len(scores)


main = partial(
    run_main,
    SimilarityCommand,
    run,
    prog="python -m experiments.similarity",
    description="Correlate the cosines of words with human judgements.",
)

if __name__ == "__main__":
    sys.exit(main())
