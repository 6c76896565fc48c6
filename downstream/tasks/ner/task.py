"""Named entity recognition: which spans of a sentence are names, and of what type.

The tagger has the hyper-parameters published for ELMo on CoNLL-2003. Their character CNN is off unless `--characters`
asks for it, as the inputs are what is compared. The score is conlleval's entity F1.
"""

import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from seqeval.metrics.sequence_labeling import get_entities

from downstream.inputs.sentence import make_sentence
from downstream.inputs.settings import SMALL_MIX_RATE
from downstream.metrics import count_labels, label_table, precision_recall_f1
from downstream.probe.settings import ReaderOptions
from downstream.probe.task import Task
from downstream.readers.conll_columns import read_columns
from downstream.tasks.ner.model import NerProbe, NerSettings, TaggedSentence, tag_entities
from elmoc.errors import InputError
from elmoc.settings import counted, setting

_TAG = re.compile(r"O|[BIELSU]-\S{1,100}")
_AS_BIOES = {"L": "E", "U": "S"}


@dataclass(frozen=True, kw_only=True)
class NerReaderOptions(ReaderOptions):
    """Where the tags are."""

    column: int = setting(-1, help="the column of the tags, from 0; -1 is the last")


class NerTask(Task[TaggedSentence, list[str]]):
    def read(self, path: Path, options: ReaderOptions, *, training: bool) -> list[TaggedSentence]:
        """Read a file of CoNLL columns, the word first; tags are BIO, IOB1, BIOES or BIOLU, and become BIO."""
        assert isinstance(options, NerReaderOptions)
        sentences = []
        for columns in read_columns(path):
            width, line = len(columns.rows[0]), columns.lines[0]
            column = options.column % width if options.column == -1 else options.column
            if not 0 < column < width:
                raise InputError(f"{path}, line {line}: there is no tag column {options.column} among {width} columns")
            tags = [row[column] for row in columns.rows]
            for tag, number in zip(tags, columns.lines, strict=True):
                if not _TAG.fullmatch(tag):
                    raise InputError(
                        f"{path}, line {number}: {reprlib.repr(tag)} is no tag like O, B-TYPE, I-TYPE (nor E-, S-, L- "
                        "or U-TYPE): name the column of the tags with --column"
                    )
            words = make_sentence([row[0] for row in columns.rows], file=path, line=line)
            sentences.append(TaggedSentence(words, iob_to_bio(tags)))
        return sentences

    def describe(self, examples: Sequence[TaggedSentence]) -> str:
        tokens = sum(len(example.tags) for example in examples)
        entities = sum(tag.startswith("B-") for example in examples for tag in example.tags)
        counts = (counted(len(examples), "sentence"), counted(tokens, "token"), counted(entities, "entity", "entities"))
        return ", ".join(counts)

    def vocabulary(self, train: Sequence[TaggedSentence]) -> dict[str, Any]:
        """The entity types and the characters of `train`."""
        types = sorted({tag[2:] for example in train for tag in example.tags} - {""})
        if not types:
            raise InputError("the training data holds no entity: name the column of the tags with --column")
        characters = {character for example in train for word in example.sentence.words for character in word}
        return {"types": types, "characters": sorted(characters)}

    def count(self, example: TaggedSentence, prediction: list[str]) -> np.ndarray:
        """[right, gold, predicted] entities, as conlleval counts: type and both boundaries must be right."""
        return sum(count_labels(get_entities(example.tags), get_entities(prediction)).values(), np.zeros(3))

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return precision_recall_f1(counts, "entity")

    def details(self, examples: Sequence[TaggedSentence], predictions: Sequence[list[str]]) -> str:
        """Precision, recall and F1 of each entity type."""
        gold = get_entities([example.tags for example in examples])
        return label_table(count_labels(gold, get_entities(list(predictions))))

    def format_prediction(self, example: TaggedSentence, prediction: list[str]) -> str:
        """Word, gold tag and predicted tag, separated by a space: what conlleval reads."""
        rows = zip(example.sentence.words, example.tags, prediction, strict=True)
        return "".join(" ".join(row) + "\n" for row in rows) + "\n"


def iob_to_bio(tags: list[str]) -> list[str]:
    """BIO tags of the entities that conlleval sees in BIO, IOB1, BIOES or BIOLU tags.

    An `I-X` that does not follow an entity word of type X begins an entity.
    """
    known = [_AS_BIOES.get(tag[0], tag[0]) + tag[1:] for tag in tags]
    return tag_entities(known, first="B", inside="I", last="I", single="B")


PUBLISHED = NerSettings(
    learning_rate=1e-3,
    gradient_norm=5.0,
    mix_l2=0.1,
    batch_size=64,
    epochs=75,
    patience=25,
)

TASK = NerTask(
    name="ner",
    metric="entity F1",
    unit="sentences",
    item="sentences",
    suffix=".conll",
    reader=NerReaderOptions(),
    model=NerProbe,
    published=PUBLISHED,
    small=replace(
        PUBLISHED, mix_rate=SMALL_MIX_RATE, batch_size=32, epochs=15, patience=5, hidden_size=100, layers=1, dropout=0.3
    ),
)
