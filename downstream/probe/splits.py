"""Splits: which examples does a probe train on, and which is it scored on?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from downstream.inputs.sentence import TaskSentence
from downstream.probe.labels import (
    listed,
    warn_of_unknown,
)
from downstream.probe.task import Task
from downstream.settings import ReaderOptions
from elmoc.errors import InputError, say
from elmoc.files.checksums import fingerprint

# The seed of the part of the training data that is kept. All runs have the same one, so
# that all seeds and kinds of inputs train on the same examples.
PART_SEED = 13


@dataclass(frozen=True)
class Split:
    """The examples of one split.

    name: train, dev or test.
    examples: in the order of the files.
    sentences: of all examples, in their order.
    lengths: the number of words of each example.
    files: the number of sentences of each file, of which training may use a part.
    fingerprints: the hashes of the files' contents.
    labels: label → how often it stands in the examples.
    """

    name: str
    examples: list[Any]
    sentences: list[TaskSentence]
    lengths: list[int]
    files: dict[str, int]
    fingerprints: list[str]
    labels: dict[str, int]


def read_splits(
    task: Task[Any, Any],
    files: Mapping[str, Sequence[Path]],
    options: ReaderOptions,
    *,
    fraction: float = 1.0,
    trained: dict[str, int] | None = None,
) -> list[Split]:
    """Read the files of splits, print a line about each, and compare the labels of
    training with those of the others.

    Args:
        task: its reader reads the files.
        files: split → its files; training comes first.
        options: the options of the reader.
        fraction: the share of the training examples that is kept; see `random_part`.
        trained: of a saved probe: label → its number in the training data. By default
            the first split is the training data.

    Raises:
        InputError: a file that is named twice, or that the reader refuses.
    """
    splits: list[Split] = []
    for name, paths in files.items():
        counts: dict[str, int] = {}
        examples: list[Any] = []
        for path in paths:
            if list(map(Path.resolve, paths)).count(path.resolve()) > 1:
                raise InputError(f"--{name} names {path} twice")
            read = task.read(path, options, training=name == "train")
            # All sentences of the file count, though training may use a part of them.
            counts[str(path)] = sum(len(task.sentences(example)) for example in read)
            examples += read
        if name == "train":
            examples = random_part(task, examples, fraction)
            examples = task.training_examples(examples, options)
        part = (
            f" ({100 * fraction:.4g} % of them)"
            if name == "train" and fraction != 1
            else ""
        )
        labels = dict(Counter(chain.from_iterable(map(task.labels, examples))))
        trained = labels if trained is None else trained
        warn_of_unknown(name, labels, trained)
        by_example = [task.sentences(example) for example in examples]
        lengths = [sum(len(each.words) for each in own) for own in by_example]
        shown = f": {listed(labels)}" if labels else ""
        # Runs that are compared may find a file in different folders.
        fingerprints = [fingerprint([path.read_bytes()]) for path in paths]
        # Scores of the files that are trained on say nothing of new text.
        same = any(
            set(each.fingerprints) & set(fingerprints)
            for each in splits
            if each.name == "train"
        )
        say(
            f"{name:6} {len(examples):,} {task.unit}{part}, {sum(lengths):,} words"
            f"{', OF THE TRAINING DATA' if same else ''}{shown}"
        )
        splits.append(
            Split(
                name=name,
                examples=examples,
                sentences=list(chain.from_iterable(by_example)),
                lengths=lengths,
                files=counts,
                fingerprints=fingerprints,
                labels=labels,
            )
        )
    return splits


def random_part(
    task: Task[Any, Any], examples: list[Any], fraction: float
) -> list[Any]:
    """A random part of the examples, in their order.

    Examples that begin on one line of a file were annotated together: the phrases of a
    tree, the predicates of a sentence, the sentences of a document. They are kept or
    left out together. `fraction` is the share of such groups that is kept, at least
    one. Every run draws the same part, and a smaller part lies inside a larger one.
    """
    firsts = [task.sentences(example)[0] for example in examples]
    places = [(first.file, first.line) for first in firsts]
    distinct = list(dict.fromkeys(places))
    # The kept ones are the first of a fixed order, so that a smaller part lies inside a
    # larger one.
    order = np.random.default_rng(PART_SEED).permutation(len(distinct))
    kept = {distinct[row] for row in order[: max(1, round(fraction * len(distinct)))]}
    pairs = zip(examples, places, strict=True)
    return [example for example, place in pairs if place in kept]
