"""Named entity recognition: which spans of a sentence are names, and of what type.

The tagger has the hyper-parameters published for ELMo on CoNLL-2003. Their character CNN is off unless `--characters`
asks for it, as the inputs are what is compared. The score is conlleval's entity F1.
"""

import re
import reprlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from seqeval.metrics.sequence_labeling import get_entities

from downstream.inputs.settings import SMALL_MIX_RATE
from downstream.metrics import count_labels, label_table, precision_recall_f1
from downstream.probe.settings import ReaderOptions
from downstream.probe.task import Task
from downstream.readers.columns import bio_tags, outermost, read_columns
from downstream.tasks.ner.model import NerProbe, NerSettings, TaggedSentence, tag_entities
from elmoc.errors import InputError
from elmoc.settings import counted, setting

# O, the place of a word in its entity and the entity's type where there are several, or a bracket: (GPE*, *, *), (GPE).
_TAG = re.compile(r"O|[BIELSUMW](-\S{1,100})?|[(*].{0,100}")
# Letters of BIOLU, BMES and BMEWO → those of BIOES.
_AS_BIOES = {"L": "E", "U": "S", "M": "I", "W": "S"}
# The type of entities whose tags name none.
UNTYPED = "-ENTITY"


@dataclass(frozen=True, kw_only=True)
class NerReaderOptions(ReaderOptions):
    """Where tags and words are."""

    column: int = setting(-1, help="the column of the tags, from 0; -1 is the last", least=-1)
    word_column: int = setting(-1, help="the column of the words, from 0; -1 finds it", least=-1)


class NerTask(Task[TaggedSentence, list[str]]):
    def read(self, path: Path, options: ReaderOptions, *, training: bool) -> list[TaggedSentence]:
        """Read a file of columns; tags are BIO, IOB1, BIOES, BIOLU, BMES or OntoNotes' brackets, and become BIO."""
        assert isinstance(options, NerReaderOptions)
        word_column = None if options.word_column < 0 else options.word_column
        file = read_columns(path, word_column=word_column, column=options.column, labels=_TAG)
        sentences, inner = [], 0
        for columns in file.sentences:
            tags, words = columns.column(options.column), columns.sentence(file.word_column)
            if options.column % len(columns.rows[0]) == file.word_column:
                raise columns.error(0, f"column {file.word_column} has the words: name that of the tags with --column")
            for place, tag in enumerate(tags):
                if not _TAG.fullmatch(tag):
                    raise columns.error(
                        place,
                        f"{reprlib.repr(tag)} is no tag like O, B-TYPE, I-TYPE (nor E-, S-, L-, U-, M- or W-TYPE), "
                        "and no bracket like (TYPE*: name the column of the tags with --column",
                    )
            if any(tag[0] in "(*" for tag in tags):
                spans = columns.bracketed(options.column)
                tags, inner = bio_tags(outermost(spans), len(tags)), inner + len(spans) - len(outermost(spans))
            sentences.append(TaggedSentence(words, iob_to_bio(tags)))
        if inner:
            print(f"note: {path}: {counted(inner, 'entity', 'entities')} inside others are left out", file=sys.stderr)
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
    """BIO tags of the entities that conlleval sees in BIO, IOB1, BIOES, BIOLU or BMES tags, which may be without types.

    An `I-X` that does not follow an entity word of type X begins an entity.
    """
    typed = [tag if tag == "O" or "-" in tag else tag + UNTYPED for tag in tags]
    known = [_AS_BIOES.get(tag[0], tag[0]) + tag[1:] for tag in typed]
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
