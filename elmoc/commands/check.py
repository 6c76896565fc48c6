"""`elmoc check`: are the files of corpora, models and runs, and feature files, as they
were written?
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from elmoc.errors import InputError, describe_error, say

# Functions that read a file each, and raise an error where it is damaged, by the group
# under which the files are reported.
Checks = dict[str, list[Callable[[], object]]]


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
        found = []
        for read in bar:
            try:
                read()
            except Exception as error:
                found.append(describe_error(error))
        said = f"{len(found)} of {len(reads)} damaged" if found else "sound"
        say(f"  {group}: {said}")
        for sentence in found:
            say(f"    {sentence}")
        damage += found
    return damage


def _checks(path: Path, vectors: str | None) -> Checks:
    """What is to be read of a path."""
    from elmoc.features.reader import FeatureFile
    from elmoc.files.checksums import check_archive

    if (path / "corpus.json").exists():
        return _checks_of_corpus(path)
    if path.is_file():
        return {"features": [FeatureFile(path).check]}
    checks: Checks = defaultdict(list)
    model = path / "model" if (path / "checkpoints").is_dir() else path
    if (model / "config.json").exists():
        checks |= _checks_of_model(model, vectors)
    for file in sorted((path / "checkpoints").glob("*.pt")):
        checks["checkpoints"].append(partial(check_archive, file))
    if not checks:
        raise InputError(
            f"{path} is neither a corpus, nor a run, nor a model: name one of these, "
            "or a feature file"
        )
    return checks


def _checks_of_corpus(path: Path) -> Checks:
    from elmoc.corpus import Corpus
    from elmoc.word_vectors.table import VectorTable

    checks: Checks = defaultdict(list)
    corpus = Corpus(path)
    for file, checksum in corpus.checksums.items():
        group = "shards" if file.parent.name == "shards" else file.name
        checks[group].append(partial(checksum.check_whole, file))
    for record in sorted((path / "vectors").glob("*.json")):
        table = VectorTable(corpus, record.stem)
        for file, checksum in table.checksums.items():
            group = f"vectors/{record.stem}"
            checks[group].append(partial(checksum.check_whole, file))
    return checks


def _checks_of_model(path: Path, vectors: str | None) -> Checks:
    from elmoc.model_directory import open_model_vectors, read_model_directory

    checks: Checks = defaultdict(list)
    # Its files are not checked here: they are read below.
    model = read_model_directory(path, check_files=False)
    for file, checksum in model.checksums.items():
        # The output layers may have been left out of a copy.
        if file.exists():
            checks["model"].append(partial(checksum.check_whole, file))
    if model.stored_vectors is None:
        # Opening compares the fingerprint, which is of blocks spread over the file.
        checks["word vectors"].append(partial(open_model_vectors, model, vectors))
    return checks
