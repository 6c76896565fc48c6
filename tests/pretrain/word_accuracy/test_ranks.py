"""Ranks of words by a model of units: the search gives what scoring every candidate gives."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from elmoc.encoders import EncoderSizes
from elmoc.encoders.bidirectional import DirectionEncoder
from elmoc.encoders.lstm import LstmSizes
from elmoc.encoders.plain_lstm import PlainLstmSizes
from elmoc.input_layers.identity import Identity
from pretrain.execution.device import Execution
from pretrain.output_layers.full_softmax import FullSoftmaxOutput, FullSoftmaxSettings
from pretrain.word_accuracy.ranks import UnitModel, WordRanker
from pretrain.word_accuracy.trie import WordTrie

CPU = torch.device("cpu")
UNITS = 12
BEGIN_WORDS = np.arange(UNITS) < 5  # unit 0 is a mark
WORDS = [[0], [1], [1, 6], [1, 6, 7], [2], [2, 8], [3, 9, 9], [3, 9], [4, 5, 6, 7], [1, 11], [2, 10, 5]]
SIZES = [LstmSizes(projection_size=6, cell_size=9, layers=2), PlainLstmSizes(projection_size=6, layers=2)]


def unit_model(sizes: EncoderSizes) -> UnitModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        encoder = DirectionEncoder(Identity(), sizes.builder(fast=False)()).eval()
        layer = FullSoftmaxOutput(sizes.projection_size, UNITS, UNITS, FullSoftmaxSettings())
        nn.init.normal_(layer.rows, std=1.0)
        vectors = torch.randn(UNITS, sizes.projection_size)
    return UnitModel(encoder, layer, vectors, Execution(CPU, "fp32", fast=False))


def log_probabilities(model: UnitModel, units: list[int]) -> np.ndarray:
    """Of the unit after some, which are all read anew."""
    state = None
    for unit in units:
        reading = model.read(np.array([unit]), state)
        state = reading.state
    return reading.log_probabilities[0].double().numpy()


def plain_score(model: UnitModel, context: list[int], path: list[int], *, is_over: bool) -> float:
    """The log-probability of a word after a context, unit by unit."""
    total = 0.0
    for place, unit in enumerate(path):
        total += log_probabilities(model, context + path[:place])[unit]
    if not is_over:
        total += float(np.log(np.exp(log_probabilities(model, context + path)[BEGIN_WORDS]).sum()))
    return total


@pytest.mark.parametrize("sizes", SIZES, ids=lambda sizes: sizes.kind)
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_ranks_are_those_of_scoring_every_candidate(sizes: EncoderSizes, direction: str) -> None:
    model = unit_model(sizes)
    paths = WORDS if direction == "forward" else [path[::-1] for path in WORDS]
    is_over = np.array([direction == "backward" or path == [0] for path in paths])
    contexts = np.random.default_rng(2).integers(0, UNITS, (2 * len(WORDS), 3))
    state = None
    for units in contexts.T:
        reading = model.read(units, state)
        state = reading.state
    words = np.tile(np.arange(len(WORDS)), 2)
    expected, own = [], []
    for context, word in zip(contexts.tolist(), words.tolist(), strict=True):
        pairs = zip(paths, is_over.tolist(), strict=True)
        scores = np.array([plain_score(model, context, path, is_over=over) for path, over in pairs])
        assert np.diff(np.sort(scores)).min() > 1e-4, "no two are equal"
        expected.append(int((scores >= scores[word]).sum()))
        own.append(scores[word])
    assert len(set(expected)) > len(WORDS) - 3, "nearly every rank is there"
    for most in (1, 3, 20):
        ranker = WordRanker(model, paths, is_over, BEGIN_WORDS, most=most)
        assert ranker.ranks(reading, words).tolist() == [rank if rank <= most else 0 for rank in expected]
    np.testing.assert_allclose(ranker.scores(reading, words), own, rtol=1e-5)


class Conversions(TorchDispatchMode):
    """Counts the conversions of truth values."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function is torch.ops.aten._to_copy.default and args[0].dtype == torch.bool
        return function(*args, **(kwargs or {}))


def test_the_units_that_begin_a_word_are_converted_once_for_all_ranks() -> None:
    model = unit_model(SIZES[0])
    with Conversions() as conversions:
        ranker = WordRanker(model, WORDS, np.array([path == [0] for path in WORDS]), BEGIN_WORDS, most=3)
        for unit in range(3):
            ranker.ranks(model.read(np.array([unit]), None), np.array([4]))
    assert conversions.count == 1


def test_words_that_are_over_and_units_that_follow_share_all_probability() -> None:
    """In the forward direction all words of up to three units, and what is longer, have probability 1 together."""
    model = unit_model(SIZES[0])
    context = [3, 9, 1]
    begins, inside = np.flatnonzero(BEGIN_WORDS).tolist(), np.flatnonzero(~BEGIN_WORDS).tolist()
    paths = [[0], *([first] for first in begins[1:]), *([first, second] for first in begins[1:] for second in inside)]
    is_over = np.array([path == [0] for path in paths])
    ranker = WordRanker(model, paths, is_over, BEGIN_WORDS, most=5)
    state = None
    for unit in context:
        reading = model.read(np.array([unit]), state)
        state = reading.state
    at_all = reading.at(np.zeros(len(paths), dtype=np.int64))
    words = np.exp(ranker.scores(at_all, np.arange(len(paths)))).sum()
    longer = sum(
        np.exp(sum(log_probabilities(model, context + path[:place])[unit] for place, unit in enumerate(path)))
        for first in begins[1:]
        for second in inside
        for path in ([first, second, third] for third in inside)
    )
    begun = np.exp(log_probabilities(model, context))[BEGIN_WORDS].sum()
    assert words + longer == pytest.approx(begun, rel=1e-5)


def test_a_trie_by_hand() -> None:
    trie = WordTrie([[1], [1, 6], [2, 8], [0]], np.array([False, False, False, True]))
    rows, units, nodes = trie.children(np.array([0]))
    assert (rows.tolist(), units.tolist()) == ([0, 0, 0], [1, 2, 0])
    one, two, mark = nodes.tolist()
    assert trie.ends.tolist()[0] == one
    assert trie.is_word[[one, two, mark]].tolist() == [True, False, True]
    assert trie.is_over[[one, two, mark]].tolist() == [False, False, True]
    rows, units, nodes = trie.children(np.array([two, mark, one]))
    assert (rows.tolist(), units.tolist()) == ([0, 2], [8, 6])
    assert nodes.tolist() == [trie.ends[2], trie.ends[1]]
