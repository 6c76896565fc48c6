"""`elmoc check`: are the files of corpora, models and runs, and feature files, as they
were written?
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from elmoc.errors import InputError, describe_error, say

if TYPE_CHECKING:
    from elmoc.files.checksums import FileChecksum

# Reads a file, and raises an error where it is damaged.
Check = Callable[[], object]


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
    """Read each path whole, and print which parts of it are sound.

    Raises:
        InputError: a file is damaged.
    """
    damage: list[str] = []
    for path in options.paths:
        say(path)
        damage += _damage_of(Path(path), options.vectors)
    if damage:
        more = f" (and {len(damage) - 1} more, see above)" if len(damage) > 1 else ""
        raise InputError(f"{damage[0]}{more}")


def _damage_of(path: Path, vectors: str | None) -> list[str]:
    """A sentence for each damaged file of a path; they are printed."""
    from elmoc.process import progress_bar

    try:
        checks = _checks(path, vectors)
    except Exception as error:
        sentence = describe_error(error)
        say(f"    {sentence}")
        return [sentence]
    damage = []
    for group, reads in checks.items():
        bar = progress_bar(iterable=reads, desc=f"  {group}", delay=2, leave=False)
        found = [sentence for sentence in map(_damage, bar) if sentence]
        said = f"{len(found)} of {len(reads)} damaged" if found else "sound"
        say(f"  {group}: {said}")
        for sentence in found:
            say(f"    {sentence}")
        damage += found
    return damage


def _damage(read: Check) -> str:
    """A sentence for a damaged file; an empty one for a sound file."""
    try:
        read()
    except Exception as error:
        return describe_error(error)
    return ""


def _checks(path: Path, vectors: str | None) -> dict[str, list[Check]]:
    """Functions that read each file of a path, by the group under which the files are
    reported.
    """
    from elmoc.corpus import Corpus
    from elmoc.features.reader import FeatureFile
    from elmoc.files.checksums import check_archive
    from elmoc.model_directory import open_model_vectors, read_model_directory
    from elmoc.word_vectors.table import VectorTable

    if path.is_file():
        return {"features": [FeatureFile(path).check]}
    checks = {}
    if (path / "corpus.json").exists():
        corpus = Corpus(path)
        checks["corpus"] = _whole(corpus.checksums)
        for record in sorted((path / "vectors").glob("*.json")):
            table = VectorTable(corpus, record.stem)
            checks[f"vectors/{record.stem}"] = _whole(table.checksums)
        return checks
    checkpoints = sorted((path / "checkpoints").glob("*.pt"))
    model = path / "model" if checkpoints else path
    if model.exists() or not checkpoints:
        # Its files are not checked here: they are read below.
        directory = read_model_directory(model, check_files=False)
        checks["model"] = _whole(directory.checksums)
        if directory.stored_vectors is None:
            # Opening compares the fingerprint, which is of blocks spread over the file.
            checks["word vectors"] = [partial(open_model_vectors, directory, vectors)]
    if checkpoints:
        checks["checkpoints"] = [partial(check_archive, file) for file in checkpoints]
    return checks


def _whole(checksums: Mapping[Path, "FileChecksum"]) -> list[Check]:
    """Functions that read files, and compare them with their checksums."""
    return [
        partial(checksum.check_whole, file)
        for file, checksum in checksums.items()
        # The output layers may have been left out of a copy of a model; the files of a
        # corpus have been found when it was opened.
        if file.exists()
    ]
