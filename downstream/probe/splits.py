"""Splits of task data: the examples of their files, and the part of them that `--train-fraction` trains on.

What is annotated together is kept or left out together: all phrases of a tree, all predicates of a sentence, all
sentences of a document.
"""

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from downstream.probe.settings import ReaderOptions
from downstream.probe.task import Split, Task
from downstream.results.records import percent
from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint

SEED = 13
"""The same for every run, so that all seeds and kinds of inputs train on the same part."""

Example = TypeVar("Example")


def read_split(
    task: Task[Any, Any], name: str, paths: Sequence[Path], options: ReaderOptions, *, fraction: float = 1.0
) -> Split:
    """Read the files of a split, and print a line about it; raises `InputError` for a file that is named twice.

    fraction  of the examples of all files that are kept (`random_part`)
    """
    files: dict[str, int] = {}
    fingerprints, examples = [], []
    for path in paths:
        if str(path) in files:
            raise InputError(f"--{name} names {path} twice: name it once")
        read = task.read(path, options, training=name == "train")
        files[str(path)] = sum(len(task.sentences(example)) for example in read)
        fingerprints.append(fingerprint(path.read_bytes()))
        examples += read
    examples = random_part(examples, fraction, place=task.place)
    if name == "train":
        examples = task.training_examples(examples, options)
    sentences = [task.sentences(example) for example in examples]
    lengths = [sum(len(sentence.words) for sentence in of_example) for of_example in sentences]
    print(f"{name:6} {task.describe(examples)}{'' if fraction == 1 else f': {percent(fraction)} of them'}", flush=True)
    return Split(name, examples, [one for of_example in sentences for one in of_example], lengths, files, fingerprints)


def random_part(examples: Sequence[Example], fraction: float, *, place: Callable[[Example], Hashable]) -> list[Example]:
    """A random part of the examples, in their order, of `fraction` of their places and at least one.

    Every run draws the same, and a smaller part lies inside a larger one.

    Args:
        examples: those of a whole split.
        fraction: above 0, at most 1.
        place: equal for examples that stay together.
    """
    if fraction == 1:
        return list(examples)
    places = list(dict.fromkeys(map(place, examples)))
    order = np.random.default_rng(SEED).permutation(len(places))
    kept = {places[row] for row in order[: max(1, round(fraction * len(places)))]}
    return [example for example in examples if place(example) in kept]
