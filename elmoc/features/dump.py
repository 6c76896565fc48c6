"""`elmoc dump-features`: how does a file of sentences become a feature file?"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from elmoc.errors import InputError
from elmoc.features.layouts.allennlp import write_features
from elmoc.files import human_bytes, read_lines, refuse_existing, require_space
from elmoc.model import SentenceEncoder, load_model
from elmoc.progress import progress_bar

DTYPES = ("float32", "float16")

BUFFER_WORDS = 50_000
"""Sentences are sorted into length buckets within so many words, which bounds the memory of a dump."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc dump-features`."""
    parser.add_argument("model", help="model directory, or run directory")
    parser.add_argument("sentences", help="one tokenised sentence a line, words split on white space (.txt or .gz)")
    parser.add_argument("output", help="the feature file to write (.h5)")
    layers = parser.add_mutually_exclusive_group()
    layers.add_argument("--all", action="store_true", help="all L + 1 layers (the default)")
    layers.add_argument("--top", action="store_true", help="only the top layer")
    layers.add_argument("--average", action="store_true", help="the average of the layers")
    layers.add_argument("--layers", metavar="I,J", help="only these layers, in this order (0 is context-independent)")
    parser.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="of the numbers in the file (default: float32); float16 makes it half as large",
    )
    parser.add_argument("--vectors", help="where the model's word vectors are, if they have moved")
    parser.add_argument("--batch-size", type=int, default=256, help="sentences a batch at most (default: 256)")
    parser.add_argument("--batch-words", type=int, default=4096, help="padded words a batch at most (default: 4096)")
    device = parser.add_mutually_exclusive_group()
    device.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    device.add_argument("--cuda-device", type=int, metavar="N", help="the same as --device cuda:N; -1 is the CPU")
    parser.add_argument("--forget-sentences", action="store_true", help="leave the sentence_to_index map out")
    parser.add_argument("--allow-empty", action="store_true", help="write an array of no words for an empty line")


def run(arguments: argparse.Namespace) -> None:
    """Dump features as the parsed command line says."""
    device = arguments.device
    if arguments.cuda_device is not None:
        device = "cpu" if arguments.cuda_device < 0 else f"cuda:{arguments.cuda_device}"
    for option in ("batch_size", "batch_words"):
        if getattr(arguments, option) < 1:
            raise InputError(f"--{option.replace('_', '-')} must be at least 1")
    refuse_existing(arguments.output)
    model = load_model(arguments.model, vectors=arguments.vectors, device=device)
    chosen = "all" if arguments.layers is None else arguments.layers
    kind = "top" if arguments.top else "average" if arguments.average else chosen
    dump_features(
        model,
        arguments.sentences,
        arguments.output,
        layers=kind,
        dtype=arguments.dtype,
        batch_size=arguments.batch_size,
        batch_words=arguments.batch_words,
        sentence_map=not arguments.forget_sentences,
        allow_empty=arguments.allow_empty,
        command_line=" ".join(["elmoc", *sys.argv[1:]]),
    )


def dump_features(
    model: SentenceEncoder,
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
    with (
        write_features(output, attributes, sentence_map=sentence_map) as writer,
        progress_bar(total=words, unit=" words", unit_scale=True, desc="dump-features") as progress,
    ):
        for buffer in buffers(sentences, BUFFER_WORDS):
            tokens = [line.split() for line in buffer]
            states = model.layer_states(
                tokens, batch_words=batch_words, batch_size=batch_size, progress=progress.update
            )
            for line, sentence_states in zip(buffer, states, strict=True):
                writer.add(line, converted(select(sentence_states.numpy()), dtype, line))


def converted(states: np.ndarray, dtype: str, line: str) -> np.ndarray:
    """The states of a line in the type of the file; numbers that are too large for it are an `InputError`."""
    try:
        with np.errstate(over="raise"):
            return states.astype(dtype, copy=False)
    except FloatingPointError:
        text = line.strip()
        shown = text if len(text) <= 80 else text[:79] + "…"
        largest = f"{np.finfo(dtype).max:,.0f}"
        raise InputError(
            f'the states of the line "{shown}" are too large for {dtype}, which ends at {largest}: write float32'
        ) from None


def layer_selection(layers: str, count: int) -> tuple[Callable[[np.ndarray], np.ndarray], list[str]]:
    """What to do with [L + 1, n, 2P] for a choice of layers, and the names of the layers that come out."""
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
        raise InputError(f"--layers takes indices from 0 to {count - 1}, such as 0,{count - 1}; not {layers!r}")
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
        raise InputError(f"{path} has no lines")
    if empty and not allow_empty:
        shown = ", ".join(str(number) for number in empty[:5]) + (", …" if len(empty) > 5 else "")
        raise InputError(
            f"{path} has {len(empty):,} empty lines (line {shown}): remove them, or write empty arrays for them with "
            "--allow-empty"
        )
    return lines, words


def buffers(path: Path | str, words: int) -> Iterator[Sequence[str]]:
    """The lines of a file in runs of about `words` words."""
    run: list[str] = []
    in_run = 0
    for line in read_lines(path):
        run.append(line)
        in_run += len(line.split())
        if in_run >= words:
            yield run
            run, in_run = [], 0
    if run:
        yield run
