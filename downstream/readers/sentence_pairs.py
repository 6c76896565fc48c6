"""Labelled pairs of sentences, as SNLI has them.

Texts are tokenised by `elmoc.text.tokenizer`, which leaves tokenised text nearly as it
is.
"""

from dataclasses import dataclass
from pathlib import Path

from downstream.inputs.sentence import TaskSentence, make_sentence
from downstream.printing import counted, note
from downstream.readers.label_sets import NLI
from downstream.readers.labelled_rows import read_labelled_rows
from elmoc.errors import InputError
from elmoc.text.tokenizer import tokenise_sentence

# Words of a sentence that are read: damaged lines, as in some copies of MultiNLI, hold
# whole files.
LONGEST = 300


@dataclass(frozen=True)
class SentencePair:
    """Two sentences and the label of the pair.

    texts: the two as the file has them.
    """

    premise: TaskSentence
    hypothesis: TaskSentence
    label: str
    texts: list[str]


def read_sentence_pairs(path: Path) -> list[SentencePair]:
    """The pairs of a file (plain or compressed) in their order, without those that have
    no gold label. A note counts the sentences that are cut.

    Raises:
        InputError: a row that is no pair, or an empty sentence.
    """
    pairs: list[SentencePair] = []
    cut = 0
    for row in read_labelled_rows(path, NLI):
        words = list(map(tokenise_sentence, row.texts))
        if not (all(words) and len(row.label.split()) == 1):
            raise InputError(
                f"{path}, line {row.line}: a label of one word and two sentences are "
                "needed"
            )
        cut += sum(len(each) > LONGEST for each in words)
        first, second = [
            make_sentence(each[:LONGEST], file=path, line=row.line) for each in words
        ]
        pairs.append(SentencePair(first, second, row.label, row.texts))
    if cut:
        note(f"{path}: {counted(cut, 'sentence')} cut to {LONGEST} words")
    return pairs
