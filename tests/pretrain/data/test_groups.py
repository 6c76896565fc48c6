"""Groups of text: all of it in proportion to the weights, nothing left out or read twice, from any place."""

from fractions import Fraction
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from pretrain.data.groups import Group, TextGroups, pieces_of

from elmoc.corpus import Corpus, Shard
from elmoc.errors import InputError
from pretrain.data import groups as groups_module
from pretrain.data.windows import Cut, Position, training_windows, windows_of, windows_per_epoch
from tests.references import plain_windows
from tests.tiny import write_corpus

SOURCES = ["a", "b", "a", "c", "b", "b", "a"]
COUNTS = (17, 12, 2, 9, 30, 21, 8)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Seven training shards of three sources; no two sentences are alike, and one is longer than a small group."""
    shards = [[[f"s{shard}n{number}w{word}" for word in range(number % 4)] for number in range(count)]
              for shard, count in enumerate(COUNTS)]  # fmt: skip
    shards[4][13] = [f"long{word}" for word in range(60)]
    return write_corpus(tmp_path / "corpus", shards, [[["a", "b"]] * 9] * 2, sources=[*SOURCES, "a", "b"], documents=3)


@pytest.fixture(params=[1, 3, 50])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Shards whole, in some pieces, or in such as have 6 tokens."""
    monkeypatch.setattr(groups_module, "LEAST_PIECE", 6)
    return request.param


def tokens_of(corpus: Corpus, group: Group) -> list[int]:
    return [token for part in group.parts for token in corpus.read_shard(part.shard)[part.start : part.end].tolist()]


class Token(NamedTuple):
    """A token of the text, where it is, and the how manieth piece of its source it is in, counting all times round."""

    id: int
    file: str
    place: int
    piece: int = 0


def plain_pieces(corpus: Corpus, shard: Shard, count: int, marks: set[int]) -> list[list[Token]]:
    """So many pieces of a shard at most, each of which begins at the first of the `marks` from an equal part on."""
    count = max(1, min(count, shard.tokens // 6))
    pieces: list[list[Token]] = [[]]
    begun = 0
    for place, token in enumerate(corpus.read_shard(shard).tolist()):
        part = sum(shard.tokens * each // count <= place for each in range(1, count))
        if place in marks and part > begun:
            pieces.append([])
            begun = part
        pieces[-1].append(Token(token, shard.file, place))
    return pieces


def test_pieces_are_of_about_equal_size(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c", [[["a"] * 18] * count for count in (413, 1000, 204, 3000)], [[["x"]]])
    for shard, count in zip(corpus.train, (2, 4, 1, 7), strict=True):
        sizes = [part.end - part.start for part in pieces_of(corpus, shard, 7, whole_documents=False)]
        assert (len(sizes), sum(sizes)) == (count, shard.tokens)
        assert max(sizes) - min(sizes) <= 20


def plain_group(
    corpus: Corpus, weights: dict[str, str], *, count: int, number: int, seed: int, cut: int, documents: bool
) -> list[int]:
    """The text of a group of the endless sequence, by streams that are written out."""
    parts: list[list[Token]] = []
    for index, name in enumerate(["a", "b", "c"]):
        weight = Fraction(weights.get(name, "1"))
        shards = [shard for shard in corpus.train if shard.source == name]
        size = sum(shard.tokens for shard in shards)
        pieces: list[list[Token]] = []
        for shard in shards:
            ids = corpus.read_shard(shard)
            marks = corpus.read_documents(shard) if documents else np.flatnonzero(ids == corpus.begin_id)
            pieces += plain_pieces(corpus, shard, cut, set(marks.tolist()))
        stream: list[Token] = []
        for time in range(2 + int(weight * (number + 1) / count)):
            for place, piece in enumerate(np.random.default_rng([seed, index, time, 1]).permutation(len(pieces))):
                stream += [token._replace(piece=time * len(pieces) + place) for token in pieces[piece]]
        begin, end = (int(weight * size * place / count) for place in (number, number + 1))
        if weight:
            begin, end = (
                place + [token.id for token in stream[place:]].index(corpus.begin_id) for place in (begin, end)
            )
            parts += [list(part) for _, part in groupby(stream[begin:end], key=lambda token: token.piece)]
    parts.sort(key=lambda part: (part[0].file, part[0].place))
    return [token.id for part in parts for token in part]


@pytest.mark.parametrize("weights", [{}, {"a": "0.3", "b": "2"}, {"b": "0", "c": "7.25"}, {"a": "0.01"}])
@pytest.mark.parametrize("mix", [1, 3, 100])
@pytest.mark.parametrize("documents", [False, True])
def test_groups_are_those_of_the_plain_program(
    corpus: Corpus, weights: dict[str, str], mix: int, pieces: int, documents: bool
) -> None:
    of_source = {name: float(weight) for name, weight in weights.items()}
    groups = TextGroups(corpus, of_source, mix=mix, seed=5, pieces=pieces, whole_documents=documents)
    sizes = []
    for epoch in range(3):
        for place in range(groups.count):
            number = epoch * groups.count + place
            group = groups.group(epoch, place)
            how = {"count": groups.count, "number": number, "cut": pieces, "documents": documents}
            expected = plain_group(corpus, weights, seed=5, **how)
            assert tokens_of(corpus, group) == expected
            assert group.tokens == len(expected)
            assert group.seed == (5, epoch, place)
            sizes.append(group.tokens)
    assert sum(sizes) / len(sizes) == pytest.approx(groups.most_tokens, rel=0.1)


def test_an_epoch_of_weight_one_reads_every_sentence_once_and_of_half_the_other_half_next(
    corpus: Corpus, pieces: int
) -> None:
    everything = sorted(token for shard in corpus.train for token in corpus.read_shard(shard).tolist())
    groups = TextGroups(corpus, {}, mix=2, seed=1, pieces=pieces)
    for epoch in range(2):
        read = [token for place in range(groups.count) for token in tokens_of(corpus, groups.group(epoch, place))]
        assert sorted(read) == everything
    halves = TextGroups(corpus, {"a": 0.5, "b": 0.5, "c": 0.5}, mix=2, seed=1, pieces=pieces)
    epochs = [
        [token for place in range(halves.count) for token in tokens_of(corpus, halves.group(epoch, place))]
        for epoch in range(2)
    ]
    assert sorted(epochs[0] + epochs[1]) == everything
    assert min(map(len, epochs)) > 0.3 * len(everything)


def test_in_pieces_every_group_holds_text_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source of four files, one after the other; each has words of its own."""
    monkeypatch.setattr(groups_module, "LEAST_PIECE", 20)
    text = [[f"file{number // 2}", "x"] for number in range(8) for _ in range(400)]
    shards = [text[start : start + 400] for start in range(0, 3200, 400)]
    for sources in ((), ["a"] * 9):
        corpus = write_corpus(tmp_path / f"c{len(sources)}", shards, [[["x"]]], sources=sources)
        for pieces in (1, 100):
            groups = TextGroups(corpus, {}, mix=2, seed=1, pieces=pieces)
            assert groups.count == 4
            for place in range(4):
                tokens = tokens_of(corpus, groups.group(0, place))
                shares = [tokens.count(corpus.lexicon.index(f"file{number}")) / 800 for number in range(4)]
                assert (min(shares) > 0.15) == (pieces == 100), "of a quarter"


def test_every_group_holds_every_source_in_proportion(tmp_path: Path) -> None:
    sentences = [[["x", "y"]] * count for count in (40, 40, 40, 40, 20, 20)]
    corpus = write_corpus(tmp_path / "c", sentences, [[["x"]]] * 2, sources=["a", "a", "a", "a", "b", "b", "a", "b"])
    groups = TextGroups(corpus, {"b": 2.0}, mix=1, seed=3)
    assert groups.count == 7  # 960 tokens, and a shard has 133 on average
    for place in range(groups.count):
        of = dict.fromkeys("ab", 0)
        for part in groups.group(1, place).parts:
            of[part.shard.source] += part.end - part.start
        assert of["a"] == pytest.approx(640 / 7, abs=4)
        assert of["b"] == pytest.approx(320 / 7, abs=4)


@pytest.mark.parametrize("order", ["sentences", "documents"])
def test_windows_are_those_of_the_plain_program(corpus: Corpus, order: str) -> None:
    groups = TextGroups(corpus, {"a": 2.0}, mix=3, seed=5)
    expected = []
    for epoch in range(2):
        for place in range(groups.count):
            group = groups.group(epoch, place)
            units: list[list[int]] = []
            for part in group.parts:
                documents = corpus.read_documents(part.shard).tolist()
                ids = corpus.read_shard(part.shard).tolist()
                for position in range(part.start, part.end):
                    starts = ids[position] == corpus.begin_id if order == "sentences" else position in documents
                    if starts or position == part.start:
                        units.append([])
                    units[-1].append(ids[position])
            shuffled = np.random.default_rng([5, epoch, place]).permutation(len(units))
            expected += plain_windows(units, shuffled, streams=2, window=3, backward=False)
    windows = list(islice(windows_of_corpus(corpus, Position(), order=order), len(expected)))
    assert [window.ids["forward"].tolist() for window in windows] == expected
    assert windows[-1].next == Position(1, groups.count, 0)


def windows_of_corpus(corpus: Corpus, position: Position, order: str = "sentences"):
    groups = TextGroups(corpus, {"a": 2.0}, mix=3, seed=5)
    return training_windows(corpus, groups, Cut(2, 3, order), directions=("forward",), position=position)


def test_any_position_can_be_gone_back_to(corpus: Corpus) -> None:
    per_epoch = windows_per_epoch(corpus, TextGroups(corpus, {"a": 2.0}, mix=3, seed=5), Cut(2, 3))
    windows = list(islice(windows_of_corpus(corpus, Position()), 2 * per_epoch + 3))
    assert windows[per_epoch - 1].next.epoch == 0
    assert windows[per_epoch].next.epoch == 1
    for number in range(0, len(windows) - 3, 5):
        again = list(islice(windows_of_corpus(corpus, windows[number].next), 3))
        for one, other in zip(again, windows[number + 1 :], strict=False):
            assert one.next == other.next
            np.testing.assert_array_equal(one.ids["forward"], other.ids["forward"])


def test_documents_of_a_corpus_without_sources_stay_whole(tmp_path: Path) -> None:
    sentences = [[[f"d{shard}{number // 4}w", f"n{number % 4}"] for number in range(20)] for shard in range(2)]
    corpus = write_corpus(tmp_path / "c", sentences, [[["x"]]], documents=4)
    groups = TextGroups(corpus, {}, mix=2, seed=1)
    windows = training_windows(corpus, groups, Cut(1, 1, "documents"), directions=("forward",), position=Position())
    read = [corpus.lexicon[window.ids["forward"][0, 0]] for window in islice(windows, windows_of(160, 1, 1))]
    order = [word for word in read if word.startswith("d")]
    assert [order[start : start + 4] == [order[start]] * 4 for start in range(0, 40, 4)] == [True] * 10
    assert [word for word in read if word.startswith("n")] == [f"n{number}" for number in range(4)] * 10
    assert order[::4] != sorted(order[::4])


def test_a_group_reads_little_beside_its_own_text(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = TextGroups(corpus, {}, mix=1, seed=5)
    read = []

    class Watched(np.ndarray):
        def __getitem__(self, place: slice) -> np.ndarray:
            read.append(place.stop - place.start)
            return np.asarray(self)[place]

    whole = Corpus.map_shard
    monkeypatch.setattr(Corpus, "map_shard", lambda self, shard: whole(self, shard).view(Watched))
    monkeypatch.setattr(groups_module, "_SENTENCE_STEP", 8)
    groups.group(10**6, 1)
    assert 0 < sum(read) < 20 * 8


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"a": 1.0, "d": 2.0}, r"data\.sources: .*corpus has no source d \(it has a, b, c\)"),
        ({"a": 0.0, "b": 0.0, "c": 0.0}, "gives every source of .*corpus the weight 0"),
    ],
)
def test_weights_that_fit_no_source_are_refused(corpus: Corpus, weights: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TextGroups(corpus, weights, mix=1, seed=1)
