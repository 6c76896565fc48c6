"""Checks: whether the files of corpora, models, runs and feature files are as they were written."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path

from elmoc.corpus import Corpus
from elmoc.errors import InputError, describe_error
from elmoc.features.reader import FeatureFile
from elmoc.files.checksums import check_archive
from elmoc.model_directory import open_model_vectors, read_model_directory
from elmoc.process import progress_bar
from elmoc.word_vectors.table import VectorTable

# the group of files that a file is told of with, and what reads it and raises where it is damaged
Check = tuple[str, Callable[[], object]]


def check(path: Path | str, *, vectors: str | None = None) -> list[str]:
    """Read a corpus, run or model directory or a feature file whole, and print which parts of it are sound.

    `vectors` is where a model's word vectors are now, when they are not where they were in training.
    Returns a sentence for each part that is damaged or missing.
    """
    print(path)
    try:
        parts = list(_parts(Path(path), vectors))
    except Exception as error:
        print(f"    {describe_error(error)}")
        return [describe_error(error)]
    damaged: list[str] = []
    for group, members in groupby(parts, lambda part: part[0]):
        files, found = list(members), []
        for _, read in progress_bar(iterable=files, desc=f"  {group}", delay=2, leave=False):
            try:
                read()
            except Exception as error:
                found.append(describe_error(error))
        print(f"  {group}: {f'{len(found)} of {len(files)} damaged' if found else 'sound'}")
        print("".join(f"    {sentence}\n" for sentence in found), end="")
        damaged += found
    return damaged


def _parts(path: Path, vectors: str | None) -> Iterator[Check]:
    if (path / "corpus.json").exists():
        corpus = Corpus(path)
        for file, checksum in corpus.checksums.items():
            yield "shards" if file.parent.name == "shards" else file.name, partial(checksum.check_whole, file)
        for description in sorted((path / "vectors").glob("*.json")):
            yield f"vectors/{description.stem}", partial(_check_table, corpus, description.stem)
    elif (path / "checkpoints").is_dir():
        if (path / "model" / "config.json").exists():
            yield from _model_parts(path / "model", vectors)
        for file in sorted((path / "checkpoints").glob("*.pt")):
            yield "checkpoints", partial(check_archive, file)
    elif (path / "config.json").exists():
        yield from _model_parts(path, vectors)
    elif path.is_dir():
        raise InputError(f"{path} is neither a corpus, nor a run, nor a model: name one of these, or a feature file")
    else:
        yield "features", FeatureFile(path).check


def _check_table(corpus: Corpus, name: str) -> None:
    for file, checksum in VectorTable(corpus, name).checksums.items():
        checksum.check_whole(file)


def _model_parts(path: Path, vectors: str | None) -> Iterator[Check]:
    model = read_model_directory(path)
    for file, checksum in model.checksums.items():
        if file.exists():  # the output layers may have been left out
            yield "model", partial(checksum.check_whole, file)
    if model.stored_vectors is None:  # they have its fingerprint, which is of blocks spread over the file
        yield "word vectors", partial(open_model_vectors, model, vectors)
