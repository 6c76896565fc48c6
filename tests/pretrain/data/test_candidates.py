"""Candidates of windows: the same in every process and after a resume, and handed over with the right vectors."""

from itertools import islice
from typing import Any

import numpy as np
import pytest
from elmoc.corpus import Corpus
from elmoc.word_vectors.table import VectorTable
from pretrain.data.candidates import TargetSampler
from pretrain.data.sources import TrainingData
from pretrain.data.windows import Position

from elmoc.encoders import DIRECTIONS
from pretrain.output_layers import TYPES_OF_TARGETS

STREAMS, WINDOW = 4, 5


def data_of(corpus: Corpus, **settings: Any) -> TrainingData:
    """Windows with candidates."""
    values: dict[str, Any] = {
        "directions": DIRECTIONS,
        "seed": 1,
        "candidates": TYPES_OF_TARGETS,
        "targets": "gaps",
    } | settings
    targets = VectorTable(corpus, values.pop("targets"))
    return TrainingData(
        corpus=corpus,
        inputs=VectorTable(corpus, "raw"),
        targets=targets,
        streams=STREAMS,
        window=WINDOW,
        mix_shards=1,
        **values,
    )


def test_they_are_the_types_of_all_targets(tiny_corpus: Corpus) -> None:
    for window in islice(data_of(tiny_corpus).windows(Position(1, 0, 2)), 40):
        for direction, ids in window.ids.items():
            assert ids.shape == (STREAMS, WINDOW + 1)
            assert window.candidates[direction].ids.tolist() == sorted(set(ids[:, 1:].ravel().tolist()))


def test_every_process_and_every_direction_finds_the_same_ones(tiny_corpus: Corpus) -> None:
    data = data_of(tiny_corpus)
    whole = list(islice(data.windows(), 30))
    for own in (slice(0, 1), slice(1, 4)):
        for window, all_streams in zip(islice(data.windows(own=own), 30), whole, strict=True):
            for direction in DIRECTIONS:
                np.testing.assert_array_equal(window.candidates[direction].ids, all_streams.candidates[direction].ids)
                np.testing.assert_array_equal(window.ids[direction], all_streams.ids[direction][own])
    for direction in DIRECTIONS:
        alone = data_of(tiny_corpus, directions=(direction,))
        for window, both in zip(islice(alone.windows(), 30), whole, strict=True):
            np.testing.assert_array_equal(window.candidates[direction].ids, both.candidates[direction].ids)


@pytest.mark.parametrize("targets", ["gaps", "other", "raw"])
def test_batches_have_their_vectors(tiny_corpus: Corpus, targets: str) -> None:
    data = data_of(tiny_corpus, targets=targets)
    rows = np.asarray(data.targets.rows, dtype=np.float32)
    for window in islice(data.windows(own=slice(1, 3)), 5):
        batch = data.batch_maker().batch(window)
        for direction, ids in window.ids.items():
            np.testing.assert_array_equal(batch.inputs(direction).numpy(), data.inputs.rows[ids[:, :-1]])
            found = batch.targets(direction)
            candidates, types = found.candidates, window.candidates[direction].ids
            assert candidates is not None
            assert found.vectors is candidates.ids is None
            np.testing.assert_array_equal(found.ids.numpy(), ids[:, 1:])
            np.testing.assert_array_equal(types[candidates.labels.numpy()], ids[:, 1:])
            np.testing.assert_array_equal(candidates.vectors.numpy(), rows[types])
            assert candidates.log_chance.isfinite().all()
            expected = np.log(tiny_corpus.counts[types] / tiny_corpus.counts.sum())
            np.testing.assert_allclose(candidates.log_frequency.numpy(), expected, rtol=1e-5)


def test_frequencies_are_those_of_the_text_read(named_corpus: Corpus) -> None:
    assert (data_of(named_corpus, targets="raw").counts_read == named_corpus.counts).all()
    data = data_of(named_corpus, targets="raw", weights={"news": 0.0, "talk": 2.0})
    ids = np.concatenate([named_corpus.read_shard(each) for each in named_corpus.train if each.source == "talk"])
    counts = np.bincount(ids, minlength=named_corpus.types)
    np.testing.assert_array_equal(data.counts_read, 2.0 * counts)
    found = data.sampler.log_frequency[counts > 0]
    np.testing.assert_allclose(found, np.log(counts[counts > 0] / len(ids)), rtol=1e-5)


def test_chances_are_of_shares_whatever_all_sources_weigh(tiny_corpus: Corpus) -> None:
    chances = [data_of(tiny_corpus, weights={"": weight}).sampler.log_chance for weight in (0.01, 0.5, 1.0)]
    np.testing.assert_allclose(chances, [chances[2]] * 3, rtol=1e-5)
    sampler = TargetSampler(np.array([1000, 100, 1, 1, 0]) * 0.01, targets=64)
    assert np.isfinite(sampler.log_chance).all()
