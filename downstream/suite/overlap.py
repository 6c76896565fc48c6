"""Overlap of a suite with pretraining text: how many sentences of a corpus are those of a development or test part.

What an encoder has read of them in training, without labels, would still flatter it. What is found is kept beside the
baseline, as a corpus is long and stays the same from one encoder to the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from downstream.suite.data import ProbeData
from elmoc.corpus import Corpus
from elmoc.files.checksums import fingerprint, fingerprint_file
from elmoc.files.records import read_record, write_record
from elmoc.model_directory import read_model_directory
from elmoc.progress import progress_bar
from elmoc.settings import setting
from elmoc.sharing.training_record import training_corpora
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
        folder: where what was found is kept.

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
        if not file.exists():
            found = OverlapRecord(str(corpus), overlapping_sentences(opened, overlap).count)
            write_record(file, found, format=FORMAT, version=VERSION)
        count = read_record(
            file, OverlapRecord, format=FORMAT, version=VERSION, advice="remove it, and run the suite again"
        ).sentences
        print(f"{name}, {split}: {count:,} sentences of {corpus} overlap with its {len(sentences):,}", flush=True)
        if count:
            notes.append(
                f"WARNING: {count:,} sentences of the pretraining text ({corpus}) overlap with the {split} part of "
                f"{name}: build the corpus without them (build_corpus --leave-out)."
            )
    return notes


def corpora_of(model: Path) -> tuple[list[Path], list[str]]:
    """The corpora that a model was trained on, by its record, as far as they are there, and notes on what is not."""
    found, notes = [], []
    for named in training_corpora(read_model_directory(model).training):
        if named is None:
            notes.append(
                f"{NOT_CHECKED}: {model}, or a model that it went on from, does not say on which corpus it was "
                f"trained ({ADVICE})."
            )
            continue
        corpus = Path(named)
        if (corpus / "corpus.json").is_file() and (opened := Corpus(corpus)).record.subwords:
            corpus = Path(str(opened.record.settings.get("words")))
        if (corpus / "corpus.json").is_file():
            found.append(corpus)
        else:
            notes.append(f"{NOT_CHECKED}: {corpus}, on which {model} was trained, is not there ({ADVICE}).")
    return list(dict.fromkeys(found)), list(dict.fromkeys(notes))
