"""Tied input and output vectors (Press and Wolf 2017, Tables 2, 3, 4 and 7):
perplexity, the worth of the vectors of words, and what they have in common.

    python -m experiments.compact.tying OUT --vectors none --words none --data DIR
"""

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr
from torch.nn import functional

from elmoc.corpus import Corpus
from elmoc.files.text import read_lines
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.stored import LexiconVectors
from experiments.compact.common import Options, row, run_table, similarity, train
from pretrain import CONFIGS
from pretrain.run.directory import read_metrics

MODELS = (
    "lm_small",
    "lm_small_wt",
    "lm_small_pr",
    "lm_small_wt_pr",
    "lm_small_wt_pr_code",
)
# Test perplexity of these models in Table 7, on the BBC's news and on film reviews.
PERPLEXITIES = {
    "bbc": (110.8, 106.8, 108.7, 98.9, 98.9),
    "imdb": (94.3, 94.8, 94.4, 91.5, 91.5),
}
# The corpus of the BBC in Table 7.
NEWS = "lm/news_bbc-00.txt.gz"
# The paper: more reviews, 10,000 types.
REVIEWS = 3_000
MIN_COUNT = 6
# ρ of the cosines of all pairs of words: skip-gram, and the small model of PTB.
CORRELATIONS = {
    ("in", "out"): (0.77, 0.13),
    ("in", "tied"): (0.19, 0.31),
    ("out", "tied"): (0.39, 0.65),
}
# Words whose pairs are compared.
COMPARED = 2_000


def tying(options: Options) -> None:
    """Print the tables."""
    out = options.out
    raw = out / "reviews.txt"
    lines = read_lines(options.data / "imdb/train.jsonl.gz")
    reviews = [json.loads(line)["text"] for line in itertools.islice(lines, REVIEWS)]
    raw.write_text("\n\n".join(reviews).replace("<br />", " ") + "\n")
    tokens = out / "imdb_tokens.gz"
    row(out, "imdb_tokens", ["data_scripts.tokenize", raw, tokens, "--tokenised", "no"])
    for name, text in (("bbc", options.data / NEWS), ("imdb", tokens)):
        print_perplexities(options, name, text)
    print_vectors(options)


def print_perplexities(options: Options, text: str, tokens: Path) -> None:
    """Table 7: perplexity of models that are trained on a text."""
    trained = TrainedText(options.out, text, tokens)
    models = zip(MODELS, PERPLEXITIES[text], strict=True)
    for seed, (name, paper) in enumerate(models, start=1):
        # Vectors that begin alike would resemble each other.
        sets = [f"train.seed={seed}"]
        found = trained.perplexity(name, CONFIGS / f"lm/{name}.toml", sets)
        print(f"{text} {name:14} {found}, paper {paper}", flush=True)


class TrainedText:
    """A text of which every tenth document is held out, and models of the others."""

    def __init__(self, out: Path, text: str, tokens: Path) -> None:
        self._out = out
        self._text = text
        self.corpus = out / text
        documents = "\n".join(read_lines(tokens)).split("\n\n")
        held_out = out / f"{text}_held_out.txt"
        held_out.write_text("\n\n".join(documents[9::10]) + "\n")
        del documents[9::10]
        training = out / f"{text}_train.txt"
        training.write_text("\n\n".join(documents) + "\n")
        command = ["data_scripts.build_corpus", training, self.corpus]
        command += ["--held-out", held_out, "--min-count", MIN_COUNT]
        row(out, f"{text}_corpus", command)

    def perplexity(self, name: str, config: Path, sets: Sequence[str] = ()) -> str:
        """The perplexity of a model that is trained by a config: at its end, and at its
        best.
        """
        run = f"{self._text}_{name}"
        # About once an epoch, unless it is set.
        given = ["evaluation.every_updates=2000", f"data.corpus={self.corpus}", *sets]
        train(self._out, run, config, given)
        record = Corpus(self.corpus).record
        # The share of `<s>`, which are foreseen for sure, and not counted in the paper.
        marks = record.held_out_sentences / record.held_out_tokens
        found = [
            math.exp(math.log(metrics["vocabulary_perplexity"]) / (1 - marks))
            for metrics in read_metrics(self._out / run, "evaluation")
        ]
        return f"perplexity without <s> {found[-1]:.1f}, at best {min(found):.1f}"


def print_vectors(options: Options) -> None:
    """Tables 2, 3 and 4: similarity by the vectors of models, and their correlation."""
    out = options.out
    corpus = Corpus(out / "bbc")
    untied = read_model_directory(out / "bbc_lm_small")
    rows = {
        "lm_out": untied.output_layer.weights["shared.rows"],
        "lm_in": open_word_vectors(out / "bbc_lm_small").vectors,
        "lm_tied": open_word_vectors(out / "bbc_lm_small_wt").vectors,
    }
    for roles in (("in", "out"), ("tied",)):
        tables = skipgram(corpus, len(roles))
        for role, table in zip(roles, tables, strict=True):
            rows[f"skipgram_{role}"] = table
    words = corpus.lexicon
    compared = [row for row, word in enumerate(words) if word.isalpha()][:COMPARED]
    cosines = {}
    for kind, vectors in rows.items():
        file = out / f"{kind}.safetensors"
        LexiconVectors(vectors, words).write(file)
        print(f"{kind:13}", similarity(options, kind, file))
        units = functional.normalize(vectors[compared]).numpy()
        cosines[kind] = (units @ units.T)[np.triu_indices(len(compared), 1)]
    for (one, other), papers in CORRELATIONS.items():
        for model, paper in zip(("skipgram", "lm"), papers, strict=True):
            pair = (cosines[f"{model}_{one}"], cosines[f"{model}_{other}"])
            found = spearmanr(*pair).statistic
            print(f"{model} ρ({one}, {other}) {found:.2f}, paper {paper}")


def skipgram(
    corpus: Corpus,
    number: int,
    *,
    width: int = 100,
    around: int = 5,
    negatives: int = 5,
    updates: int = 20_000,
    size: int = 2_000,
) -> list[torch.Tensor]:
    """Input and output vectors of skip-gram with negative samples (Mikolov et al.
    2013), by Adam.

    Args:
        corpus: the text, of V types.
        number: of tables; one is for both.
        width: numbers of a vector.
        around: of so many words on each side one is drawn, and predicted.
        negatives: drawn words beside each.
        updates: of the tables.
        size: words of each update; by default each is read 45 times.

    Returns:
        The tables, float32 [V, width].
    """
    # One table and two begin unlike.
    torch.manual_seed(number)
    shards = [corpus.read_shard(shard) for shard in corpus.train]
    ids = torch.from_numpy(np.concatenate(shards)).long()
    offsets = torch.tensor([*range(-around, 0), *range(1, around + 1)])
    chances = torch.from_numpy(corpus.counts).double() ** 0.75
    drawn = torch.randn(number, corpus.types, width)
    tables = [torch.nn.Parameter(rows / width**0.5) for rows in drawn]
    optimiser = torch.optim.SparseAdam(tables, lr=1e-3)
    for _ in range(updates):
        places = torch.randint(around, len(ids) - around, (size,))
        near = ids[places + offsets[torch.randint(len(offsets), (size,))]]
        others = torch.multinomial(chances, size * negatives, replacement=True)
        candidates = torch.cat([near[:, None], others.view(size, -1)], dim=1)
        read = functional.embedding(ids[places], tables[0], sparse=True)
        scored = functional.embedding(candidates, tables[-1], sparse=True)
        scores = torch.einsum("bd,bnd->bn", read, scored)
        # The first candidate is true, the others are not.
        scores[:, 1:] *= -1
        optimiser.zero_grad()
        (-functional.logsigmoid(scores).sum() / size).backward()
        optimiser.step()
    return [table.detach() for table in tables]


if __name__ == "__main__":
    run_table(tying, "Language models with tied vectors, beside the paper's.")
