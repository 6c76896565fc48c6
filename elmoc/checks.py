"""Checks: corpora, models, runs and feature files, read whole and compared with what was written down of them."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np

from elmoc.corpus import ADVICE as CORPUS_ADVICE
from elmoc.corpus import Corpus, Shard
from elmoc.errors import InputError, reason
from elmoc.features.reader import FeatureFile
from elmoc.files.archives import check_archive
from elmoc.files.checksums import FileChecksum
from elmoc.files.text import require_file
from elmoc.files.writing import human_bytes
from elmoc.model_directory import ADVICE as MODEL_ADVICE
from elmoc.model_directory import (
    HEADS,
    WEIGHTS,
    ModelDirectory,
    bundled_vectors,
    open_model_vectors,
    read_model_directory,
)
from elmoc.progress import progress_bar
from elmoc.word_vectors.table import ADVICE as TABLE_ADVICE
from elmoc.word_vectors.table import VectorTable, count_zero_rows

Progress = Callable[[int], object]
"""Called with the bytes that have been read since the last call."""


@dataclass(frozen=True)
class Part:
    """A part of what is checked.

    group: what it is called together with the others of its kind.
    bytes: how much is read.
    check: reads it, raises `InputError` where it is damaged, and returns whether it has checksums.
    """

    group: str
    bytes: int
    check: Callable[[Progress], bool]


def check(path: Path | str, *, vectors: str | None = None) -> list[str]:
    """Read a corpus, run or model directory or a feature file whole, and print which parts of it are sound.

    `vectors` is where a model's word vectors are now, when they are not where they were in training.
    Returns a sentence for each part that is damaged or missing.
    """
    print(path)
    try:
        parts = list(_parts(Path(path), vectors))
        if not parts:
            raise InputError(f"{path} has neither a model nor a checkpoint yet: check it when it has")
    except InputError as error:
        print(f"    {error}")
        return [str(error)]
    damaged: list[str] = []
    started = time.perf_counter()
    for group, members in groupby(parts, lambda part: part.group):
        damaged += _check_group(group, list(members))
    total, seconds = sum(part.bytes for part in parts), time.perf_counter() - started
    print(f"  {human_bytes(total)} in {seconds:.1f} s ({human_bytes(total / seconds)}/s)")
    return damaged


def _check_group(group: str, parts: list[Part]) -> list[str]:
    """Check the parts of a group and print what was found; returns a sentence for each that is damaged."""
    size = sum(part.bytes for part in parts)
    damaged, have_checksums = [], True
    with progress_bar(total=size, unit="B", unit_scale=True, desc=f"  {group}", delay=2, leave=False) as bar:
        for part in parts:
            try:
                have_checksums &= part.check(bar.update)
            except InputError as error:
                damaged.append(str(error))
    state = "sound" if have_checksums else "sound as far as can be seen without checksums"
    print(f"  {group}: {human_bytes(size)}, {f'{len(damaged)} of {len(parts)} damaged' if damaged else state}")
    for sentence in damaged:
        print(f"    {sentence}")
    return damaged


def _parts(path: Path, vectors: str | None) -> Iterator[Part]:
    if (path / "corpus.json").exists():
        yield from _corpus_parts(path)
    elif (path / "checkpoints").is_dir():
        if (path / "model" / "config.json").exists():
            yield from _model_parts(path / "model", vectors)
        checkpoints = sorted((path / "checkpoints").glob("*.pt"))
        for file in checkpoints:
            advice = _advice(file, checkpoints)
            yield Part("checkpoints", _size(file), partial(_check_checkpoint, file, advice))
    elif (path / "config.json").exists():
        yield from _model_parts(path, vectors)
    elif path.is_dir():
        raise InputError(f"{path} is neither a corpus, nor a run, nor a model: name one of these, or a feature file")
    else:
        require_file(path)
        with FeatureFile(path) as features:  # one that cannot be opened is said at once
            yield Part("features", sum(map(_size, features.files)), partial(_check_features, path))


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _compare(checksums: Mapping[Path, FileChecksum], files: Sequence[Path], advice: str, progress: Progress) -> bool:
    """Compare files with the checksums that there are; returns whether each has one."""
    for file in files:
        if file in checksums:
            checksums[file].check_whole(file, advice=advice, progress=progress)
        else:
            progress(_size(file))
    return all(file in checksums for file in files)


def _corpus_parts(path: Path) -> Iterator[Part]:
    corpus = Corpus(path)

    def part(group: str, names: Sequence[str], content: Callable[[], object]) -> Part:
        files = [path / name for name in names]

        def check_files(progress: Progress) -> bool:
            known = _compare(corpus.checksums, files, CORPUS_ADVICE, progress)
            content()
            return known

        return Part(group, sum(map(_size, files)), check_files)

    counts = np.zeros((2, corpus.types), dtype=np.int64)  # of the training shards, and of the others
    yield part("lexicon.txt", ["lexicon.txt"], lambda: corpus.ids)
    for split, shards in enumerate((corpus.train, corpus.held_out)):
        for shard in shards:
            content = partial(_check_shard, corpus, shard, counts[split])
            yield part("shards", [shard.file, shard.documents_file], content)
    yield part("counts.npy", ["counts.npy"], lambda: _check_counts(corpus, counts[0]))
    for file in sorted((path / "vectors").glob("*.json")):
        yield Part(f"vectors/{file.stem}", _size(file.with_suffix(".npy")), partial(_check_table, corpus, file.stem))


def _check_shard(corpus: Corpus, shard: Shard, counts: np.ndarray) -> None:
    """Raise an `InputError` unless a shard is of sentences and documents; adds its `counts`."""
    ids = corpus.read_shard(shard)
    found = np.bincount(ids, minlength=corpus.types)
    if ids[0] != corpus.begin_id or not found[corpus.begin_id] == found[corpus.end_id] == shard.sentences:
        raise InputError(
            f"{corpus.path / shard.file} does not hold {shard.sentences:,} sentences from <s> to </s>: {CORPUS_ADVICE}"
        )
    if (ids[corpus.read_documents(shard)] != corpus.begin_id).any():
        raise InputError(
            f"{corpus.path / shard.documents_file} has documents that do not start with <s>: {CORPUS_ADVICE}"
        )
    counts += found


def _check_counts(corpus: Corpus, found: np.ndarray) -> None:
    """Compare the counts with those `found`, unless a training shard was damaged."""
    if found.sum() == corpus.train_tokens and not np.array_equal(corpus.counts, found):
        raise InputError(f"{corpus.path / 'counts.npy'} has other counts than the training shards: {CORPUS_ADVICE}")


def _check_table(corpus: Corpus, name: str, progress: Progress) -> bool:
    table = VectorTable(corpus, name)
    known = _compare(table.checksums, table.files, TABLE_ADVICE, progress)
    if (found := count_zero_rows(table.rows)) != table.zero_rows:
        raise InputError(
            f"{table.path} has {found:,} rows of zeros, where {table.zero_rows:,} are expected: {TABLE_ADVICE}"
        )
    table.transform  # noqa: B018 (it is read, and so checked)
    return known


def _model_parts(path: Path, vectors: str | None) -> Iterator[Part]:
    model = read_model_directory(path)
    stored = [model.stored_vectors] if isinstance(model.stored_vectors, Path) else []
    for file in (path / WEIGHTS, path / HEADS, *stored):
        if file.exists():
            yield Part("model", _size(file), partial(_compare, model.checksums, [file], MODEL_ADVICE))
    origin = vectors or str(bundled_vectors(path) or model.word_vectors.origin)
    if not stored and (vectors or not origin.startswith("random:")):
        yield Part("word vectors", _size(Path(origin)), partial(_check_vectors, model, vectors))


def _check_vectors(model: ModelDirectory, vectors: str | None, progress: Progress) -> bool:
    """Open the word vectors that a model reads; they have its fingerprint, which is of blocks spread over the file."""
    file = Path(open_model_vectors(model, vectors).origin)
    if file.is_file():
        FileChecksum.of(file)  # all of it can be read
    progress(_size(file))
    return False


def _advice(checkpoint: Path, checkpoints: Sequence[Path]) -> str:
    """What to do about a checkpoint when it is damaged; `checkpoints` are all of its run, oldest first."""
    if checkpoint != checkpoints[-1]:
        return "remove it, the run goes on from a newer one"
    return "remove it to go on from the one before" if len(checkpoints) > 1 else "remove it to begin the run again"


def _check_checkpoint(file: Path, advice: str, progress: Progress) -> bool:
    """Compare the members of a checkpoint with the checksums that every zip archive has."""
    require_file(file)
    try:
        check_archive(file, progress=progress)
    except Exception as error:  # what a damaged archive may raise is not documented
        if isinstance(error, OSError) and error.filename:
            raise
        raise InputError(f"{file} is truncated or damaged ({reason(error)}): {advice}") from None
    return True


def _check_features(path: Path, progress: Progress) -> bool:
    with FeatureFile(path) as features:
        share = sum(map(_size, features.files)) // max(1, len(features))
        features.check(lambda sentences: progress(sentences * share))
    return False
