"""Overlap of a suite with pretraining text: how many sentences of a corpus are those of a development or test part.

What an encoder has read of them in training, without labels, would still flatter it. What is found is kept beside the
baseline, as a corpus is long and stays the same from one encoder to the next.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from downstream.suite.data import ProbeData
from elmoc.corpus import Corpus
from elmoc.files.checksums import fingerprint, fingerprint_file
from elmoc.files.records import read_record, write_record
from elmoc.model_directory import read_model_directory
from elmoc.progress import progress_bar
from elmoc.settings import counted, setting
from elmoc.sharing.training_record import training_corpora, trainings_of
from elmoc.text.overlap import Overlap, overlapping_sentences

FORMAT, VERSION = "elmoc-overlap", 1
EVALUATED = ("dev", "test")
"""The splits that must not be in the text."""
NOT_CHECKED = "Not checked for sentences of development parts"
ADVICE = "--corpus, once for each, names all corpora of a model's trainings"


@dataclass(frozen=True)
class OverlapRecord:
    """What is kept: sentences of the corpus that overlap with those of a split."""

    corpus: str
    sentences: int = setting(least=0)


def overlap_notes(data: Mapping[str, ProbeData], corpus: Path, folder: Path) -> list[str]:
    """Print a line for each development and test part, and return warnings for the table.

    Args:
        data: of the probes by name.
        corpus: the directory of the corpus that the encoder was trained on.
        folder: where what was found is kept, if it can be written to.

    Raises:
        InputError: the corpus cannot be read.
    """
    notes: list[str] = []
    opened = Corpus(corpus)
    parts = [(name, split) for name, each in data.items() for split in EVALUATED if split in each.sentences]
    for name, split in progress_bar(iterable=parts, desc="overlap", unit=" parts", leave=False, delay=2):
        sentences = [line.split(" ") for line in data[name].sentences[split]]
        overlap = Overlap(sentences)
        key = fingerprint(fingerprint_file(corpus / "corpus.json").encode(), overlap.fingerprint.encode())
        file = folder / f"overlap.{name}.{split}.{key}.json"
        if file.exists():
            advice = "remove it, and run the suite again"
            found = read_record(file, OverlapRecord, format=FORMAT, version=VERSION, advice=advice)
        else:
            found = OverlapRecord(str(corpus), overlapping_sentences(opened, overlap))
            with suppress(OSError):  # a baseline to which nothing else is to be added may be read-only
                write_record(file, found, format=FORMAT, version=VERSION)
        count = found.sentences
        overlaps = f"overlap{'s' if count == 1 else ''} with"
        print(
            f"{name}, {split}: {counted(count, 'sentence')} of {corpus} {overlaps} its {len(sentences):,}", flush=True
        )
        if count:
            notes.append(
                f"WARNING: {counted(count, 'sentence')} of the pretraining text ({corpus}) {overlaps} the {split} part "
                f"of {name}: build the corpus without such text (build_corpus --leave-out), and train on that."
            )
    return notes


def corpora_of(model: Path) -> tuple[list[Path], list[str]]:
    """The corpora that a model was trained on, by its record, as far as they are still there, and notes on the others.

    A corpus that was built anew in its place is another, of which nothing says what the model has read.
    """
    training = read_model_directory(model).training
    found: list[Path] = []
    notes: list[str] = []
    for named in training_corpora(training):
        if named is None:
            notes.append(
                f"{NOT_CHECKED}: {model}, or a model that it went on from, does not say on which corpus it was "
                f"trained ({ADVICE})."
            )
            continue
        path = Path(named)
        corpus = words = _corpus_at(path)
        if corpus is not None and corpus.record.subwords:
            path = Path(str(corpus.record.settings.get("words")))
            words = _corpus_at(path)
        if corpus is None or words is None:
            notes.append(f"{NOT_CHECKED}: {path}, on which {model} was trained, is not there ({ADVICE}).")
            continue
        is_same = [
            _sentences(words) == _sentences(corpus) and record.get("corpus_tokens") == corpus.train_tokens
            for record in trainings_of(training)
            if record.get("corpus") == named
        ]
        if any(is_same):
            found.append(path)
        if not all(is_same):
            notes.append(
                f"{NOT_CHECKED}: the corpus in {path} is another by now than {model} was trained on, or is not known "
                f"to be that ({ADVICE})."
            )
    return list({os.path.realpath(path): path for path in found}.values()), list(dict.fromkeys(notes))


def _corpus_at(path: Path) -> Corpus | None:
    return Corpus(path) if (path / "corpus.json").is_file() else None


def _sentences(corpus: Corpus) -> tuple[int, int]:
    """How many each split has: equal for a corpus of subwords and the words that it was made from."""
    return corpus.record.train_sentences, corpus.record.held_out_sentences
