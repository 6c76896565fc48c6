"""What is held out where no text is named for that: ends of shards, from everywhere in the text of each source."""

from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from data_scripts.build_corpus import main
from data_scripts.parts.local_shards import split_end, write_piece
from data_scripts.parts.sources import SHORTEST_END, held_out_ends
from data_scripts.parts.text_pieces import Piece, Segment
from elmoc.corpus import Corpus, Shard


def sentences_of(corpus: Corpus, shards: list[Shard]) -> list[list[str]]:
    """The sentences of shards, in their order, without boundaries."""
    text = " ".join(corpus.lexicon[row] for shard in shards for row in corpus.read_shard(shard))
    return [sentence.replace("<s>", "").split() for sentence in text.split("</s>")[:-1]]


def write_files(folder: Path, names: str, *, documents: int, sentences: int = 20) -> list[list[str]]:
    """Files whose every word is in one place alone; returns their sentences."""
    written = []
    for name in names:
        with open(folder / name, "w") as file:
            for document in range(documents):
                for number in range(sentences):
                    written.append([name, f"document{document}", f"sentence{number}", "."])
                    file.write(" ".join(written[-1]) + "\n")
                file.write("\n")
    return written


def test_what_is_held_out_is_from_all_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = write_files(tmp_path, "abcdef", documents=240)
    assert main([*"abcdef", "corpus"]) == 0
    corpus = Corpus("corpus")
    train, held_out = sentences_of(corpus, corpus.train), sentences_of(corpus, corpus.held_out)
    assert sorted(chain(train, held_out)) == sorted(written), "every sentence is in one of the two"
    assert {sentence[0] for sentence in held_out} == set("abcdef")
    assert 0.03 < len(held_out) / len(written) < 0.07
    place = {tuple(sentence): number for number, sentence in enumerate(written)}
    places = np.array([place[tuple(sentence)] for sentence in held_out])
    assert np.diff(np.concatenate([[0], places, [len(written)]])).max() < 0.15 * len(written), "no long part without"
    counts = Counter(chain.from_iterable(["<s>", *sentence, "</s>"] for sentence in train))
    assert dict(zip(corpus.lexicon, corpus.counts.tolist(), strict=True)) == {
        word: counts[word] for word in corpus.lexicon
    }, "how often each word stands in what is trained on"
    assert all(shard.tokens >= SHORTEST_END / 2 for shard in corpus.held_out)
    for shard in (*corpus.train, *corpus.held_out):
        own = sentences_of(corpus, [shard])
        starts = corpus.read_documents(shard)
        first_of_document = np.flatnonzero(corpus.read_shard(shard) == corpus.begin_id).searchsorted(starts)
        new = [own[number][:2] != own[number - 1][:2] for number in range(1, len(own))]
        assert first_of_document.tolist() == [0, *(np.flatnonzero(new) + 1)]
        assert (shard.sentences, shard.documents, shard.tokens) == (
            len(own),
            len(starts),
            sum(map(len, own)) + 2 * len(own),
        )


def test_an_end_begins_with_a_document_where_one_begins_nearby(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, "a", documents=2000)
    assert main(["a", "corpus"]) == 0
    corpus = Corpus("corpus")
    assert len(corpus.held_out) > 1
    assert all(sentences_of(corpus, [shard])[0][2] == "sentence0" for shard in corpus.held_out)


def test_the_last_shard_of_a_small_text_is_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = write_files(tmp_path, "ab", documents=40)
    assert main(["a", "b", "corpus"]) == 0
    corpus = Corpus("corpus")
    (shard,) = corpus.held_out
    assert shard.tokens < 2 * SHORTEST_END
    assert sentences_of(corpus, [shard]) == written[-shard.sentences :]


def test_each_source_has_ends_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path, "abc", documents=2000)
    write_files(tmp_path, "d", documents=20)
    assert main(["large=a", "large=b", "large=c", "small=d", "corpus"]) == 0
    corpus = Corpus("corpus")
    held_out = {
        source: [shard for shard in corpus.held_out if shard.source == source] for source in corpus.held_out_sources
    }
    assert {sentence[0] for sentence in sentences_of(corpus, held_out["large"])} == set("abc")
    assert len(held_out["small"]) == 1


def local_piece(folder: Path, text: str, shard_tokens: int) -> tuple[Path, list]:
    """The folder and the shards of a piece of text."""
    (folder / "text").write_text(text)
    piece = Piece((Segment(str(folder / "text")),), False, len(text), shard_tokens)
    return folder / "piece", write_piece((piece, folder / "piece"))


def test_a_shard_of_one_sentence_is_not_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("data_scripts.parts.local_shards.piece_key", lambda *_: "piece")
    folder, shards = local_piece(tmp_path, ("word " * 2998 + "\n") * 5, 3000)
    assert [shard.sentences for shard in shards] == [1] * 5
    assert split_end(folder, 0, 500) is None
    ends = held_out_ends([(folder, number, shard) for number, shard in enumerate(shards)])
    assert ends == {4: (None, shards[4])}, "the last one whole, where none can be split"


@pytest.mark.parametrize("short", [0, 1])
def test_of_long_lines_no_more_is_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short: int) -> None:
    monkeypatch.setattr("data_scripts.parts.local_shards.piece_key", lambda *_: "piece")
    folder, shards = local_piece(tmp_path, ("word " * 4990 + "\n" + "a b c\n" * short) * 80, 20_000)
    ends = held_out_ends([(folder, number, shard) for number, shard in enumerate(shards)])
    tokens = sum(shard.tokens for shard in shards) / len(shards)
    assert 0.2 < sum(end.tokens for _, end in ends.values()) / tokens <= 1.5
    assert len(ends) > 1


@pytest.mark.parametrize(("tokens", "sentences"), [(1, 1), (5, 1), (6, 1), (50, 10), (10**6, 99)])
def test_an_end_has_about_so_many_tokens(
    tmp_path: Path, tokens: int, sentences: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("data_scripts.parts.local_shards.piece_key", lambda *_: "piece")
    folder, (shard,) = local_piece(tmp_path, "a b c\n" * 100, 10_000)
    parts = split_end(folder, 0, tokens)
    assert parts is not None
    before, end = parts
    assert (before.tokens + end.tokens, before.sentences + end.sentences) == (shard.tokens, shard.sentences)
    assert end.tokens == 5 * end.sentences
    assert end.sentences == sentences
