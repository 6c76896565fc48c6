"""Windows: training reads every token in the order that it says, and can go back to any place."""

import os
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from pretrain.data.groups import Group, TextGroups

from elmoc.corpus import Corpus, Shard
from elmoc.encoders import DIRECTIONS
from elmoc.errors import InputError
from pretrain.data.windows import (
    Cut,
    Position,
    Streams,
    held_out_windows,
    training_windows,
    unread_text,
    windows_of,
    windows_per_epoch,
)
from tests.pretrain.data.reading import BEGIN, updates_of_epoch, windows_of_shards
from tests.references import plain_cut_windows, plain_windows
from tests.tiny import write_corpus


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Three shards of which the second is short; no two sentences are alike."""
    shards = [[[f"s{shard}n{number}w{word}" for word in range(number % 4)] for number in range(count)]
              for shard, count in enumerate((17, 2, 30))]  # fmt: skip
    return write_corpus(tmp_path / "corpus", shards, [[["a", "b", "c"]] * 20])


def all_windows(corpus: Corpus, count: int, streams: int, window: int, seed: int = 5, position: Position = BEGIN):
    return list(islice(windows_of_shards(corpus, streams, window, seed=seed, position=position), count))


def sentences_of(corpus: Corpus, group: Group) -> list[list[int]]:
    sentences: list[list[int]] = []
    for part in group.parts:
        for token in corpus.read_shard(part.shard).tolist()[part.start : part.end]:
            if token == corpus.begin_id:
                sentences.append([])
            sentences[-1].append(token)
    return sentences


def groups_of_one(corpus: Corpus) -> TextGroups:
    """Each about as large as a shard."""
    return TextGroups(corpus, {}, mix=1, seed=5)


@pytest.mark.parametrize(("streams", "window"), [(1, 1), (2, 5), (3, 4), (4, 7)])
def test_every_epoch_is_that_of_the_plain_program(corpus: Corpus, streams: int, window: int) -> None:
    per_epoch = updates_of_epoch(corpus, streams, window)
    windows = all_windows(corpus, 2 * per_epoch + 1, streams, window)
    expected = []
    groups = groups_of_one(corpus)
    assert groups.count == 3
    for epoch in range(2):
        for place in range(3):
            sentences = sentences_of(corpus, groups.group(epoch, place))
            order = np.random.default_rng([5, epoch, place]).permutation(len(sentences))
            both = [
                plain_windows(sentences, order, streams=streams, window=window, backward=direction == "backward")
                for direction in DIRECTIONS
            ]
            expected += [dict(zip(DIRECTIONS, pair, strict=True)) for pair in zip(*both, strict=True)]
    assert len(expected) == 2 * per_epoch
    for read, wanted in zip(windows, expected, strict=False):
        assert {name: ids.tolist() for name, ids in read.ids.items()} == wanted
    assert windows[per_epoch - 1].next == Position(0, 3, 0)
    assert windows[-1].next.epoch == 2


@pytest.mark.parametrize("cut", ["sentences", "documents"])
@pytest.mark.parametrize(("streams", "window"), [(1, 1), (1, 6), (2, 9), (3, 4)])
def test_windows_that_begin_with_a_sentence_or_document(tmp_path: Path, cut: str, streams: int, window: int) -> None:
    """Of lengths below that of a window, and above."""
    text = [[f"n{number}w{word}" for word in range(number % 9)] for number in range(60)]
    corpus = write_corpus(tmp_path / "corpus", [text], [text[:20]], documents=3)
    tokens = corpus.read_shard(corpus.train[0])
    sentences = [unit.tolist() for unit in np.split(tokens, np.flatnonzero(tokens == corpus.begin_id)[1:])]
    documents = [unit.tolist() for unit in np.split(tokens, corpus.read_documents(corpus.train[0])[1:])]
    assert [len(documents), len(sentences)] == [20, 60]
    shuffled = {"sentences": sentences, "documents": documents}
    for order in ("sentences", "documents") if cut == "sentences" else ("documents",):
        permutation = np.random.default_rng([5, 0, 0]).permutation(len(shuffled[order]))
        units = [shuffled[order][number] for number in permutation]
        if order != cut:  # documents whose sentences stay in their order
            units = [
                part.tolist()
                for unit in map(np.array, units)
                for part in np.split(unit, np.flatnonzero(unit == corpus.begin_id)[1:])
            ]
        both = [
            plain_cut_windows(units, streams=streams, window=window, backward=direction == "backward")
            for direction in DIRECTIONS
        ]
        count = min(map(len, both))
        groups, how = TextGroups(corpus, {}, mix=1, seed=5), Cut(streams, window, order, cut)
        assert count == windows_per_epoch(corpus, groups, how)
        found = islice(
            training_windows(corpus, groups, how, directions=DIRECTIONS, position=Position()),
            count,
        )
        expected = [dict(zip(DIRECTIONS, pair, strict=True)) for pair in zip(*both, strict=False)]
        read = [{name: ids.tolist() for name, ids in each.ids.items()} for each in found]
        assert read == expected
        if window == 9 and cut == "sentences":
            inside = [each["forward"][row][0] == corpus.begin_id for each in read for row in range(streams)]
            assert np.mean(inside) > 0.7, "but for sentences that are longer than a window"


def test_nearly_all_of_a_text_is_read_where_windows_are_cut() -> None:
    generator = np.random.default_rng(0)
    lengths = generator.integers(5, 45, 4000)
    starts = np.cumsum(lengths) - lengths
    tokens = np.arange(lengths.sum(), dtype=np.uint32)
    for direction in DIRECTIONS:
        text = Streams(tokens, 8, direction, length=65, step=64, starts=starts)
        read = np.unique(np.concatenate([text.window(index).ravel() for index in range(text.count)]))
        assert len(read) > 0.95 * len(tokens)
        ends = starts + lengths - 1
        first = np.concatenate([text.window(index)[:, 0] for index in range(1, text.count)])
        assert np.isin(first, starts if direction == "forward" else ends).all(), "all are shorter than a window"


def test_held_out_windows_are_cut_as_well(corpus: Corpus) -> None:
    options = {"streams": 2, "window": 7, "directions": DIRECTIONS, "words": 10_000}
    read = list(held_out_windows(corpus, **options, at="sentences"))
    sentence = corpus.read_shard(corpus.held_out[0])[:5]
    for ids in read:
        for direction in DIRECTIONS:
            first = sentence if direction == "forward" else sentence[::-1]
            assert (ids[direction][:, :5] == first).all(), "all sentences are one of five tokens"


def test_a_stream_that_begins_in_the_middle_of_a_sentence_has_fewer_windows(tmp_path: Path) -> None:
    """Held-out text that is cut is read as far as all streams go."""
    text = [[f"n{number}w{word}" for word in range(7)] for number in range(30)]
    corpus = write_corpus(tmp_path / "corpus", [text], [text])
    for window in range(2, 40):
        options = {"window": window, "directions": DIRECTIONS, "words": 10_000}
        read = list(held_out_windows(corpus, streams=16, **options, at="sentences"))
        assert read
        assert {ids[direction].shape[1] for ids in read for direction in DIRECTIONS} == {window + 1}


def test_one_stream_reads_every_token_once_and_backward_is_the_reverse(corpus: Corpus) -> None:
    windows = all_windows(corpus, updates_of_epoch(corpus, 1, 1), 1, 1)
    forward = [int(window.ids["forward"][0, 0]) for window in windows]
    tokens = np.concatenate([corpus.read_shard(shard) for shard in corpus.train]).tolist()
    last = [corpus.end_id] * 3  # of each group only the last token is never an input, as nothing follows it
    assert sorted(forward + last) == sorted(tokens)
    backward = [int(window.ids["backward"][0, 0]) for window in windows]
    groups = groups_of_one(corpus)
    ends = np.cumsum([0, *(groups.group(0, place).tokens - 1 for place in range(3))])
    for start, end in pairwise(ends):
        assert backward[start + 1 : end] == forward[start + 1 : end][::-1]
        assert (backward[start], forward[start]) == (corpus.end_id, corpus.begin_id)


def test_windows_of_a_stream_join_on(corpus: Corpus) -> None:
    windows = all_windows(corpus, updates_of_epoch(corpus, 2, 3), 2, 3)
    for before, after in pairwise(windows):
        for direction in DIRECTIONS:
            assert before.ids[direction].shape == (2, 4)
            if after.next.shard == before.next.shard and before.next.window:
                assert (before.ids[direction][:, -1] == after.ids[direction][:, 0]).all()


@pytest.mark.parametrize(("streams", "window"), [(1, 4), (3, 4)])
def test_any_position_can_be_gone_back_to(corpus: Corpus, streams: int, window: int) -> None:
    windows = all_windows(corpus, 2 * updates_of_epoch(corpus, streams, window) + 3, streams, window)
    for number, read in enumerate(windows[:-3]):
        rest = all_windows(corpus, 3, streams, window, position=read.next)
        for again, wanted in zip(rest, windows[number + 1 :], strict=False):
            assert again.next == wanted.next
            for direction in DIRECTIONS:
                np.testing.assert_array_equal(again.ids[direction], wanted.ids[direction])


def test_epochs_and_seeds_differ_and_the_same_seed_does_not(corpus: Corpus) -> None:
    per_epoch = updates_of_epoch(corpus, 2, 4)

    def read(seed: int, epoch: int) -> list[list[int]]:
        windows = all_windows(corpus, per_epoch, 2, 4, seed, Position(epoch))
        return [window.ids["forward"].ravel().tolist() for window in windows]

    assert read(5, 0) == read(5, 0)
    assert read(5, 0) != read(5, 1)
    assert read(5, 0) != read(6, 0)


def test_a_direction_alone_reads_the_same(corpus: Corpus) -> None:
    both = all_windows(corpus, 20, 2, 4)
    for direction in DIRECTIONS:
        alone = windows_of_shards(corpus, 2, 4, seed=5, directions=(direction,))
        for one, two in zip(alone, both, strict=False):
            assert list(one.ids) == [direction]
            np.testing.assert_array_equal(one.ids[direction], two.ids[direction])


def most_tokens(corpus: Corpus) -> int:
    """Of a group."""
    return max(TextGroups(corpus, {}, mix=1, seed=0).first_sizes)


def test_too_many_streams_are_refused_with_a_number_that_works(corpus: Corpus) -> None:
    largest = most_tokens(corpus)
    assert updates_of_epoch(corpus, largest // 21, 20) > 0
    with pytest.raises(
        InputError,
        match=rf"streams=50 with .* need 1,050 tokens, .* hold {largest} at most: use fewer streams, e\.g\. 1",
    ):
        updates_of_epoch(corpus, 50, 20)


@pytest.mark.parametrize("window", [2, 20])
def test_the_tokens_that_are_said_to_be_needed_are_enough(corpus: Corpus, window: int) -> None:
    largest = most_tokens(corpus)
    enough = largest // (window + 1)
    assert updates_of_epoch(corpus, enough, window) > 0
    needed = f"need {(enough + 1) * (window + 1):,} tokens"
    with pytest.raises(InputError, match=f"{needed}, targets included, and .* hold {largest} at most: .*use fewer"):
        updates_of_epoch(corpus, enough + 1, window)


def test_where_one_stream_is_too_many_a_shorter_window_is_advised(corpus: Corpus) -> None:
    largest = most_tokens(corpus)
    with pytest.raises(InputError, match=f"hold {largest} at most: set .*, or use a shorter window, or more text"):
        updates_of_epoch(corpus, 1, largest)
    with pytest.raises(InputError, match=f"hold {largest} at most: use a shorter window, or more text"):
        updates_of_epoch(corpus, 1, corpus.train_tokens)


@pytest.mark.parametrize("sources", [(), ["a", "b"] * 30])
def test_the_shards_that_are_said_to_be_mixed_are_enough(tmp_path: Path, sources: list[str]) -> None:
    shards = [[["w", "x"]] * (5 if number % 2 else 50) for number in range(59)]
    corpus = write_corpus(tmp_path / "corpus", shards, [[["w"]]], sources=sources)
    cut = Cut(20, 10)
    with pytest.raises(InputError, match=r"at most: set train\.mix_shards=(\d+), or use fewer streams") as refused:
        windows_per_epoch(corpus, TextGroups(corpus, {}, mix=1, seed=1), cut)
    few = TextGroups(corpus, {}, mix=4, seed=1)
    warning = unread_text(few, cut)
    assert warning is not None
    windows = [windows_of(few.group(0, place).tokens, 20, 10) for place in range(few.count)]
    share = 200 * sum(windows) / corpus.train_tokens
    assert warning.startswith(f"an epoch reads {share:.0%} of its text, since 20 streams take few whole windows of 10")
    for text in (warning, str(refused.value)):
        mix = int(text.split("mix_shards=")[1].split(",")[0])
        assert 10 < mix < 59
        assert unread_text(TextGroups(corpus, {}, mix=mix, seed=1), cut) is None
    everything = unread_text(TextGroups(corpus, {}, mix=59, seed=1), Cut(400, 10))
    assert everything is not None
    assert everything.endswith("shuffled together: use fewer streams")


def test_of_text_that_an_epoch_reads_often_more_than_all_shards_may_be_mixed(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", [[["w", "x"]] * 125] * 2, [[["w"]]], sources=["s"] * 3)
    cut, weights = Cut(256, 20), {"s": 20.0}
    with pytest.raises(InputError, match=r"hold 10,000 at most: set train\.mix_shards=(\d+), or") as refused:
        windows_per_epoch(corpus, TextGroups(corpus, weights, mix=20, seed=1), Cut(500, 20))
    mix = int(str(refused.value).split("mix_shards=")[1].split(",")[0])
    assert windows_per_epoch(corpus, TextGroups(corpus, weights, mix=mix, seed=1), Cut(500, 20)) > 0
    text = unread_text(TextGroups(corpus, weights, mix=20, seed=1), cut)
    assert text is not None
    assert f"set train.mix_shards={mix}" in text


def test_many_shards_are_read_with_few_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = [[[f"n{number}w{word}" for word in range(3)]] for number in range(40)]
    corpus = write_corpus(tmp_path / "corpus", shards, shards)
    expected = np.concatenate([np.array(corpus.read_shard(shard)) for shard in corpus.held_out])
    whole, files = Corpus.map_shard, []

    def watched(self: Corpus, shard: Shard) -> np.ndarray:
        ids = whole(self, shard)
        files.append(len(os.listdir("/dev/fd")))
        return ids

    monkeypatch.setattr(Corpus, "map_shard", watched)
    groups = TextGroups(corpus, {}, mix=40, seed=1)
    next(training_windows(corpus, groups, Cut(2, 5), directions=DIRECTIONS, position=BEGIN))
    read = list(held_out_windows(corpus, streams=1, window=100, directions=DIRECTIONS, words=199))
    assert len(files) > 80
    assert max(files) - min(files) < 3
    np.testing.assert_array_equal(np.concatenate([ids["forward"][0, :-1] for ids in read]), expected[:-1])


def test_held_out_text_is_read_in_its_order(corpus: Corpus) -> None:
    tokens = corpus.read_shard(corpus.held_out[0]).tolist()  # 100
    read = list(held_out_windows(corpus, streams=2, window=4, directions=DIRECTIONS, words=10_000))
    for direction, text in (("forward", tokens), ("backward", tokens[::-1])):
        rows = np.concatenate([ids[direction][:, :-1] for ids in read], axis=1)
        assert rows.tolist() == [text[:99]], "one stream, where the text is short"
        assert read[-1][direction].shape == (1, 4), "the last window is of what is left"
        assert read[-1][direction][:, -1].tolist() == [text[99]]
    few = list(held_out_windows(corpus, streams=2, window=4, directions=DIRECTIONS, words=21))
    assert sum(ids["forward"].shape[1] - 1 for ids in few) == 21, "as many words as are asked for"
    with pytest.raises(InputError, match=r"only 100 tokens, less than two windows of train\.window=51: hold out more"):
        next(held_out_windows(corpus, streams=2, window=51, directions=DIRECTIONS, words=100))


def test_which_held_out_words_are_read_does_not_depend_on_the_window(tmp_path: Path) -> None:
    text = [[f"n{number}w{word}" for word in range(7)] for number in range(100)]
    corpus = write_corpus(tmp_path / "corpus", [text], [text])
    tokens = corpus.read_shard(corpus.held_out[0])  # 900
    for window in (2, 7, 30, 200):
        read = list(held_out_windows(corpus, streams=3, window=window, directions=DIRECTIONS, words=100))
        for direction, order in (("forward", 1), ("backward", -1)):
            streams = tokens[::order].reshape(3, 300)
            targets = np.concatenate([ids[direction][:, 1:] for ids in read], axis=1)
            inputs = np.concatenate([ids[direction][:, :-1] for ids in read], axis=1)
            np.testing.assert_array_equal(targets, streams[:, 1:35])
            np.testing.assert_array_equal(inputs, streams[:, :34])


def test_a_shard_that_does_not_begin_a_sentence_is_refused(corpus: Corpus) -> None:
    shard = corpus.path / corpus.train[0].file
    shard.write_bytes(shard.read_bytes()[4:] + shard.read_bytes()[:4])
    with pytest.raises(InputError, match=r"train-0\.bin does not start with <s>"):
        all_windows(corpus, updates_of_epoch(corpus, 1, 1), 1, 1)
