"""`elmoc check`: are the files of corpora, models and runs, and feature files, as they
were written?
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from elmoc.errors import InputError, describe_error, say


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is read."""

    paths: Annotated[
        list[str],
        Meta(
            description="corpus, run or model directory, or feature file (.h5)",
            extra={"metavar": "PATH"},
        ),
    ]
    vectors: Annotated[
        str | None,
        Meta(description="where a model's word vectors are, if they have moved"),
    ] = None


def run(options: Options) -> None:
    """Read each path whole, and print which of its files are damaged.

    Raises:
        InputError: a file is damaged.
    """
    damage: list[str] = []
    for path in options.paths:
        found = _damage_of(Path(path), options.vectors)
        said = f"{len(found)} damaged" if found else "sound"
        say(f"{path}: {said}")
        for sentence in found:
            say(f"    {sentence}")
        damage += found
    if damage:
        more = f" (and {len(damage) - 1} more, see above)" if len(damage) > 1 else ""
        raise InputError(f"{damage[0]}{more}")


def _damage_of(path: Path, vectors: str | None) -> list[str]:
    """A sentence for each damaged file of a path."""
    from elmoc.process import progress_bar

    damage = []
    try:
        checks = _checks(path, vectors)
    except Exception as error:
        return [describe_error(error)]
    for check in progress_bar(iterable=checks, desc="check", delay=2, leave=False):
        try:
            check()
        except Exception as error:
            damage.append(describe_error(error))
    return damage


def _checks(path: Path, vectors: str | None) -> list[Callable[[], object]]:
    """For each file of a path a function that reads it, and raises an error where it is
    damaged.
    """
    from elmoc.corpus import Corpus
    from elmoc.features.reader import FeatureFile
    from elmoc.files.checksums import FileChecksum, check_archive
    from elmoc.model_directory import open_model_vectors, read_model_directory
    from elmoc.word_vectors.table import VectorTable

    if path.is_file():
        return [FeatureFile(path).check]
    checkpoints = sorted((path / "checkpoints").glob("*.pt"))
    model = path / "model" if checkpoints else path
    others: list[Callable[[], object]] = []
    checksums: dict[Path, FileChecksum] = {}
    if (path / "corpus.json").exists():
        corpus = Corpus(path)
        checksums |= corpus.checksums
        for record in sorted((path / "vectors").glob("*.json")):
            checksums |= VectorTable(corpus, record.stem).checksums
    elif model.exists() or not checkpoints:
        # Its files are not checked here: they are read below.
        directory = read_model_directory(model, check_files=False)
        checksums |= directory.checksums
        if directory.stored_vectors is None:
            # Opening compares the fingerprint, which is of blocks spread over the file.
            others.append(partial(open_model_vectors, directory, vectors))
    others += [partial(check_archive, file) for file in checkpoints]
    # The output layers may have been left out of a copy of a model.
    there = [file for file in checksums if file.exists()]
    return [partial(checksums[file].check_whole, file) for file in there] + others
