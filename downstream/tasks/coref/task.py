"""Coreference: which words of a document are mentions, and which mentions refer to the
same thing.

The end-to-end model of Lee et al. (2018) on CoNLL-2012 columns, with the
hyper-parameters published for ELMo, but without a character CNN and other vectors for
heads, and with bilinear scores divided by √size.

The score is the mean F1 of MUC, B³ and CEAFφ4 as the official scorer counts them, where
the key has no singletons: the model cannot predict any, and OntoNotes annotates none.
Where a corpus does (LitBank), the same mean with the singletons in the key is reported
beside it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from downstream.inputs.sentence import TaskSentence
from downstream.probe.task import Task
from downstream.readers.conll2012 import (
    COREFERENCE,
    NOTHING,
    SPEAKER,
    WORD,
    Document,
    read_documents,
)
from downstream.settings import SMALL_INPUTS, ReaderOptions
from downstream.tasks.coref.json_documents import read_json_documents
from downstream.tasks.coref.model import CorefDocument, CorefProbe
from downstream.tasks.coref.scorer import (
    METRICS,
    Mention,
    chain_f1,
    count_chains,
    without_singletons,
)
from downstream.tasks.coref.spans import CorefSettings
from elmoc.errors import InputError
from elmoc.text.json_lines import JsonDocuments


class CorefTask(Task[CorefDocument, list[list[Mention]]]):
    def read(
        self, path: Path, options: ReaderOptions, *, training: bool
    ) -> list[CorefDocument]:
        """Read a file of CoNLL-2012 columns, each part of a document an example, or of
        JSON lines, each an example.
        """
        if JsonDocuments().takes(path):
            return read_json_documents(path)
        return [_read_document(each) for each in read_documents(path, arguments=False)]

    def sentences(self, example: CorefDocument) -> list[TaskSentence]:
        return example.sentences

    def vocabulary(self, train: Sequence[CorefDocument]) -> dict[str, Any]:
        """The genres, where the names of documents tell several; whether speakers are
        known.
        """
        if not any(without_singletons(example.chains) for example in train):
            raise InputError(
                "the training data holds no chain of two mentions: "
                "the last column must be coreference"
            )
        genres = sorted({example.genre for example in train} - {""})
        speakers = set(chain.from_iterable(example.speakers for example in train))
        return {
            # A feature that is the same everywhere tells nothing.
            "genres": genres if len(genres) > 1 else [],
            "speakers": bool(speakers - {NOTHING}),
        }

    def count(
        self, example: CorefDocument, prediction: list[list[Mention]]
    ) -> np.ndarray:
        """float64 [2 · 4 · 4]: key without and with singletons, the four metrics, their
        counts.
        """
        keys = (without_singletons(example.chains), example.chains)
        return np.stack([count_chains(key, prediction) for key in keys]).reshape(-1)

    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """F1 of each metric and the mean of the three, without singletons; the mean
        with them.
        """
        # [..., 2, 4]
        f1 = chain_f1(counts.reshape(*counts.shape[:-1], 2, len(METRICS), 4))
        means = f1[..., :3].mean(axis=-1)  # [..., 2]
        return {
            self.metric: means[..., 0],
            **{f"{name} F1": f1[..., 0, row] for row, name in enumerate(METRICS)},
            "mean F1 with singletons": means[..., 1],
        }

    def format_prediction(
        self, example: CorefDocument, prediction: list[list[Mention]]
    ) -> str:
        """The document with the predicted chains in the last column: what the official
        scorer reads.

        It finds a document by its heading, which is the same as in the data.
        """
        cells = iter(coreference_cells(prediction, len(example.speakers)))
        lines = [example.document.heading]
        for sentence in example.document.sentences:
            for row in sentence.rows:
                lines.append("\t".join([*row[:COREFERENCE], next(cells)]))
            lines.append("")
        lines.append("#end document\n")
        return "\n".join(lines)


def coreference_cells(chains: Sequence[Sequence[Mention]], words: int) -> list[str]:
    """The last column of a document of `words` words; a chain's number is its place,
    from 0.
    """
    # Opening brackets come before closing ones. Of the spans that begin at a word the
    # longest comes first, of those that end there the shortest: so brackets are nested.
    brackets: list[list[tuple[int, int, str]]] = [[] for _ in range(words)]
    for number, mentions in enumerate(chains):
        for start, end in mentions:
            if start == end:
                brackets[start].append((0, -end, f"({number})"))
            else:
                brackets[start].append((0, -end, f"({number}"))
                brackets[end].append((1, -start, f"{number})"))
    return [
        "|".join(bracket for _, _, bracket in sorted(own)) or NOTHING
        for own in brackets
    ]


def _read_document(document: Document) -> CorefDocument:
    """The chains are in the order in which they begin, as the official scorer numbers
    them.
    """
    chains: defaultdict[str, list[Mention]] = defaultdict(list)
    sentences: list[TaskSentence] = []
    speakers: list[str] = []
    for sentence in document.sentences:
        before = len(speakers)
        mentions = sentence.bracketed(COREFERENCE, clusters=True)
        # Of those that begin at a word, mentions of one word come first.
        mentions.sort(key=lambda mention: (mention.first, mention.first < mention.last))
        for cluster, first, last in mentions:
            chains[cluster].append((before + first, before + last))
        sentences.append(sentence.sentence(WORD))
        # Files of coreference alone have no column of speakers.
        has_speakers = len(sentence.rows[0]) > SPEAKER + 1
        speakers += [row[SPEAKER] if has_speakers else NOTHING for row in sentence.rows]
    in_order = [sorted(set(each)) for each in chains.values()]
    return CorefDocument(document, sentences, speakers, in_order)


PUBLISHED = CorefSettings(
    learning_rate=1e-3,
    decay=0.999,
    gradient_norm=5.0,
    batch_size=1,
    # 400,000 updates on the 2,802 training documents of OntoNotes
    epochs=143,
    patience=143,
)

TASK = CorefTask(
    name="coref",
    metric="mean F1",
    unit="documents",
    item="documents",
    suffix=".conll",
    model=CorefProbe,
    published=PUBLISHED,
    small=replace(
        PUBLISHED,
        **SMALL_INPUTS,
        decay=0.87,
        epochs=20,
        patience=20,
        hidden_size=100,
        layers=1,
        head_size=100,
        coupled=False,
        span_width=10,
        span_ratio=0.3,
        antecedents=25,
        depth=1,
        feed_forward_size=100,
        training_sentences=25,
        lstm_dropout=0.3,
    ),
)
