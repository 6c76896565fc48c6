"""`elmoc dump-features`: the command line that turns files of sentences into feature files."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from elmoc.errors import InputError, shortened
from elmoc.features.layout_names import LAYOUT_NAMES, require_layout_of_keys
from elmoc.process import interrupted_by_sigterm

SUMMARY = "write the layer states of sentences to an HDF5 file"
DTYPES = ("float32", "float16")
PRECISIONS = ("auto", "float32", "bf16")
SHOWN_WORDS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc dump-features`."""
    parser.usage = (
        "%(prog)s MODEL SENTENCES OUTPUT.h5 [options]\n       %(prog)s MODEL SENTENCES... --output-dir DIR [options]"
    )
    parser.add_argument("model", help="model directory, run directory, or name on a model hub")
    parser.add_argument(
        "files",
        nargs="+",
        metavar="SENTENCES",
        help="one tokenised sentence a line, words split on white space (.txt or .gz; - is standard input), or "
        "documents (.jsonl, .jsonlines: doc_key and sentences); then the feature file to write (.h5), if there is no "
        "--output-dir",
    )
    parser.add_argument("--output-dir", metavar="DIR", help="write a feature file of each input there, a.h5 of a.txt")
    _add_what(parser)
    _add_how(parser)


def _add_what(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what is written")
    layers = group.add_mutually_exclusive_group()
    layers.add_argument("--all", action="store_true", help="all L + 1 layers (the default)")
    layers.add_argument("--top", action="store_true", help="only the top layer")
    layers.add_argument("--average", action="store_true", help="the average of the layers")
    layers.add_argument("--layers", metavar="I,J", help="only these layers, in this order (0 is context-independent)")
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="of the numbers in the file (default: float32); float16 makes it half as large",
    )
    group.add_argument(
        "--format", choices=tuple(LAYOUT_NAMES), default="allennlp", help="layout of the file (default: allennlp)"
    )
    group.add_argument("--compress", action="store_true", help="pack the numbers with gzip")
    group.add_argument("--forget-sentences", action="store_true", help="leave the sentence_to_index map out")
    group.add_argument("--use-sentence-keys", action="store_true", help="let the sentence be its key, not its number")
    group.add_argument("--allow-empty", action="store_true", help="write an array of no words for an empty line")
    group.add_argument(
        "--carry-state",
        action="store_true",
        help="carry the state from each sentence of a document to the next; blank lines of a text end a document",
    )


def _add_how(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how it is computed")
    group.add_argument(
        "--resume", action="store_true", help="go on with a dump that was stopped or killed, or start one"
    )
    group.add_argument(
        "--unknown",
        choices=("zero", "error"),
        default="zero",
        help="what a word becomes that the word vectors do not have: zeros (default), or an error",
    )
    group.add_argument("--vectors", help="where the model's word vectors are, if they have moved")
    group.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="auto",
        help="of matrix products; auto: bf16 where the hardware has it",
    )
    group.add_argument(
        "--pooling",
        choices=("first", "last", "mean"),
        help="of a model that reads subwords, which of a word's states are its features: those of its first subword "
        "(default), of its last, or the mean of all",
    )
    group.add_argument("--batch-size", type=int, default=2048, help="sentences a batch at most (default: 2048)")
    group.add_argument("--batch-words", type=int, default=32768, help="words a batch at most (default: 32768)")
    device = group.add_mutually_exclusive_group()
    device.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    device.add_argument("--cuda-device", type=int, metavar="N", help="the same as --device cuda:N; -1 is the CPU")


def run(arguments: argparse.Namespace) -> None:
    """Dump features as the parsed command line says."""
    from elmoc.files.locks import locked

    for option in ("batch_size", "batch_words"):
        if getattr(arguments, option) < 1:
            raise InputError(f"--{option.replace('_', '-')} must be at least 1")
    require_layout_of_keys(arguments.format, sentence_keys=arguments.use_sentence_keys)
    pairs = inputs_and_outputs(arguments.files, arguments.output_dir)
    world_size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if world_size > 1 and any(source == "-" for source, _ in pairs):
        raise InputError("several processes cannot share standard input: write it to a file first")
    with ExitStack() as stack:
        stack.enter_context(interrupted_by_sigterm())
        for _, output in pairs if rank == 0 else ():
            stack.enter_context(locked(output))  # a second dump to the same file is told so at its start
        from elmoc.features.dump import dump_several, has_parts, refuse_output

        for _, output in pairs if rank == 0 and not arguments.resume else ():
            refuse_output(output)
        from elmoc.model import ElmoC

        if world_size > 1:
            stack.enter_context(process_group())
        model = ElmoC.from_pretrained(
            arguments.model,
            vectors=arguments.vectors,
            device=_device(arguments),
            precision=arguments.precision,
            pooling=arguments.pooling,
        )
        if rank == 0:
            print(f"matrix products in {model.precision} on {model.device}")
        try:
            dump_several(model, pairs, _options(arguments))
        except KeyboardInterrupt:
            if any(has_parts(output) for _, output in pairs):
                print("what is done is kept: the same command with --resume goes on", file=sys.stderr)
            raise
        report_unknown(model)


@contextmanager
def process_group() -> Iterator[None]:
    """The processes that `torchrun`, or another launcher, has started; each waits for the others for up to a week."""
    from torch import distributed

    distributed.init_process_group("gloo", timeout=timedelta(days=7))
    try:
        yield
    finally:
        distributed.destroy_process_group()


def inputs_and_outputs(files: list[str], directory: str | None) -> list[tuple[str, Path]]:
    """Each input and the feature file to make of it; raises `InputError`."""
    if directory is None:
        if len(files) != 2:
            raise InputError(
                f"one input and one OUTPUT.h5 are needed, not {len(files)} files ({shortened(' '.join(files))}): for "
                "several inputs, or a name that follows from the input's, give --output-dir DIR"
            )
        if files[1] == "-":
            raise InputError("a feature file cannot be written to standard output: name a file")
        return [(files[0], Path(files[1]))]
    made: dict[Path, str] = {}
    for file in files:
        if file == "-":
            raise InputError("standard input has no name: give OUTPUT.h5 in place of --output-dir")
        name = Path(file).name.removesuffix(".gz")
        output = Path(directory) / f"{Path(name).stem}.h5"
        if other := made.get(output):
            raise InputError(f"{other} and {file} would both be written to {output}: dump them to two directories")
        made[output] = file
    return [(file, output) for output, file in made.items()]


def report_unknown(model: Any) -> None:
    """Say which words had no vector, if any had none."""
    from elmoc.word_vectors.rows import MOST_UNKNOWN

    if words := model.unknown_words:
        count = f"{len(words):,}" if len(words) < MOST_UNKNOWN else f"{MOST_UNKNOWN:,} or more"
        shown = ", ".join(shortened(word, 40) for word in words[:SHOWN_WORDS]) + ", …" * (len(words) > SHOWN_WORDS)
        print(f"{count} word types have no vector in {model.word_vectors.origin}, and were read as zeros: {shown}")


def _device(arguments: argparse.Namespace) -> str:
    """The device that is asked for; `cuda` alone is that of this process, where several share a machine."""
    if arguments.cuda_device is not None:
        return "cpu" if arguments.cuda_device < 0 else f"cuda:{arguments.cuda_device}"
    local = os.environ.get("LOCAL_RANK", "")
    return f"cuda:{local}" if arguments.device == "cuda" and local else arguments.device


def _options(arguments: argparse.Namespace) -> Any:
    from elmoc.features.options import DumpOptions

    chosen = "all" if arguments.layers is None else arguments.layers
    return DumpOptions(
        layers="top" if arguments.top else "average" if arguments.average else chosen,
        dtype=arguments.dtype,
        layout=arguments.format,
        compress=arguments.compress,
        sentence_map=not arguments.forget_sentences,
        sentence_keys=arguments.use_sentence_keys,
        batch_size=arguments.batch_size,
        batch_words=arguments.batch_words,
        allow_empty=arguments.allow_empty,
        carry_state=arguments.carry_state,
        unknown=arguments.unknown,
        resume=arguments.resume,
        command_line=" ".join(["elmoc", *sys.argv[1:]]),
    )
