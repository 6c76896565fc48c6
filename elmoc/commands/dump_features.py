"""`elmoc dump-features`: the command that turns sentences into feature files."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from elmoc.commands import ModelOptions
from elmoc.errors import InputError, printable, say, shortened
from elmoc.features.options import DumpOptions
from elmoc.process import connected, torchrun_numbers
from elmoc.settings import Precision

# Word types without a vector that are printed.
SHOWN_WORDS = 5


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """The files, and how the model is opened."""

    files: Annotated[
        list[str],
        Meta(
            description="SENTENCES OUTPUT.h5, or with --output-dir any number of "
            "SENTENCES: files, folders, or quoted globs (- is standard input) of text "
            "with one tokenised sentence a line, words split on white space (plain, "
            ".gz, .bz2, .xz, .zst), of documents (.jsonl: doc_key and sentences), or "
            "of rows (.jsonl, .csv, .tsv, .parquet)",
            extra={"metavar": "FILE"},
        ),
    ]
    output_dir: Annotated[
        str | None,
        Meta(
            description="in place of OUTPUT.h5: a.txt becomes DIR/a.h5",
            extra={"metavar": "DIR"},
        ),
    ] = None
    device: Annotated[str, Meta(description="auto, cpu, cuda or cuda:N")] = "cpu"
    precision: Annotated[
        Precision,
        Meta(
            description="type of factors in matrix products; auto is bf16 where the "
            "hardware has it, and for a CPU kernels are there, and of a packed model "
            "on most CPUs int8, which is for CPUs alone, faster, and less precise"
        ),
    ] = "auto"
    subword_pooling: Annotated[
        Literal["first", "last", "mean"] | None,
        Meta(
            description="for a model that reads subwords: the features of a word are "
            "its first subword's (default), its last one's, or the mean of all"
        ),
    ] = None
    dump: DumpOptions = field(default_factory=DumpOptions)


def run(options: Options) -> None:
    """Dump features of files."""
    # Before anything heavy is loaded.
    pairs = inputs_and_outputs(options.files, options.output_dir)
    launched = torchrun_numbers()
    # Each process would get some of the lines.
    if launched["world_size"] > 1 and options.files[0] == "-":
        raise InputError(
            "several processes cannot share standard input: write it to a file first"
        )
    with connected():
        from elmoc.devices import checked_device
        from elmoc.features.dump import dump_features
        from elmoc.model import ElmoC

        device = checked_device(options.device, local_rank=launched["local_rank"])
        model = ElmoC.from_pretrained(
            options.model,
            vectors=options.vectors,
            device=str(device),
            precision=options.precision,
            subword_pooling=options.subword_pooling,
        )
        if launched["rank"] == 0:
            say(f"matrix products in {model.precision} on {model.device}")
        # Recorded in the file, so that it can be made again.
        command_line = printable(" ".join(["elmoc", *sys.argv[1:]]))
        dump_features(model, pairs, options.dump, command_line=command_line)
    unknown = list(model.unknown_words)
    if unknown:
        shown = ", ".join(shortened(word, 40) for word in unknown[:SHOWN_WORDS])
        say(
            f"without a vector in {model.word_vectors.origin}, read as zeros: "
            f"{len(unknown):,} word types, such as {shown}"
        )


def inputs_and_outputs(
    files: Sequence[str], directory: str | None
) -> list[tuple[str, Path]]:
    """Each input and its feature file.

    Raises:
        InputError: an input has no output of its own.
    """
    from elmoc.files.compression import unpacked_name

    if directory is None:
        if len(files) != 2 or files[1] == "-":
            raise InputError(
                "one input and one OUTPUT.h5 are needed; for several inputs, give "
                "--output-dir DIR"
            )
        return [(files[0], Path(files[1]))]
    made: dict[Path, str] = {}
    for file in files:
        output = Path(directory) / f"{Path(unpacked_name(file)).stem}.h5"
        if file == "-" or "*" in output.name or output in made:
            raise InputError(
                f"{file} has no name of its own in {directory}: dump it by itself, "
                "with OUTPUT.h5"
            )
        made[output] = file
    return [(file, output) for output, file in made.items()]
