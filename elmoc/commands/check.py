"""`elmoc check`: are files as they were written, by the checksums beside them or in the
record of their directory?
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from elmoc.errors import InputError, describe_error, reading, say

if TYPE_CHECKING:
    from elmoc.files.checksums import FileChecksum

# For each file a function that reads it, and raises an error where it is damaged, or
# says why that cannot be known.
Checks = dict[Path, Callable[[], str | None]]
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
        said = f"{len(unknown)} without a checksum" if unknown else "sound"
        say(f"{path}: {len(found)} damaged" if found else f"{path}: {said}")
        for sentence in found + unknown:
            say(f"    {sentence}")
    if damage:
        more = f" (and {len(damage) - 1} more, see above)" if len(damage) > 1 else ""
        raise InputError(f"{damage[0]}{more}")


def read_files(path: str, vectors: str | None) -> tuple[list[str], list[str]]:
    """A sentence for each damaged file of a path, and for each without a checksum."""
    from elmoc.process import progress_bar

    damage = []
    said: dict[Path, str | None] = {}
    for find in (_files, partial(_opened, vectors=vectors)):
        try:
            checks = find(Path(os.path.abspath(path)))
        except Exception as error:
            damage.append(describe_error(error))
            break
        bar = progress_bar(iterable=checks.items(), desc="check", delay=2, leave=False)
        for file, check in bar:
            try:
                said[file] = check()
            except Exception as error:
                damage.append(describe_error(error))
        # A damaged record may name any file: it is not opened.
        if damage:
            break
    return damage, [f"{file} {reason}" for file, reason in said.items() if reason]


def _files(path: Path) -> Checks:
    """How each file of a path is checked."""
    from elmoc.files.checksums import FileChecksum
    from elmoc.files.records import read_json
    from elmoc.model_directory import CARD
    from elmoc.settings import convert

    if path.is_file():
        return {path: partial(_check_file, path, is_named=True)}
    checks: Checks = {}
    for file in sorted(path.rglob("*")):
        # Hidden files are no part of what we write.
        if file.is_file() and "/." not in str(file).removeprefix(str(path)):
            checks[file] = partial(_check_file, file)
    for record in list(checks):
        if not any(map(record.match, _RECORDS)):
            continue
        # A damaged one has a checksum itself.
        with suppress(InputError), reading(record):
            listed = read_json(record).get("checksums", {})
            for name, checksum in convert(listed, dict[str, FileChecksum]).items():
                file = record.parent / name
                # The output layers may have been left out of a copy of a model.
                if file in checks:
                    check = _check_card if name == CARD else FileChecksum.check_whole
                    checks[file] = partial(check, checksum, file)
    return checks


def _opened(path: Path, *, vectors: str | None) -> Checks:
    """Open a directory, of which a file may be missing, or be of another version; how
    the word vectors of a model are checked, which may be elsewhere.
    """
    from elmoc.corpus import Corpus
    from elmoc.model_directory import open_model_vectors, read_model_directory
    from elmoc.word_vectors.table import VectorTable

    model = path / "model" if (path / "checkpoints").is_dir() else path
    if (path / "corpus.json").exists():
        corpus = Corpus(path)
        for record in sorted((path / "vectors").glob("*.json")):
            VectorTable(corpus, record.stem)
    if (model / "config.json").exists() or not path.exists():
        directory = read_model_directory(model, check_files=False)
        origin = Path(open_model_vectors(directory, vectors).origin)
        source = directory.word_vectors
        checksum = source.checksum or directory.checksums.get(model / source.file_name)
        if checksum is not None:
            return {origin: partial(checksum.check_whole, origin)}
        if origin.is_file():
            return {origin: partial(_check_file, origin)}
    return {}


def _check_card(checksum: "FileChecksum", card: Path) -> str | None:
    """Compare the card of a model, which is its user's to change."""
    is_own = checksum == checksum.of(card)
    return None if is_own else "was changed since it was written"


def _check_file(file: Path, *, is_named: bool = False) -> str | None:
    """Check a file by the checksum beside it; without one, read its structure.

    Args:
        file: of any kind.
        is_named: whether the user has named it, and not its directory: then it is a
            feature file, or word vectors.
    """
    from elmoc.features.reader import FeatureFile
    from elmoc.files.checksums import check_archive, check_beside
    from elmoc.word_vectors.opening import open_word_vectors

    if file.suffix == ".xxh3" or check_beside(file):
        return None
    if file.suffix == ".pt":
        check_archive(file)
    elif is_named and file.suffix in (".bin", ".vec", ".safetensors"):
        open_word_vectors(file)
    elif is_named or file.suffix == ".h5":
        FeatureFile(file).check()
    return "has no checksum: at most its structure was read"
