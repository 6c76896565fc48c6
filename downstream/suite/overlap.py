"""Overlap: how much of the scored text has the encoder read in its training?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from downstream.printing import counted
from elmoc.corpus import Corpus
from elmoc.sharing.trainings import corpus_of, trainings_of
from elmoc.text.overlap import Overlap, overlapping_sentences


def overlap_notes(
    corpora: Sequence[Path],
    sentences: Sequence[str],
    training: Mapping[str, Any] | None,
) -> list[str]:
    """A note on each corpus: the number of these sentences that it holds, or why it
    cannot be searched.

    Args:
        corpora: of the encoder's text; without any, the corpora that `training` names.
        sentences: of words joined by blanks.
        training: record of the encoder's training, if there is one.
    """
    notes = []
    found = list(corpora)
    if not corpora and training is not None:
        for record in trainings_of(training):
            corpus = corpus_of(record)
            if corpus is None or corpus.record.subwords:
                notes.append(
                    "Not checked for sentences of development parts: the corpus of the "
                    f"encoder's training ({record.get('corpus', 'not named')}) is not "
                    "there, or another by now, or one of subwords (--corpus, once for "
                    "each, names all of them, of words)."
                )
            else:
                found.append(corpus.path)
    # One pass over each corpus finds all sentences.
    overlap = Overlap(sentence.split(" ") for sentence in sentences)
    for path in dict.fromkeys(found):
        count = overlapping_sentences(Corpus(path), overlap)
        notes.append(
            f"{'WARNING: ' if count else ''}{counted(count, 'sentence')} of the "
            f"pretraining text ({path}) overlap with development or test parts "
            "(build_corpus --leave-out leaves such text out)."
        )
    return list(dict.fromkeys(notes))
