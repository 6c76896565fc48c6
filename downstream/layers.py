"""The command `python -m downstream layers`: what does a linear classifier of words
find in each layer?

python -m downstream layers --train F… --dev F… --label pos column:5 --model RUN
--vectors V
"""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from downstream.inputs.options import INPUT_KINDS, InputOptions
from downstream.inputs.sentence import TaskSentence
from downstream.inputs.sources import InputSources, open_sources
from downstream.printing import Column, Table, counted, say, text_table
from downstream.readers.columns import read_columns
from elmoc.command_line import add_options
from elmoc.devices import checked_device
from elmoc.errors import InputError
from elmoc.process import progress_bar

# Columns by name: of CoNLL-2012 and, the others, of CoNLL-U.
LABELS = {"pos": 4, "upos": 3, "xpos": 4, "deprel": 7}
# Cells of words without a label.
UNLABELLED = ("", "-", "_")
MOST_WORDS = 50_000
# of the order in which sentences are taken where there are more words than are asked
# for
SEED = 13
BATCH = 64  # sentences whose states are looked up together
MOST_ITERATIONS = 200
# of the gradient: closer to the optimum the accuracy moves by some hundredths of a
# point
TOLERANCE = 1e-3


@dataclass(frozen=True)
class WordSplit:
    """The sentences of a split, and of each kind the labels of all their N words; None
    where a word has none.
    """

    sentences: list[TaskSentence]
    labels: dict[str, list[str | None]]

    def labelled(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Which words have a label of the kind, as rows [n], and these labels, strings
        [n].
        """
        found = {
            row: label
            for row, label in enumerate(self.labels[kind])
            if label is not None
        }
        return np.array(list(found), dtype=np.int64), np.array(
            list(found.values()), dtype=np.str_
        )


def run_layers(arguments: Sequence[str]) -> None:
    """`python -m downstream layers …`."""
    options = _parse(arguments)
    checked_device(options.device)
    splits = []
    for name, paths in (("train", options.train), ("dev", options.dev)):
        split = read_words(
            paths,
            options.label,
            word_column=options.word_column,
            most_words=options.most_words,
        )
        count = sum(len(sentence.words) for sentence in split.sentences)
        say(
            f"{name:6} {counted(len(split.sentences), 'sentence')}, {counted(count, 'word')}"
        )
        splits.append(split)
    train, dev = splits
    kinds = {
        INPUT_KINDS[name]
        for name in ("vectors", "features", "model")
        if getattr(options, name)
    }
    sources = open_sources(
        kinds, sentences=[*train.sentences, *dev.sentences], options=options
    )
    say(f"\n{text_table(accuracies(sources, train, dev, options.label))}\n")
    for kind in options.label:
        labels = train.labelled(kind)[1]
        dev_labels = dev.labelled(kind)[1]
        words = f"{len(labels):,} words of train, {len(dev_labels):,} of dev"
        say(f"{kind}: {len(set(labels.tolist()))} labels, {words}")


def read_words(
    paths: Sequence[Path],
    kinds: Sequence[str],
    *,
    most_words: int,
    word_column: int | None = None,
) -> WordSplit:
    """Read the files of a split; of more words than `most_words`, random whole
    sentences, the same in every run.
    """
    columns = {
        kind: LABELS[kind] if kind in LABELS else int(kind.removeprefix("column:"))
        for kind in kinds
    }
    found = []
    for path in paths:
        file = read_columns(
            path, word_column=word_column, column=columns[kinds[0]], ragged=True
        )
        found += [(each.sentence(file.word_column), each) for each in file.sentences]
    lengths = np.array([len(sentence.words) for sentence, _ in found])
    if lengths.sum() > most_words:
        order = np.random.default_rng(SEED).permutation(len(found))
        count = max(
            1, int(np.searchsorted(lengths[order].cumsum(), most_words, side="right"))
        )
        found = [found[row] for row in sorted(order[:count])]
    labels: dict[str, list[str | None]] = {}
    for kind, column in columns.items():
        cells = [cell for _, each in found for cell in each.column(column)]
        if kind == "deprel":  # without subtypes: `nsubj` for `nsubj:pass`
            cells = [cell.partition(":")[0] for cell in cells]
        labels[kind] = [None if cell in UNLABELLED else cell for cell in cells]
        if not any(labels[kind]):
            raise InputError(f"{paths[0]}: no word has a label in column {column}")
    return WordSplit([sentence for sentence, _ in found], labels)


def accuracies(
    sources: InputSources, train: WordSplit, dev: WordSplit, kinds: Sequence[str]
) -> Table:
    """Train a classifier for every kind of label and input; its accuracy on `dev`,
    beside the most frequent label's.
    """
    names = ["most frequent label"]
    sizes = [""]
    columns: dict[str, list[str]] = {}
    for kind in kinds:
        frequent = Counter(train.labelled(kind)[1].tolist()).most_common(1)[0][0]
        columns[kind] = [
            f"{100 * float((dev.labelled(kind)[1] == frequent).mean()):.2f}"
        ]
    inputs = zip(inputs_of(sources, train), inputs_of(sources, dev), strict=True)
    with progress_bar(
        desc="classifiers", unit=" of them", leave=False, delay=2
    ) as progress:
        for (name, vectors), (_, dev_vectors) in inputs:
            names.append(name)
            for kind in kinds:
                (rows, labels), (dev_rows, dev_labels) = (
                    train.labelled(kind),
                    dev.labelled(kind),
                )
                x = vectors(rows)
                dev_x = dev_vectors(dev_rows)
                columns[kind].append(
                    f"{classify(x, labels, test=dev_x, test_labels=dev_labels):.2f}"
                )
                progress.update()
            sizes.append(str(x.shape[1]))
    labels_columns = [
        Column(kind, cells, right=True) for kind, cells in columns.items()
    ]
    inputs_columns = [Column("input", names), Column("numbers", sizes, right=True)]
    return Table(
        "Accuracy of linear classifiers, in percent", inputs_columns + labels_columns
    )


def inputs_of(
    sources: InputSources, split: WordSplit
) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Yield what words can be classified by: word vectors, each layer, and all layers
    side by side.

    Each is a name and what gives the vectors of the words in rows [n]: float32 [n, D],
    a new array each time. A word without a vector has zeros.
    """
    if sources.words is not None:
        table = sources.words
        places = np.concatenate(
            [table.rows([each], len(each.words))[0].numpy() for each in split.sentences]
        )
        yield "vectors", lambda rows: table.vectors.numpy()[places[rows]]
    if sources.states is not None:
        source = sources.states
        words = sum(len(sentence.words) for sentence in split.sentences)
        states = np.empty(
            (words, source.layers, source.width), dtype=np.float32
        )  # [N, L + 1, 2P]
        end = 0
        for first in range(0, len(split.sentences), BATCH):
            for found in source.lookup(split.sentences[first : first + BATCH]):
                begin = end
                end = end + found.shape[1]
                states[begin:end] = found.transpose(0, 1).numpy()
        for layer, name in enumerate(source.names):
            yield f"layer {name}", lambda rows, layer=layer: states[rows, layer]  # type: ignore[misc]
        if len(source.names) > 1:
            yield "all layers", lambda rows: states[rows].reshape(len(rows), -1)


def classify(
    x: np.ndarray,
    labels: np.ndarray,
    *,
    test: np.ndarray,
    test_labels: np.ndarray,
    l2: float = 1.0,
) -> float:
    """Accuracy in percent of a multinomial logistic regression on numbers standardised
    over the training words.

    scikit-learn warns where it does not come to its optimum in `MOST_ITERATIONS` of
    L-BFGS.

    Args:
        x: float32 [N, D], which is overwritten.
        labels: strings [N], at least two distinct ones.
        test: float32 [M, D], which is overwritten.
        test_labels: strings [M]; those that are not in `labels` cannot be found.
        l2: the weight of half the sum of squares of the weights, beside the summed
            loss.
    """
    mean = x.mean(axis=0, dtype=np.float64)
    deviation = x.std(axis=0, dtype=np.float64)
    deviation[deviation < 1e-12] = 1
    for numbers in (x, test):
        numbers -= mean.astype(np.float32)
        numbers /= deviation.astype(np.float32)
    model = LogisticRegression(C=1 / l2, max_iter=MOST_ITERATIONS, tol=TOLERANCE)
    return 100 * float((model.fit(x, labels).predict(test) == test_labels).mean())


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m downstream layers",
        description="Train a linear classifier (multinomial logistic regression) of words on each layer of an encoder, "
        "on all layers side by side and on word vectors, and report its accuracy on other words.",
    )
    path: dict[str, Any] = {
        "type": Path,
        "metavar": "FILE",
        "nargs": "+",
        "required": True,
    }
    parser.add_argument(
        "--train", **path, help="what the classifiers are trained on, plain or .gz"
    )
    parser.add_argument("--dev", **path, help="what their accuracy is of")
    text = "the labels to find: pos (of CoNLL-2012), upos, xpos, deprel (of CoNLL-U), or column:N (from 0; -1: last)"
    parser.add_argument("--label", nargs="+", metavar="LABEL", required=True, help=text)
    parser.add_argument(
        "--word-column",
        type=int,
        metavar="N",
        help="the column of the words (default: is found)",
    )
    text = f"most words of each part, in random sentences (default: {MOST_WORDS})"
    parser.add_argument(
        "--most-words", type=int, metavar="N", default=MOST_WORDS, help=text
    )
    add_options(parser, InputOptions)
    parser.add_argument(
        "--device",
        default="cpu",
        help="where features of --model are computed (default: cpu)",
    )
    options = parser.parse_args(arguments)
    options.label = list(dict.fromkeys(options.label))
    for label in options.label:
        if label not in LABELS and not re.fullmatch(r"column:-?\d{1,4}", label):
            raise InputError(
                f"--label {label} is not possible: give {', '.join(LABELS)} or column:N"
            )
    if not (options.vectors or options.features or options.model):
        parser.error(
            "there is nothing to read: give --model DIR or --features FILE.h5, --vectors V, or both"
        )
    return options
