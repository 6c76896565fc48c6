"""`elmoc check`: are the files of corpora, models and runs, and feature files, as they
were written?
"""

import argparse
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path

from elmoc.errors import InputError, describe_error, say

# the group of files that a file is told of with, and what reads it and raises where it
# is damaged
Check = tuple[str, Callable[[], object]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `elmoc check`."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="corpus, run or model directory, or feature file (.h5)",
    )
    parser.add_argument(
        "--vectors", help="where a model's word vectors are, if they have moved"
    )


def run(arguments: argparse.Namespace) -> None:
    """Read each path whole, and print which parts of it are sound; damage is an
    `InputError`.
    """
    from elmoc.process import progress_bar

    damaged: list[str] = []

    def attempt(read: Callable[[], object]) -> object:
        try:
            return read()
        except Exception as error:
            damaged.append(describe_error(error))
            return None

    for path in arguments.paths:
        say(path)
        before = len(damaged)
        parts = attempt(partial(_parts, Path(path), arguments.vectors))
        for sentence in damaged[before:]:
            say(f"    {sentence}")
        for group, members in groupby(
            parts if isinstance(parts, list) else [], lambda part: part[0]
        ):
            files = list(members)
            before = len(damaged)
            for _, read in progress_bar(
                iterable=files, desc=f"  {group}", delay=2, leave=False
            ):
                attempt(read)
            found = len(damaged) - before
            say(
                f"  {group}: {f'{found} of {len(files)} damaged' if found else 'sound'}"
            )
            for sentence in damaged[before:]:
                say(f"    {sentence}")
    if damaged:
        raise InputError(
            damaged[0]
            + f" (and {len(damaged) - 1} more, see above)" * (len(damaged) > 1)
        )


def _parts(path: Path, vectors: str | None) -> list[Check]:
    """What is to be read of a path."""
    from elmoc.corpus import Corpus
    from elmoc.features.reader import FeatureFile
    from elmoc.files.checksums import check_archive
    from elmoc.model_directory import open_model_vectors, read_model_directory
    from elmoc.word_vectors.table import VectorTable

    parts: list[Check] = []
    if (path / "corpus.json").exists():
        corpus = Corpus(path)
        for file, checksum in corpus.checksums.items():
            group = "shards" if file.parent.name == "shards" else file.name
            parts.append((group, partial(checksum.check_whole, file)))
        for name in sorted(file.stem for file in (path / "vectors").glob("*.json")):
            for file, checksum in VectorTable(corpus, name).checksums.items():
                parts.append((f"vectors/{name}", partial(checksum.check_whole, file)))
        return parts
    model_path = path / "model" if (path / "checkpoints").is_dir() else path
    if (model_path / "config.json").exists():
        model = read_model_directory(
            model_path, check_files=False
        )  # all of them are read below
        for file, checksum in model.checksums.items():
            if file.exists():  # the output layers may have been left out
                parts.append(("model", partial(checksum.check_whole, file)))
        if (
            model.stored_vectors is None
        ):  # they have its fingerprint, which is of blocks spread over the file
            parts.append(("word vectors", partial(open_model_vectors, model, vectors)))
    for file in sorted((path / "checkpoints").glob("*.pt")):
        parts.append(("checkpoints", partial(check_archive, file)))
    if not path.is_dir():
        parts.append(("features", FeatureFile(path).check))
    if not parts:
        raise InputError(
            f"{path} is neither a corpus, nor a run, nor a model: name one of these, or a feature file"
        )
    return parts
