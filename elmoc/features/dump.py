"""Dumping features: how a file of sentences becomes a feature file of their layer states."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from elmoc.batches import buffered
from elmoc.errors import InputError, shortened
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.writer import write_features
from elmoc.files.arrays import all_finite
from elmoc.files.text import read_lines
from elmoc.files.writing import human_bytes, require_space
from elmoc.model import ElmoC
from elmoc.progress import progress_bar


def dump_features(
    model: ElmoC,
    sentences: Path | str,
    output: Path | str,
    *,
    layers: str = "all",
    dtype: str = "float32",
    batch_size: int = 256,
    batch_words: int = 4096,
    sentence_map: bool = True,
    allow_empty: bool = False,
    command_line: str = "",
) -> None:
    """Write the layer states of every line of `sentences` to `output`, in the order of the lines.

    Args:
        model: the encoder.
        sentences: text file, one tokenised sentence a line.
        output: the feature file; it must not exist.
        layers: `all`, `top`, `average`, or indices such as `0,2`.
        dtype: of the numbers in the file, `float32` or `float16`.
        batch_size, batch_words: sentences and padded words a batch at most.
        sentence_map: write `sentence_to_index`.
        allow_empty: write `[L + 1, 0, 2P]` for an empty line instead of refusing it.
        command_line: recorded in the file.

    Raises:
        InputError: bad input, or not enough disk.
    """
    select, names = layer_selection(layers, model.layers)
    lines, words = count_sentences(sentences, allow_empty)
    size = words * len(names) * model.width * np.dtype(dtype).itemsize
    require_space(output, int(size * 1.01) + 1000 * lines)
    print(f"{lines:,} sentences, {words:,} words, layers {', '.join(names)}, {dtype}: about {human_bytes(size)}")
    attributes = {**model.describe(), "layers": names, "command_line": command_line}
    shape = FeatureShape(
        layers=len(names), width=model.width, dtype=dtype, single=layers in ("top", "average"), words=words
    )
    with (
        write_features(output, attributes, shape=shape, sentence_map=sentence_map) as writer,
        progress_bar(total=words, unit=" words", unit_scale=True, desc="dump-features") as progress,
    ):
        for buffer in buffered(read_lines(sentences), lambda line: len(line.split())):
            tokens = [line.split() for line in buffer]
            states = model.embed_batch(tokens, batch_words=batch_words, batch_size=batch_size, progress=progress.update)
            for line, sentence_states in zip(buffer, states, strict=True):
                writer.add(Sentence(line.split(), line), converted(select(sentence_states.numpy()), dtype, line))


def converted(states: np.ndarray, dtype: str, line: str) -> np.ndarray:
    """The layer states of a line in the type of the file.

    Numbers that are too large for it or not finite are an `InputError`.
    """
    which = f'the states of the line "{shortened(line.strip())}"'
    if not all_finite(states):
        raise InputError(f"{which} are not finite: the model or its word vectors are damaged, get them again")
    try:
        with np.errstate(over="raise"):
            return states.astype(dtype, copy=False)
    except FloatingPointError:
        largest = f"{np.finfo(dtype).max:,.0f}"
        raise InputError(f"{which} are too large for {dtype}, which ends at {largest}: write float32") from None


def layer_selection(layers: str, count: int) -> tuple[Callable[[np.ndarray], np.ndarray], list[str]]:
    """A function that takes the chosen layers from [L + 1, n, 2P], and the names of the layers that it gives."""
    if layers == "all":
        return (lambda states: states), [str(layer) for layer in range(count)]
    if layers == "top":
        return (lambda states: states[-1]), ["top"]
    if layers == "average":
        return (lambda states: states.mean(axis=0)), ["average"]
    try:
        chosen = [int(layer) for layer in layers.split(",")]
    except ValueError:
        chosen = []
    if not chosen or not all(0 <= layer < count for layer in chosen):
        raise InputError(
            f"--layers takes indices from 0 to {count - 1}, such as 0,{count - 1}; not {shortened(layers)!r}"
        )
    return (lambda states: states[chosen]), [str(layer) for layer in chosen]


def count_sentences(path: Path | str, allow_empty: bool) -> tuple[int, int]:
    """Lines and words of a sentence file; empty lines are an `InputError` unless allowed."""
    lines = words = 0
    empty: list[int] = []
    for lines, line in enumerate(read_lines(path), 1):
        in_line = len(line.split())
        words += in_line
        if not in_line:
            empty.append(lines)
    if not lines:
        raise InputError(f"{path} has no lines: give a file with a sentence on each")
    if empty and not allow_empty:
        shown = ", ".join(str(number) for number in empty[:5]) + (", …" if len(empty) > 5 else "")
        raise InputError(
            f"{path} has {len(empty):,} empty lines (line {shown}): remove them, or write empty arrays for them with "
            "--allow-empty"
        )
    return lines, words
