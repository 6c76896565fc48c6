"""Writing text: a corpus of it is the same corpus, and each kind is written as often as asked."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from data_scripts.build_corpus import build_corpus
from data_scripts.write_text import main, write_text
from elmoc.corpus import Corpus
from tests.tiny import learnable_sentences, write_corpus

NEWS, TALK = learnable_sentences(30, seed=1), learnable_sentences(20, seed=2)


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """Two sources, a document of four sentences each, and held-out text of one."""
    return write_corpus(
        tmp_path / "corpus",
        [NEWS[:15], TALK, NEWS[15:]],
        [TALK[:3]],
        sources=["news", "talk", "news", "talk"],
        documents=4,
    )


def sentences(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines() if line]


def test_a_corpus_of_the_text_is_the_same_corpus(corpus: Corpus, tmp_path: Path) -> None:
    write_text(corpus.path, tmp_path / "text.txt")
    write_text(corpus.path, tmp_path / "held_out.txt", held_out=True)
    assert sentences(tmp_path / "text.txt") == [*NEWS[:15], *TALK, *NEWS[15:]]
    build_corpus([tmp_path / "text.txt"], tmp_path / "again", held_out=[tmp_path / "held_out.txt"])
    again = Corpus(tmp_path / "again")
    words, documents, shards = [], [], []
    for each in (corpus, again):
        ends = np.cumsum([0, *(shard.tokens for shard in each.train)])
        starts = [each.read_documents(shard) + end for shard, end in zip(each.train, ends, strict=False)]
        words.append([each.lexicon[row] for shard in each.train for row in each.read_shard(shard)])
        documents.append(set(np.concatenate(starts).tolist()))
        shards.append(set(ends.tolist()))
    assert words[0] == words[1]
    assert documents[0] - shards[0] - shards[1] == documents[1] - shards[0] - shards[1], "a shard begins a document"
    assert len(documents[0] - shards[0] - shards[1]) > 2
    assert np.array_equal(corpus.counts, again.counts)


def test_each_kind_is_written_as_often_as_asked(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_text(corpus.path, tmp_path / "text.txt", times=["news=0.4", "talk=2.5"])
    found = Counter(map(tuple, sentences(tmp_path / "text.txt")))
    expected = Counter(map(tuple, [*TALK, *TALK, *TALK[1::2]]))
    for part in (NEWS[:15], NEWS[15:]):  # two of five, evenly spread
        expected.update(tuple(sentence) for number, sentence in enumerate(part) if number % 5 in (2, 4))
    assert found == expected
    lines = (tmp_path / "text.txt").read_text().split("\n\n")
    assert len(lines[0].splitlines()) == 1, "the document of sentences 0 to 3 has sentence 2 alone"
    counts = {name: sum(map(len, part)) for name, part in (("news", NEWS), ("talk", TALK))}
    printed = capsys.readouterr().out
    assert f"text.txt: {sum(len(words) * n for words, n in found.items()):,} words (news " in printed
    assert f", talk {2 * counts['talk'] + sum(map(len, TALK[1::2])):,})" in printed
    write_text(corpus.path, tmp_path / "talk.txt", times=["news=0"])
    assert sentences(tmp_path / "talk.txt") == TALK


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["new=2"], "--times new=2: the corpus has no kind of text 'new'; it has news, talk"),
        (["2"], "the corpus has no kind of text ''"),
        (["news=nan"], "--times news=nan: give a number from 0 to 1,000"),
        (["news=much"], "--times news=much: give a number"),
        (["news=0", "talk=0"], "--times news=0 talk=0 leaves no text"),
    ],
)
def test_what_cannot_be_is_refused(
    corpus: Corpus, tmp_path: Path, error_line: Callable[[int], str], times: list[str], message: str
) -> None:
    target = tmp_path / "text.txt"
    assert message in error_line(main([str(corpus.path), str(target), "--times", *times]))
    assert not target.exists()
    target.write_text("mine")
    assert "text.txt exists" in error_line(main([str(corpus.path), str(target)]))
    assert target.read_text() == "mine"
