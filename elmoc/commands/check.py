"""`elmoc check`: are files as they were written, by the checksums beside them or in the
record of their directory?
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from elmoc.errors import InputError, describe_error, reading, say
from elmoc.sharing.installed import installed_models

# Reads a file: it raises an error where that is damaged, and returns a sentence where
# this cannot be known.
Check = Callable[[], list[str] | None]
# Hidden files, and Python's own of an installed model, are no part of what we write.
_NOT_OURS = re.compile(r"/(\.|__init__\.py$|__pycache__/)")
# Records that hold the checksums of other files, by their paths from their folder.
_RECORDS = ("corpus.json", "vectors/*.json", "config.json", "probe.json")


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is read."""

    paths: Annotated[
        list[str],
        Meta(
            description="corpus, run, model or other directory, or a file",
            extra={"metavar": "PATH"},
        ),
    ]
    vectors: Annotated[
        str | None,
        Meta(description="where a model's word vectors are, if they have moved"),
    ] = None


def run(options: Options) -> None:
    """Read each path whole, and print which of its files are damaged, and which have no
    checksum.

    Raises:
        InputError: a file is damaged.
    """
    damage: list[str] = []
    for path in options.paths:
        found, unknown = read_files(path, options.vectors)
        damage += found
        said = f"{len(unknown)} unchecked" if unknown else "sound"
        say(f"{path}: {len(found)} damaged" if found else f"{path}: {said}")
        for sentence in found + unknown:
            say(f"    {sentence}")
    if damage:
        more = f" (and {len(damage) - 1} more, see above)" if len(damage) > 1 else ""
        raise InputError(f"{damage[0]}{more}")


def read_files(path: str, vectors: str | None) -> tuple[list[str], list[str]]:
    """A sentence for each damaged file of a path, and for each of which this cannot be
    known.
    """
    from elmoc.process import progress_bar

    damage: list[str] = []
    unknown: list[str] = []
    place = Path(path)
    checks = _checks(
        place if place.exists() else installed_models().get(path, place), vectors
    )
    for check in progress_bar(iterable=checks, desc="check", delay=2, leave=False):
        try:
            # The last opens a directory, which a damaged record keeps it from.
            if check is not checks[-1] or not damage:
                unknown += check() or []
        except Exception as error:
            damage.append(describe_error(error))
    return damage, unknown


def _checks(path: Path, vectors: str | None) -> list[Check]:
    """How each file is checked, and all together."""
    from elmoc.files.checksums import FileChecksum
    from elmoc.files.records import read_json
    from elmoc.model_directory import CARD, OUTPUT_LAYERS
    from elmoc.settings import convert

    if path.is_file():
        return [partial(_check_file, path)]
    checks: dict[Path, Check] = {
        file: partial(_check_file, file)
        for file in sorted(path.rglob("*"))
        if file.is_file() and not _NOT_OURS.search(f"/{file.relative_to(path)}")
    }
    for record in [file for file in checks if any(map(file.match, _RECORDS))]:
        # A damaged one is told by its own checksum.
        with suppress(InputError), reading(record):
            listed = read_json(record).get("checksums", {})
            for name, checksum in convert(listed, dict[str, FileChecksum]).items():
                file = record.parent / name
                # The card is its user's to change, and output layers may have been left
                # out of a copy; all else is missing.
                if name != CARD and (name != OUTPUT_LAYERS or file.exists()):
                    checks[file] = partial(checksum.check_whole, file)
                else:
                    checks.pop(file, None)
    return [*checks.values(), partial(_open, path, vectors)]


def _open(path: Path, vectors: str | None) -> list[str]:
    """Open a directory, of which a file may be missing, or be of another version, and
    check the word vectors of a model, which may be elsewhere.
    """
    from elmoc.model_directory import open_model_vectors, read_model_directory
    from elmoc.word_vectors.joined import JoinedVectors

    unknown: list[str] = []
    model = path / "model" if (path / "checkpoints").is_dir() else path
    # Other directories, of a corpus, results or a probe, are no more than their files.
    if (model / "config.json").exists() or not any(path.glob("[!.]*")):
        directory = read_model_directory(model, check_files=False)
        opened = open_model_vectors(directory, vectors)
        origin = Path(opened.origin)
        # The record of joined vectors says nothing of the files that it joins.
        files = [
            Path(part.origin)
            for part in (opened.parts if isinstance(opened, JoinedVectors) else ())
            if part.origin != opened.origin
        ]
        source = directory.word_vectors
        checksum = source.checksum or directory.checksums.get(model / source.file_name)
        if checksum is not None:
            checksum.check_whole(origin)
        else:
            files.append(origin)
        for file in filter(Path.is_file, files):
            unknown += _check_file(file)
    return unknown


def _check_file(file: Path) -> list[str]:
    """Check a file by the checksum beside it."""
    from elmoc.files.checksums import check_beside

    if file.suffix == ".xxh3":
        beside = file.with_suffix("")
        return [] if beside.exists() else [f"{beside} is missing: {file.name} is there"]
    return [] if check_beside(file) else [f"{file} has no checksum: it was not read"]
