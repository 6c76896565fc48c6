"""Named entity recognition: which spans of a sentence are names, and of what type.

The model is the biLSTM-CRF of Peters et al. (2018): inputs → dropout → biLSTM → dropout
→ CRF over BIOUL tags, with the hyper-parameters published for ELMo on CoNLL-2003. Their
character CNN is left out, as inputs are compared. The score is conlleval's entity F1.
"""

import re
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from seqeval.metrics.sequence_labeling import get_entities

from downstream.metrics import count_labels, label_table, precision_recall_f1
from downstream.printing import counted, note
from downstream.probe.task import Task
from downstream.readers.columns import bio_tags, outermost, read_columns
from downstream.settings import (
    SMALL_MIX_RATE,
    ReaderOptions,
)
from downstream.tasks.ner.model import NerProbe, NerSettings, TaggedSentence
from downstream.tasks.ner.tags import iob_to_bio
from elmoc.errors import InputError

# O, the place of a word in its entity and the entity's type where there are several, or
# a bracket: (GPE*, *, *), (GPE).
_TAG = re.compile(r"O|[BIELSUMW](-\S{1,100})?|[(*].{0,100}")


@dataclass(frozen=True, kw_only=True)
class NerReaderOptions(ReaderOptions):
    """Where tags and words are."""

    column: Annotated[
        int, Meta(ge=-1, description="the column of the tags, from 0; -1 is the last")
    ] = -1
    word_column: Annotated[
        int, Meta(ge=-1, description="the column of the words, from 0; -1 finds it")
    ] = -1


class NerTask(Task[TaggedSentence, list[str]]):
    def read(
        self, path: Path, options: ReaderOptions, *, training: bool
    ) -> list[TaggedSentence]:
        """Read a file of columns; tags are BIO, IOB1, BIOES, BIOLU, BMES or OntoNotes'
        brackets, and become BIO.
        """
        assert isinstance(options, NerReaderOptions)
        # A negative column is to be found.
        word_column = None if options.word_column < 0 else options.word_column
        file = read_columns(
            path, word_column=word_column, column=options.column, labels=_TAG
        )
        sentences = []
        inner = 0
        for columns in file.sentences:
            tags = columns.column(options.column)
            words = columns.sentence(file.word_column)
            if options.column % len(columns.rows[0]) == file.word_column:
                raise columns.error(
                    0,
                    f"column {file.word_column} has the words: "
                    "name the tags' with --column",
                )
            for place, tag in enumerate(tags):
                if not _TAG.fullmatch(tag):
                    raise columns.error(
                        place,
                        f"{reprlib.repr(tag)} is no tag like O, B-TYPE, I-TYPE "
                        "(nor E-, S-, L-, U-, M- or W-TYPE), and no bracket like "
                        "(TYPE*: name the column of the tags with --column",
                    )
            # OntoNotes nests entities; a tagger gives a word one tag.
            if any(tag[0] in "(*" for tag in tags):
                spans = columns.bracketed(options.column)
                outer = outermost(spans)
                tags = bio_tags(outer, len(tags))
                inner += len(spans) - len(outer)
            sentences.append(TaggedSentence(words, iob_to_bio(tags)))
        if inner:
            left_out = counted(inner, "entity", "entities")
            note(f"{path}: {left_out} inside others are left out")
        return sentences

    def describe(self, examples: Sequence[TaggedSentence]) -> str:
        tags = list(chain.from_iterable(example.tags for example in examples))
        sentences = counted(len(examples), "sentence")
        entities = sum(tag.startswith("B-") for tag in tags)
        named = counted(entities, "entity", "entities")
        return f"{sentences}, {counted(len(tags), 'token')}, {named}"

    def vocabulary(self, train: Sequence[TaggedSentence]) -> dict[str, Any]:
        """The entity types of `train`."""
        tags = chain.from_iterable(example.tags for example in train)
        types = {tag[2:] for tag in tags if tag != "O"}
        if not types:
            raise InputError(
                "the training data holds no entity: "
                "name the column of the tags with --column"
            )
        return {"types": sorted(types)}

    def count(self, example: TaggedSentence, prediction: list[str]) -> np.ndarray:
        """[right, gold, predicted] entities, as conlleval counts: type and both
        boundaries must be right.
        """
        counts = count_labels(get_entities(example.tags), get_entities(prediction))
        return sum(counts.values(), np.zeros(3))

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        return precision_recall_f1(counts, "entity")

    def details(
        self, examples: Sequence[TaggedSentence], predictions: Sequence[list[str]]
    ) -> str:
        """Precision, recall and F1 of each entity type."""
        gold = get_entities([example.tags for example in examples])
        return label_table(count_labels(gold, get_entities(list(predictions))))

    def format_prediction(self, example: TaggedSentence, prediction: list[str]) -> str:
        """Word, gold tag and predicted tag a line, as conlleval reads them."""
        rows = zip(example.sentence.words, example.tags, prediction, strict=True)
        return "".join(" ".join(row) + "\n" for row in rows) + "\n"


# Those of ELMo's tagger on CoNLL-2003 (Peters et al. 2018).
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
        PUBLISHED,
        mix_rate=SMALL_MIX_RATE,
        batch_size=32,
        epochs=15,
        patience=5,
        hidden_size=100,
        layers=1,
        dropout=0.3,
    ),
)
