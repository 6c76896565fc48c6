"""Checks: whether the files of corpora, models, runs and feature files are as they were written."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from elmoc.corpus import Corpus
from elmoc.errors import InputError, describe_error, reading
from elmoc.features.reader import FeatureFile
from elmoc.files.checksums import Progress, check_archive
from elmoc.files.writing import human_bytes
from elmoc.model_directory import ModelDirectory, open_model_vectors, read_model_directory
from elmoc.process import progress_bar
from elmoc.word_vectors.table import VectorTable


class CheckedPart(NamedTuple):
    """A part of what is checked.

    group: what it is called together with the others of its kind.
    bytes: how much is read.
    check: reads it with `progress`, and raises where it is damaged.
    """

    group: str
    bytes: int
    check: Callable[..., object]


def check(path: Path | str, *, vectors: str | None = None) -> list[str]:
    """Read a corpus, run or model directory or a feature file whole, and print which parts of it are sound.

    `vectors` is where a model's word vectors are now, when they are not where they were in training.
    Returns a sentence for each part that is damaged or missing.
    """
    print(path)
    started = time.perf_counter()
    try:
        with reading(path):
            parts = list(_parts(Path(path), vectors))
    except (InputError, OSError) as error:
        print(f"    {describe_error(error)}")
        return [describe_error(error)]
    found = []
    for group, of_group in groupby(parts, lambda part: part.group):
        members = list(of_group)
        size, damaged = sum(part.bytes for part in members), []
        with progress_bar(total=size, unit="B", unit_scale=True, desc=f"  {group}", delay=2, leave=False) as bar:
            for part in members:
                try:
                    part.check(progress=bar.update)
                except Exception as error:
                    damaged.append(describe_error(error))
        print(f"  {group}: {human_bytes(size)}, {f'{len(damaged)} of {len(members)} damaged' if damaged else 'sound'}")
        print("".join(f"    {sentence}\n" for sentence in damaged), end="")
        found += damaged
    total, seconds = sum(part.bytes for part in parts), time.perf_counter() - started
    print(f"  {human_bytes(total)} in {seconds:.1f} s ({human_bytes(total / seconds)}/s)")
    return found


def _parts(path: Path, vectors: str | None) -> Iterator[CheckedPart]:
    if (path / "corpus.json").exists():
        corpus = Corpus(path)
        for file, checksum in corpus.checksums.items():
            group = "shards" if file.parent.name == "shards" else file.name
            yield CheckedPart(group, _size(file), partial(checksum.check_whole, file))
        for description in sorted((path / "vectors").glob("*.json")):
            size = _size(description.with_suffix(".npy"))
            yield CheckedPart(f"vectors/{description.stem}", size, partial(_check_table, corpus, description.stem))
    elif (path / "checkpoints").is_dir():
        if (path / "model" / "config.json").exists():
            yield from _model_parts(path / "model", vectors)
        for file in sorted((path / "checkpoints").glob("*.pt")):
            yield CheckedPart("checkpoints", _size(file), partial(check_archive, file))
    elif (path / "config.json").exists():
        yield from _model_parts(path, vectors)
    elif path.is_dir():
        raise InputError(f"{path} is neither a corpus, nor a run, nor a model: name one of these, or a feature file")
    else:
        with FeatureFile(path):  # one that cannot be opened is said at once
            yield CheckedPart("features", _size(path), partial(_check_features, path))


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _check_table(corpus: Corpus, name: str, *, progress: Progress) -> None:
    for file, checksum in VectorTable(corpus, name).checksums.items():
        checksum.check_whole(file, progress=progress)


def _model_parts(path: Path, vectors: str | None) -> Iterator[CheckedPart]:
    model = read_model_directory(path)
    for file, checksum in model.checksums.items():
        if file.exists():  # the output layers may have been left out
            yield CheckedPart("model", _size(file), partial(checksum.check_whole, file))
    if model.stored_vectors is None:
        size = _size(Path(vectors or model.word_vectors.origin))
        yield CheckedPart("word vectors", size, partial(_check_vectors, model, vectors))


def _check_vectors(model: ModelDirectory, vectors: str | None, *, progress: Progress) -> None:
    """Open the word vectors that a model reads; they have its fingerprint, which is of blocks spread over the file."""
    open_model_vectors(model, vectors)
    progress(_size(Path(vectors or model.word_vectors.origin)))


def _check_features(path: Path, *, progress: Progress) -> None:
    with FeatureFile(path) as features:
        share = _size(path) // max(1, len(features))
        features.check(lambda sentences: progress(sentences * share))
