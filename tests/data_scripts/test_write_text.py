"""Writing text: a corpus of it is the same corpus, and each kind is written as often as asked."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from data_scripts.corpus import CorpusOptions, make_corpus
from data_scripts.write_text import TextOptions, main, write_text
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
    write_text(TextOptions(corpus=corpus.path, target=tmp_path / "text.txt"))
    write_text(TextOptions(corpus=corpus.path, target=tmp_path / "held_out.txt", held_out=True))
    assert sentences(tmp_path / "text.txt") == [*NEWS[:15], *TALK, *NEWS[15:]]
    options = CorpusOptions(tokenised="yes", held_out=(f"{tmp_path}/held_out.txt",), workers=1)
    make_corpus(tmp_path / "text.txt", tmp_path / "again", options)
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


def first(part: list[list[str]], share: float) -> list[list[str]]:
    """The sentences that begin in the first part of a shard."""
    begins = np.cumsum([0, *(len(sentence) + 2 for sentence in part)])
    return [sentence for sentence, begin in zip(part, begins, strict=False) if begin < share * begins[-1]]


def test_a_sample_has_the_proportions_of_the_sources(corpus: Corpus, tmp_path: Path) -> None:
    write_text(TextOptions(corpus=corpus.path, target=tmp_path / "text.txt", tokens=100))
    share = 100 / sum(shard.tokens for shard in corpus.train)
    expected = [*first(NEWS[:15], share), *first(TALK, share), *first(NEWS[15:], share)]
    assert sentences(tmp_path / "text.txt") == expected
    write_text(TextOptions(corpus=corpus.path, target=tmp_path / "all.txt", tokens=10**9))
    assert sentences(tmp_path / "all.txt") == [*NEWS[:15], *TALK, *NEWS[15:]]
    write_text(TextOptions(corpus=corpus.path, target=tmp_path / "few.txt", tokens=2))
    assert len(sentences(tmp_path / "few.txt")) == 1, "not one of each shard"


def test_nothing_is_overwritten(corpus: Corpus, tmp_path: Path, error_line: Callable[[int], str]) -> None:
    target = tmp_path / "text.txt"
    target.write_text("mine")
    assert "text.txt" in error_line(main([str(corpus.path), str(target)]))
    assert target.read_text() == "mine"
