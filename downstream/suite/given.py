"""What a suite is given, opened before anything takes long: word vectors, the model, and corpora of its training."""

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from downstream.inputs.kinds import SEPARATOR
from downstream.suite.data import describe_model
from downstream.suite.overlap import ADVICE, NOT_CHECKED, corpora_of
from elmoc.corpus import Corpus
from elmoc.word_vectors.opening import open_word_vectors


@dataclass(frozen=True)
class Given:
    """What was opened.

    vectors  what tells the word vectors from others
    model    what the model says of itself; None where its states are not asked for, or are those of a file
    corpora  those of the pretraining text that are there
    notes    on those that are not
    """

    vectors: str
    model: Mapping[str, str] | None
    corpora: list[Path]
    notes: list[str]


def open_given(options: Namespace, vectors: Sequence[str]) -> Given:
    """Open what the command line names, and print the notes; raises `InputError` for what cannot be used."""
    identity = SEPARATOR.join(open_word_vectors(each, only=[]).fingerprint for each in vectors)
    corpora, notes = _corpora(options)
    model = None
    if options.model and options.encoder:
        model = describe_model(
            options.model, vectors=options.model_vectors, pooling=options.pooling, device=options.device
        )
    for note in notes:
        print(note, flush=True)
    return Given(identity, model, corpora, notes)


def _corpora(options: Namespace) -> tuple[list[Path], list[str]]:
    """The corpora in which sentences of development and test parts are looked for, as far as they are known."""
    if options.corpus is not None:
        for path in options.corpus:
            Corpus(path).require_words()
        return options.corpus, []
    if options.model:
        return corpora_of(options.model)
    if options.features:
        return [], [f"{NOT_CHECKED}: the text that the features' encoder was trained on ({ADVICE})."]
    return [], []
