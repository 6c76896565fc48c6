"""Shards: what is held out is from everywhere in the text, and of about the wanted size."""

from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from data_scripts.build_corpus import main
from data_scripts.parts.pieces import NumberedPiece, TextPiece, number_piece
from data_scripts.parts.shards import SHORTEST_END, held_out_ends
from elmoc.corpus import Corpus, Shard
from elmoc.text.documents import TextRange


def sentences_of(corpus: Corpus, shards: list[Shard]) -> list[list[str]]:
    """The sentences of shards, in their order, without boundaries."""
    text = " ".join(corpus.lexicon[row] for shard in shards for row in corpus.read_shard(shard))
    return [sentence.replace("<s>", "").split() for sentence in text.split("</s>")[:-1]]


def write_files(names: str, *, documents: int, sentences: int = 20) -> list[list[str]]:
    """Files whose every word is in one place alone; returns their sentences."""
    written = []
    for name in names:
        with open(name, "w") as file:
            for document in range(documents):
                for number in range(sentences):
                    written.append([name, f"document{document}", f"sentence{number}", "."])
                    file.write(" ".join(written[-1]) + "\n")
                file.write("\n")
    return written


def test_what_is_held_out_is_from_all_of_the_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = write_files("abcdef", documents=240)
    assert main([*"abcdef", "corpus"]) == 0
    corpus = Corpus("corpus")
    train, held_out = sentences_of(corpus, corpus.train), sentences_of(corpus, corpus.held_out)
    assert sorted(chain(train, held_out)) == sorted(written), "every sentence is in one of the two"
    assert {sentence[0] for sentence in held_out} == set("abcdef")
    assert 0.03 < len(held_out) / len(written) < 0.07
    place = {tuple(sentence): number for number, sentence in enumerate(written)}
    places = np.array([place[tuple(sentence)] for sentence in held_out])
    assert np.diff(np.concatenate([[0], places, [len(written)]])).max() < 0.15 * len(written), "no long part without"
    assert all(shard.tokens >= SHORTEST_END / 2 for shard in corpus.held_out)
    for shard in (*corpus.train, *corpus.held_out):
        own, starts = sentences_of(corpus, [shard]), corpus.read_documents(shard)
        first_of_document = np.flatnonzero(corpus.read_shard(shard) == corpus.begin_id).searchsorted(starts)
        new = [own[number][:2] != own[number - 1][:2] for number in range(1, len(own))]
        assert first_of_document.tolist() == [0, *(np.flatnonzero(new) + 1)]
        assert (shard.sentences, shard.documents) == (len(own), len(starts))


def numbered_piece(folder: Path, text: str, shard_tokens: int) -> NumberedPiece:
    (folder / "text").write_text(text)
    piece = TextPiece((TextRange(folder / "text"),), False, shard_tokens)
    return NumberedPiece(number_piece(piece, folder, None, {}), piece)


def test_a_shard_of_one_sentence_is_not_split(tmp_path: Path) -> None:
    shards = numbered_piece(tmp_path, ("word " * 2998 + "\n") * 5, 3000).shards
    assert [len(shard.sentences) for shard in shards] == [1] * 5
    assert shards[0].split(500) is None
    assert held_out_ends(shards) == {shards[4]: [replace(shards[4], held_out=True)]}, (
        "the last one whole, where none can be split"
    )


@pytest.mark.parametrize(("tokens", "sentences"), [(1, 1), (5, 1), (6, 1), (50, 10), (10**6, 99)])
def test_an_end_has_about_the_wanted_tokens(tmp_path: Path, tokens: int, sentences: int) -> None:
    (shard,) = numbered_piece(tmp_path, "a b c\n" * 100, 10_000).shards
    parts = shard.split(tokens)
    assert parts is not None
    before, end = parts
    assert (before.start, before.end, end.end) == (shard.start, end.start, shard.end)
    assert (len(before.sentences) + len(end.sentences), len(end.sentences)) == (100, sentences)
