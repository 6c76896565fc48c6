"""The command `python -m downstream layers`: what does a linear classifier of words
find in each layer?

python -m downstream layers --train F… --dev F… --label pos column:5 --model RUN
    --vectors V
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta
from sklearn.linear_model import LogisticRegression

from downstream.inputs.options import INPUT_KINDS, InputOptions
from downstream.inputs.sentence import TaskSentence
from downstream.inputs.sources import InputSources, open_sources
from downstream.printing import Column, Table, counted, say_lines, text_table
from downstream.readers.columns import read_columns
from elmoc.command_line import run_main
from elmoc.devices import checked_device
from elmoc.errors import InputError, say
from elmoc.process import progress_bar

# Columns by name: `pos` is of CoNLL-2012, the others are of CoNLL-U.
LABELS = {"pos": 4, "upos": 3, "xpos": 4, "deprel": 7}
# Cells of words without a label.
UNLABELLED = ("", "-", "_")
# A classifier takes seconds on this number of words, and its accuracy moves little with
# more of them.
MOST_WORDS = 50_000
# Of the order in which sentences are taken where there are more words.
SEED = 13
# Sentences whose states are looked up together.
BATCH = 64
MOST_ITERATIONS = 200
# Of the gradient. Closer to the optimum the accuracy moves by hundredths of a point.
TOLERANCE = 1e-3


@dataclass(frozen=True, kw_only=True)
class LayersCommand:
    """Options of `python -m downstream layers`."""

    train: Annotated[
        list[Path],
        Meta(
            description="training data of the classifiers, plain or .gz",
            extra={"option": "--train", "metavar": "FILE"},
        ),
    ]
    dev: Annotated[
        list[Path],
        Meta(
            description="data on which their accuracy is reported",
            extra={"option": "--dev", "metavar": "FILE"},
        ),
    ]
    label: Annotated[
        list[str],
        Meta(
            description="the labels to find: pos (of CoNLL-2012), upos, xpos, deprel "
            "(of CoNLL-U), or column:N (from 0; -1: last)",
            extra={"option": "--label", "metavar": "LABEL"},
        ),
    ]
    word_column: Annotated[
        int | None, Meta(description="the column of the words (default: is found)")
    ] = None
    most_words: Annotated[
        int, Meta(description="most words of each part, in random sentences")
    ] = MOST_WORDS
    inputs: InputOptions = InputOptions()
    device: Annotated[
        str, Meta(description="where features of --model are computed")
    ] = "cpu"


@dataclass(frozen=True)
class WordSplit:
    """The sentences of a split and the labels of their N words.

    sentences: in the order of the files.
    labels: kind of label → the label of each word; None where a word has none.
    """

    sentences: list[TaskSentence]
    labels: dict[str, list[str | None]]

    def labelled(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """The rows [n] of the words that have a label of the kind, and the labels,
        strings [n].
        """
        labels = self.labels[kind]
        rows = [row for row, label in enumerate(labels) if label is not None]
        found = [label for label in labels if label is not None]
        return np.array(rows, dtype=np.int64), np.array(found, dtype=np.str_)


def main(argv: Sequence[str]) -> int:
    """`python -m downstream layers …`."""
    return run_main(
        LayersCommand,
        run,
        argv,
        prog="python -m downstream layers",
        description="Train a linear classifier (multinomial logistic regression) of "
        "words on each layer of an encoder, on all layers side by side and on word "
        "vectors, and report its accuracy on other words.",
    )


def run(command: LayersCommand) -> None:
    """Print the table of accuracies."""
    checked_device(command.device)
    inputs = command.inputs
    kinds = [INPUT_KINDS[name] for name in inputs.given()]
    if not kinds:
        raise InputError(
            "there is nothing to read: give --model DIR or --features FILE.h5, "
            "--vectors V, or both"
        )
    labels = list(dict.fromkeys(command.label))
    for label in labels:
        if label not in LABELS and not re.fullmatch(r"column:-?\d{1,4}", label):
            known = ", ".join(LABELS)
            raise InputError(
                f"--label {label} is not possible: give {known} or column:N"
            )
    splits = []
    for name, paths in (("train", command.train), ("dev", command.dev)):
        split = read_words(
            paths,
            labels,
            word_column=command.word_column,
            most_words=command.most_words,
        )
        words = sum(len(sentence.words) for sentence in split.sentences)
        sentences = counted(len(split.sentences), "sentence")
        say(f"{name:6} {sentences}, {counted(words, 'word')}")
        splits.append(split)
    train, dev = splits
    sources = open_sources(
        kinds,
        inputs,
        sentences=train.sentences + dev.sentences,
        device=command.device,
    )
    say_lines(f"\n{text_table(accuracies(sources, train, dev, labels))}\n")
    for label in labels:
        train_labels = train.labelled(label)[1]
        dev_labels = dev.labelled(label)[1]
        distinct = len(set(train_labels.tolist()))
        words_of_each = (
            f"{len(train_labels):,} words of train, {len(dev_labels):,} of dev"
        )
        say(f"{label}: {distinct} labels, {words_of_each}")


def read_words(
    paths: Sequence[Path],
    kinds: Sequence[str],
    *,
    most_words: int,
    word_column: int | None = None,
) -> WordSplit:
    """Read the files of a split.

    Args:
        paths: of the files.
        kinds: of labels; a word of the first is told from a comment by its label.
        most_words: of more words, random whole sentences are read, the same in every
            run.
        word_column: the column of the words, where it is known.

    Raises:
        InputError: a file without such columns, or without a label in one of them.
    """
    columns = {}
    for kind in kinds:
        number = kind.removeprefix("column:")
        columns[kind] = LABELS[kind] if kind in LABELS else int(number)
    found = []
    for path in paths:
        first_column = columns[kinds[0]]
        file = read_columns(
            path, word_column=word_column, column=first_column, ragged=True
        )
        found += [(each.sentence(file.word_column), each) for each in file.sentences]
    lengths = np.array([len(sentence.words) for sentence, _ in found])
    # Whole sentences: a label depends on the words around.
    if lengths.sum() > most_words:
        order = np.random.default_rng(SEED).permutation(len(found))
        totals = lengths[order].cumsum()
        count = max(1, int(np.searchsorted(totals, most_words, side="right")))
        found = [found[row] for row in sorted(order[:count])]
    labels: dict[str, list[str | None]] = {}
    for kind, column in columns.items():
        cells: list[str] = []
        for _, each in found:
            cells += each.column(column)
        if kind == "deprel":
            # Without subtypes: `nsubj` for `nsubj:pass`.
            cells = [cell.partition(":")[0] for cell in cells]
        labels[kind] = [None if cell in UNLABELLED else cell for cell in cells]
        if not any(labels[kind]):
            raise InputError(f"{paths[0]}: no word has a label in column {column}")
    return WordSplit([sentence for sentence, _ in found], labels)


def accuracies(
    sources: InputSources, train: WordSplit, dev: WordSplit, kinds: Sequence[str]
) -> Table:
    """Train a classifier for every kind of label and input.

    The table has the accuracy on `dev`, beside the most frequent label's.
    """
    names = ["most frequent label"]
    sizes = [""]
    columns: dict[str, list[str]] = {}
    for kind in kinds:
        counts = Counter(train.labelled(kind)[1].tolist())
        frequent = counts.most_common(1)[0][0]
        right = dev.labelled(kind)[1] == frequent
        columns[kind] = [f"{100 * float(right.mean()):.2f}"]
    inputs = zip(inputs_of(sources, train), inputs_of(sources, dev), strict=True)
    with progress_bar(
        desc="classifiers", unit=" of them", leave=False, delay=2
    ) as progress:
        # One layer at a time is in memory twice, standardised.
        for (name, vectors), (_, dev_vectors) in inputs:
            names.append(name)
            for kind in kinds:
                rows, labels = train.labelled(kind)
                dev_rows, dev_labels = dev.labelled(kind)
                x = vectors(rows)
                accuracy = classify(
                    x, labels, test=dev_vectors(dev_rows), test_labels=dev_labels
                )
                columns[kind].append(f"{accuracy:.2f}")
                progress.update()
            # The same for every kind of label.
            sizes.append(str(x.shape[1]))
    shown = [Column("input", names), Column("numbers", sizes, right=True)]
    shown += [Column(kind, cells, right=True) for kind, cells in columns.items()]
    return Table("Accuracy of linear classifiers, in percent", shown)


def inputs_of(
    sources: InputSources, split: WordSplit
) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Yield the inputs of the classifiers: word vectors, each layer, and all layers
    side by side.

    Each is a name and a function, which gives the vectors of the words in rows [n]:
    float32 [n, D], a new array each time. A word without a vector has zeros.
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
        # [N, L + 1, 2P]
        states = np.empty((words, source.layers, source.width), dtype=np.float32)
        end = 0
        for first in range(0, len(split.sentences), BATCH):
            for found in source.lookup(split.sentences[first : first + BATCH]):
                begin = end
                end += found.shape[1]
                states[begin:end] = found.transpose(0, 1).numpy()
        for layer, name in enumerate(source.names):
            yield f"layer {name}", partial(_states_of_layer, states, layer)
        if len(source.names) > 1:
            yield "all layers", lambda rows: states[rows].reshape(len(rows), -1)


def _states_of_layer(states: np.ndarray, layer: int, rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = states[rows, layer]
    return found


def classify(
    x: np.ndarray,
    labels: np.ndarray,
    *,
    test: np.ndarray,
    test_labels: np.ndarray,
    l2: float = 1.0,
) -> float:
    """Accuracy in percent of a multinomial logistic regression on standardised numbers.

    Mean and deviation are over the training words. scikit-learn warns where
    `MOST_ITERATIONS` of L-BFGS do not reach the optimum.

    Args:
        x: float32 [N, D], which is overwritten.
        labels: strings [N], at least two distinct ones.
        test: float32 [M, D], which is overwritten.
        test_labels: strings [M]; a label that is not in `labels` cannot be found.
        l2: the weight of half the sum of squares of the weights, beside the summed
            loss.
    """
    mean = x.mean(axis=0, dtype=np.float64)
    deviation = x.std(axis=0, dtype=np.float64)
    # Numbers that are the same for all words stay 0.
    deviation[deviation < 1e-12] = 1
    for numbers in (x, test):
        numbers -= mean.astype(np.float32)
        numbers /= deviation.astype(np.float32)
    model = LogisticRegression(C=1 / l2, max_iter=MOST_ITERATIONS, tol=TOLERANCE)
    predicted = model.fit(x, labels).predict(test)
    return 100 * float((predicted == test_labels).mean())
