"""A picture of the tables: OUT/compact.png has bytes a word against the mean cosine to
the whole vectors, and against accuracy on reviews.

    python -m experiments.compact.plot OUT --vectors FILE --words LEXICON --data DIR
"""

import re
from dataclasses import replace

import torch
from matplotlib import pyplot

from elmoc.word_vectors.opening import open_word_vectors
from experiments.compact.common import (
    Options,
    accuracy,
    bytes_a_word,
    lexicon,
    run_table,
)
from experiments.compact.imdb import IMDB

# compress-fasttext: bytes a row of product quantisation, cosine of seen words.
PUBLISHED = [(25, 0.787), (50, 0.901), (100, 0.979), (150, 0.995), (300, 0.9996)]


def plot(options: Options) -> None:
    """Draw the picture."""
    out = options.out
    most_frequent = lexicon(options)
    series: dict[str, list[tuple[float, float]]] = {
        "compress-fasttext (published)": list(PUBLISHED)
    }
    for file in sorted(out.glob("*.safetensors")):
        kind = re.match(r"codes|pq|pruned|alone(?=\d+real\.)", file.name)
        if kind is None:
            continue
        words, rows = most_frequent
        if kind[0] == "alone":
            # It gives vectors to words that it has not learned, too.
            words, rows = lexicon(replace(options, words=out / "alone.words"))
        found = open_word_vectors(file).lookup(words)
        has = found.any(axis=1) & rows.any(axis=1)
        mine = torch.from_numpy(found[has])
        whole = torch.from_numpy(rows[has])
        cosine = float(torch.nn.functional.cosine_similarity(mine, whole).mean())
        series.setdefault(kind[0], []).append((bytes_a_word(file, len(words)), cosine))
    _, (left, right) = pyplot.subplots(ncols=2, figsize=(12, 4.5))
    for name, points in series.items():
        points.sort()
        sizes = [size for size, _ in points]
        cosines = [cosine for _, cosine in points]
        left.plot(sizes, cosines, "o-", label=name, markersize=4)
    for name in IMDB:
        if (out / f"imdb_{name}.txt").exists():
            size = bytes_a_word(out / f"{name}.safetensors", len(most_frequent[0]))
            score = accuracy(out, f"imdb_{name}")
            right.plot(size, score, "o")
            right.annotate(name, (size, score), (5, 3), textcoords="offset points")
    x_label = "bytes a word, without hashes"
    left.set(xscale="log", xlabel=x_label, ylabel="mean cosine to the whole vectors")
    left.legend(fontsize="small")
    right.set(xscale="log", xlabel=x_label, ylabel="accuracy on reviews")
    pyplot.savefig(out / "compact.png", dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    run_table(plot, "Draw size against quality of compact vectors.")
