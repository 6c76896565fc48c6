"""Overlap of a suite with pretraining text: does a corpus hold sentences of development or test parts?

What an encoder has read of them in training, without labels, would still flatter it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmoc.corpus import Corpus
from elmoc.settings import counted
from elmoc.sharing.model_card import trainings_of
from elmoc.text.overlap import Overlap, overlapping_sentences


def overlap_notes(corpora: Sequence[Path], sentences: Sequence[str], training: Mapping[str, Any] | None) -> list[str]:
    """A note on each corpus: how many of these sentences it holds, or that it cannot be looked through.

    corpora    of the encoder's text; without any, those that `training` names
    sentences  of words joined by blanks
    training   record of the encoder's training, if there is one
    """
    found, notes = list(corpora), list[str]()
    for record in trainings_of(training) if training is not None and not corpora else ():
        path = Path(str(record.get("corpus", "not named")))
        corpus = Corpus(path) if (path / "corpus.json").is_file() else None
        if corpus is None or corpus.train_tokens != record.get("corpus_tokens"):  # another may stand in its place
            notes.append(
                f"Not checked for sentences of development parts: the corpus of the encoder's training ({path}) is "
                "not there, or another by now (--corpus, once for each, names all of them)."
            )
        else:
            found.append(Path(str(corpus.record.settings.get("words"))) if corpus.record.subwords else path)
    overlap = Overlap(sentence.split(" ") for sentence in sentences)
    for path in dict.fromkeys(found):
        count = overlapping_sentences(Corpus(path), overlap)
        what = f"{counted(count, 'sentence')} of the pretraining text ({path}) overlap with development or test parts"
        advice = ": build the corpus without such text (build_corpus --leave-out)."
        notes.append(f"WARNING: {what}{advice}" if count else f"{what}.")
    return list(dict.fromkeys(notes))
