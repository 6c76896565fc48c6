"""Dumping of peers: how a file of sentences becomes a feature file that our probes read."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from downstream.peers.record import PeerRecord
from elmoc.batches import buffered
from elmoc.features.dumping.input import opened_input, survey
from elmoc.features.layouts.sentence import FeatureShape
from elmoc.features.numbers import converted
from elmoc.features.writer import write_features
from elmoc.files.checksums import fingerprint
from elmoc.files.writing import require_space
from elmoc.progress import progress_bar

BUFFER_WORDS = 8192
"""Words that are encoded together: their sentences can be ordered by length."""
CHECKPOINT_SECONDS = 30.0
"""Between two points from which a killed dump can go on."""


class Encoder(Protocol):
    """A trained peer."""

    layers: int
    width: int

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """float32 [layers, n, width] for each sentence of n ≥ 1 words."""
        ...


def dump(
    encoder: Encoder, record: PeerRecord, sentences: str, output: Path, *, dtype: str = "float32", resume: bool = False
) -> None:
    """Write the layer states of every line of a file of sentences to a feature file in the allennlp layout.

    Its attributes say which peer it is, its settings, and how many words and seconds it was trained. Raises
    `InputError`.
    """
    with opened_input(sentences, output) as source:
        found = survey(source, allow_empty=True)
        shape = FeatureShape(layers=encoder.layers, width=encoder.width, dtype=dtype, single=False, words=found.words)
        size = found.words * encoder.layers * encoder.width * np.dtype(dtype).itemsize + 1000 * found.sentences
        if not resume:
            require_space(output, size)
        attributes = describe(record) | {"input": found.fingerprint}
        with (
            write_features(output, attributes, shape=shape, resume=resume) as writer,
            progress_bar(total=found.words, unit=" words", unit_scale=True, desc="dump") as progress,
        ):
            done, due = writer.sentences, time.monotonic() + CHECKPOINT_SECONDS
            for buffer in buffered(source, lambda line: len(line.sentence.tokens), most=BUFFER_WORDS):
                left, done = buffer[done:], max(0, done - len(buffer))
                tokens = [line.sentence.tokens for line in left]
                states = iter(encoder.encode([words for words in tokens if words]))
                for line, words in zip(left, tokens, strict=True):
                    array = next(states) if words else np.zeros(shape.of(0), np.float32)
                    writer.add(line.sentence, converted(array, dtype, f"{source.name}, {line.where}"))
                progress.update(sum(len(line.sentence.tokens) for line in buffer))
                if time.monotonic() >= due:
                    writer.checkpoint()
                    due = time.monotonic() + CHECKPOINT_SECONDS


def describe(record: PeerRecord) -> dict[str, Any]:
    """The attributes of a feature file that say what it was made by."""
    return {
        "peer": record.peer,
        "peer_settings": json.dumps(record.settings),
        "model_fingerprint": fingerprint(*(each.whole.encode() for each in record.model.values())),
        "training_words": record.words,
        "training_seconds": record.seconds,
        "training_threads": record.threads,
    }
