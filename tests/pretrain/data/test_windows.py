"""Windows: training reads every token in the order that it says, in proportion to weights, from any place."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from elmoc.corpus import Corpus
from elmoc.word_vectors.table import VectorTable
from pretrain.data.sources import TrainingData
from pretrain.data.windows import (
    Group,
    Position,
    TextGroups,
    Window,
    held_out_windows,
    training_windows,
    windows_of,
    windows_per_epoch,
)
from tests.references import plain_windows
from tests.tiny import write_corpus

from elmoc.encoders import DIRECTIONS

SOURCES = ["a", "b", "a", "c", "b", "b", "a"]
COUNTS = (17, 12, 2, 9, 30, 21, 8)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Seven training shards of three sources; no two sentences are alike, and one is longer than a small group."""
    shards = [[[f"s{shard}n{number}w{word}" for word in range(number % 4)] for number in range(count)]
              for shard, count in enumerate(COUNTS)]  # fmt: skip
    shards[4][13] = [f"long{word}" for word in range(60)]
    return write_corpus(tmp_path / "corpus", shards, [[["a", "b"]] * 9] * 2, sources=[*SOURCES, "a", "b"], documents=3)


def tokens_of(corpus: Corpus, group: Group) -> list[int]:
    return [token for each in group.slices for token in corpus.read_shard(each.shard)[each.start : each.end].tolist()]


class Token(NamedTuple):
    """A token of the text, where it is, and which shard of its source it is in, counting all times round."""

    id: int
    file: str
    place: int
    shard: int = 0


def plain_group(corpus: Corpus, weights: dict[str, str], *, count: int, number: int, seed: int) -> list[int]:
    """The text of a group of the endless sequence, by streams that are written out."""
    slices: list[list[Token]] = []
    for index, name in enumerate(["a", "b", "c"]):
        weight = Fraction(weights.get(name, "1"))
        shards = [
            [Token(token, shard.file, place) for place, token in enumerate(corpus.read_shard(shard).tolist())]
            for shard in corpus.train
            if shard.source == name
        ]
        size = sum(map(len, shards))
        stream: list[Token] = []
        for time in range(2 + int(weight * (number + 1) / count)):
            for place, shard in enumerate(np.random.default_rng([seed, index, time, 1]).permutation(len(shards))):
                stream += [token._replace(shard=time * len(shards) + place) for token in shards[shard]]
        begin, end = (int(weight * size * place / count) for place in (number, number + 1))
        if weight:
            begin, end = (
                place + [token.id for token in stream[place:]].index(corpus.begin_id) for place in (begin, end)
            )
            slices += [list(part) for _, part in groupby(stream[begin:end], key=lambda token: token.shard)]
    slices.sort(key=lambda part: (part[0].file, part[0].place))
    return [token.id for part in slices for token in part]


@pytest.mark.parametrize("weights", [{}, {"a": "0.3", "b": "2"}, {"b": "0", "c": "7.25"}, {"a": "0.01"}])
@pytest.mark.parametrize("mix", [1, 3, 100])
def test_groups_are_those_of_the_plain_program(corpus: Corpus, weights: dict[str, str], mix: int) -> None:
    groups = TextGroups(corpus, {name: float(weight) for name, weight in weights.items()}, mix=mix, seed=mix)
    for epoch in range(3):
        for place in range(groups.count):
            number = epoch * groups.count + place
            group = groups.group(epoch, place)
            expected = plain_group(corpus, weights, seed=mix, count=groups.count, number=number)
            assert tokens_of(corpus, group) == expected
            assert group.tokens == len(expected)
            assert group.seed == (mix, epoch, place)


@pytest.mark.parametrize("order", ["sentences", "documents"])
@pytest.mark.parametrize(("streams", "window"), [(1, 1), (2, 5), (3, 4), (4, 7)])
def test_every_epoch_is_that_of_the_plain_program(corpus: Corpus, streams: int, window: int, order: str) -> None:
    groups = TextGroups(corpus, {"a": 2.0}, mix=2, seed=5)
    expected = []
    for epoch in range(2):
        for place in range(groups.count):
            group = groups.group(epoch, place)
            units: list[list[int]] = []
            for each in group.slices:
                documents = corpus.read_documents(each.shard).tolist()
                ids = corpus.read_shard(each.shard).tolist()
                for position in range(each.start, each.end):
                    starts = ids[position] == corpus.begin_id if order == "sentences" else position in documents
                    if starts or position == each.start:
                        units.append([])
                    units[-1].append(ids[position])
            shuffled = np.random.default_rng([5, epoch, place]).permutation(len(units))
            both = [
                plain_windows(units, shuffled, streams=streams, window=window, backward=direction == "backward")
                for direction in DIRECTIONS
            ]
            expected += [dict(zip(DIRECTIONS, pair, strict=True)) for pair in zip(*both, strict=True)]
    windows = list(islice(windows_of_corpus(corpus, Position(), streams, window, order), len(expected)))
    assert [{name: ids.tolist() for name, ids in each.ids.items()} for each in windows] == expected
    assert windows[-1].next == Position(1, groups.count, 0)
    alone = windows_of_corpus(corpus, Position(), streams, window, order, directions=("backward",))
    read = [{name: ids.tolist() for name, ids in each.ids.items()} for each in islice(alone, len(expected))]
    assert read == [{"backward": each["backward"]} for each in expected]


def windows_of_corpus(
    corpus: Corpus, position: Position, streams: int = 2, window: int = 3, order: str = "sentences", **given: Any
) -> Iterator[Window]:
    groups = TextGroups(corpus, {"a": 2.0}, mix=2, seed=5)
    settings = {"streams": streams, "window": window, "order": order, "directions": DIRECTIONS} | given
    return training_windows(groups, position=position, **settings)


@pytest.mark.parametrize(("streams", "window"), [(1, 4), (3, 4)])
def test_any_position_can_be_gone_back_to(corpus: Corpus, streams: int, window: int) -> None:
    per_epoch = windows_per_epoch(TextGroups(corpus, {"a": 2.0}, mix=2, seed=5), streams=streams, window=window)
    windows = list(islice(windows_of_corpus(corpus, Position(), streams, window), 2 * per_epoch + 3))
    assert windows[per_epoch].next.epoch == 1
    for number in range(0, len(windows) - 3, 5):
        again = islice(windows_of_corpus(corpus, windows[number].next, streams, window), 3)
        for one, other in zip(again, windows[number + 1 :], strict=False):
            assert one.next == other.next
            for direction in DIRECTIONS:
                np.testing.assert_array_equal(one.ids[direction], other.ids[direction])


def test_text_that_is_left_out_is_said(tiny_corpus: Corpus) -> None:
    table = VectorTable(tiny_corpus, "raw")
    for streams, said in ((2, False), (60, True)):
        settings = {"streams": streams, "window": 5, "mix_shards": 1, "seed": 1, "directions": DIRECTIONS}
        data = TrainingData(corpus=tiny_corpus, inputs=table, targets=table, **settings)
        sizes = [data.groups.group(0, place).tokens for place in range(data.groups.count)]
        share = sum(windows_of(size, streams, 5) for size in sizes) * streams * 5 / tiny_corpus.train_tokens
        assert (data.unread_text is not None) == said == (share < 0.95)
        assert not said or f"an epoch reads {share:.0%} of its text" in data.unread_text


def test_which_held_out_words_are_read_does_not_depend_on_the_window(tmp_path: Path) -> None:
    text = [[f"n{number}w{word}" for word in range(7)] for number in range(100)]
    corpus = write_corpus(tmp_path / "corpus", [text], [text])
    tokens = corpus.read_shard(corpus.held_out[0])  # 900
    for window in (2, 7, 30, 200):
        read = list(held_out_windows(corpus, streams=3, window=window, directions=DIRECTIONS, words=100))
        for direction, order in (("forward", 1), ("backward", -1)):
            streams = tokens[::order].reshape(3, 300)
            targets = np.concatenate([each.ids[direction][:, 1:] for each in read], axis=1)
            inputs = np.concatenate([each.ids[direction][:, :-1] for each in read], axis=1)
            np.testing.assert_array_equal(targets, streams[:, 1:35])
            np.testing.assert_array_equal(inputs, streams[:, :34])
