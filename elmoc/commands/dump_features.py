"""`elmoc dump-features`: the command line that turns files of sentences into feature
files.
"""

import argparse
import os
import sys
from contextlib import ExitStack
from dataclasses import fields
from datetime import timedelta
from pathlib import Path
from typing import Any

from elmoc.commands.neighbours import positive
from elmoc.errors import InputError, say, shortened
from elmoc.features import LAYOUT_NAMES
from elmoc.process import interrupted_by_sigterm

DTYPES = ("float32", "float16")
# Word types without a vector that are printed.
SHOWN_WORDS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc dump-features`."""
    parser.usage = "%(prog)s MODEL SENTENCES OUTPUT.h5 [options]\n       %(prog)s MODEL SENTENCES... --output-dir DIR [options]"
    parser.add_argument(
        "model", help="model directory, run directory, or name on a model hub"
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="SENTENCES",
        help="one tokenised sentence a line, words split on white space (plain, .gz, .bz2, .xz; - is standard "
        "input), or documents (.jsonl, .jsonlines: doc_key and sentences)",
    )
    # for the help alone: argparse gives all that follows the model to SENTENCES, and
    # `run` takes the last
    parser.add_argument(
        "output", nargs="*", metavar="OUTPUT.h5", help="the feature file to write"
    )
    parser.add_argument(
        "--output-dir",
        metavar="DIR",
        help="in place of OUTPUT.h5: a.txt becomes DIR/a.h5",
    )
    _add_what(parser.add_argument_group("what is written"))
    _add_how(parser.add_argument_group("how it is computed"))


def _add_what(group: Any) -> None:
    """Options that say what is written, each under the name of a field of
    `DumpOptions`.
    """
    layers = group.add_mutually_exclusive_group()
    for choice, text in (
        ("all", "all L + 1 layers (default)"),
        ("top", "the top layer"),
        ("average", "their average"),
    ):
        layers.add_argument(
            f"--{choice}",
            dest="layers",
            action="store_const",
            const=choice,
            default="all",
            help=text,
        )
    layers.add_argument(
        "--layers",
        metavar="I,J",
        help="only these layers, in this order (0 is context-independent)",
    )
    group.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="type of the numbers (default: float32)",
    )
    group.add_argument(
        "--format",
        dest="layout",
        choices=LAYOUT_NAMES,
        default="allennlp",
        help="default: allennlp",
    )
    group.add_argument(
        "--compress", action="store_true", help="pack the numbers with gzip"
    )
    group.add_argument(
        "--forget-sentences",
        dest="sentence_map",
        action="store_false",
        help="leave the sentence_to_index map out",
    )
    group.add_argument(
        "--use-sentence-keys",
        dest="sentence_keys",
        action="store_true",
        help="keys are sentences, not their numbers",
    )
    group.add_argument(
        "--allow-empty",
        action="store_true",
        help="write an array of no words for an empty line",
    )
    group.add_argument(
        "--boundaries",
        action="store_true",
        help="write the states of <s> and </s>, too, before and behind the words' states",
    )
    group.add_argument(
        "--carry-state",
        action="store_true",
        help="carry the state from each sentence of a document to the next; blank lines of a text end a document",
    )


def _add_how(group: Any) -> None:
    group.add_argument(
        "--resume",
        action="store_true",
        help="go on with a dump that was stopped, or start one",
    )
    group.add_argument(
        "--vectors", help="where the model's word vectors are, if they have moved"
    )
    group.add_argument(
        "--precision",
        choices=("auto", "float32", "bf16"),
        default="auto",
        help="type of factors in matrix products; auto: bf16 where the hardware has it",
    )
    group.add_argument(
        "--pooling",
        choices=("first", "last", "mean"),
        help="for a model that reads subwords: the features of a word are its first subword's (default), its last "
        "one's, or the mean of all",
    )
    group.add_argument(
        "--batch-size",
        type=positive,
        default=2048,
        help="sentences a batch at most (default: 2048)",
    )
    group.add_argument(
        "--batch-words",
        type=positive,
        default=32768,
        help="words a batch at most (default: 32768)",
    )
    group.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")


def run(arguments: argparse.Namespace) -> None:
    """Dump features as the parsed command line says."""
    from elmoc.files.writing import locked

    pairs = inputs_and_outputs(arguments.files, arguments.output_dir)
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    if world_size > 1 and any(source == "-" for source, _ in pairs):
        raise InputError(
            "several processes cannot share standard input: write it to a file first"
        )
    with ExitStack() as stack:
        stack.enter_context(interrupted_by_sigterm())
        for _, output in pairs if rank == 0 else ():
            stack.enter_context(
                locked(output)
            )  # a second dump to the same file is told so at its start
        from elmoc.features.dump import DumpOptions, dump_features, refuse_output

        given = {
            each.name: getattr(arguments, each.name)
            for each in fields(DumpOptions)
            if each.name in arguments
        }
        options = DumpOptions(**given, command_line=" ".join(["elmoc", *sys.argv[1:]]))
        for _, output in pairs if rank == 0 and not options.resume else ():
            refuse_output(output)
        from torch import distributed

        from elmoc.model import ElmoC

        if world_size > 1:  # each process waits for the others for up to a week
            distributed.init_process_group("gloo", timeout=timedelta(days=7))
            stack.callback(distributed.destroy_process_group)
        local = os.environ.get("LOCAL_RANK", "")
        model = ElmoC.from_pretrained(
            arguments.model,
            vectors=arguments.vectors,
            device=f"cuda:{local}"
            if arguments.device == "cuda" and local
            else arguments.device,
            precision=arguments.precision,
            pooling=arguments.pooling,
        )
        if rank == 0:
            say(f"matrix products in {model.precision} on {model.device}")
        dump_features(model, pairs, options)
        if words := list(model.unknown_words):
            shown = ", ".join(
                shortened(word, 40) for word in words[:SHOWN_WORDS]
            ) + ", …" * (len(words) > SHOWN_WORDS)
            say(
                f"without a vector in {model.word_vectors.origin}, read as zeros: {len(words):,} word types ({shown})"
            )


def inputs_and_outputs(
    files: list[str], directory: str | None
) -> list[tuple[str, Path]]:
    """Each input and the feature file to make of it; raises `InputError`."""
    from elmoc.files.compression import unpacked_name

    if directory is None:
        if len(files) != 2 or files[1] == "-":
            raise InputError(
                "one input and one OUTPUT.h5 are needed; for several inputs, give --output-dir DIR"
            )
        return [(files[0], Path(files[1]))]
    made: dict[Path, str] = {}
    for file in files:
        output = Path(directory) / f"{Path(unpacked_name(file)).stem}.h5"
        if file == "-" or output in made:
            raise InputError(
                f"{file} has no name of its own in {directory}: dump it by itself, with OUTPUT.h5"
            )
        made[output] = file
    return [(file, output) for output, file in made.items()]
