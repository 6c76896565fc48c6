"""Subwords: the first of each word is found, and pieces of long sentences keep every word once."""

import random

import pytest

from downstream.peers.subwords import MOST_SUBWORDS, Subwords, cut, pieces


def divide(word: str) -> list[int]:
    """A subword for every two characters."""
    return [len(word[start:]) for start in range(0, len(word), 2)]


def test_every_word_has_subwords_and_long_words_are_cut() -> None:
    subwords = Subwords(divide, unknown=1)
    assert subwords["abcde"] == [5, 3, 1]
    assert subwords[""] == [1], "what a tokenizer leaves out is the unknown subword"
    assert len(subwords["x" * 1000]) == MOST_SUBWORDS
    assert set(subwords) == {"abcde", "", "x" * 1000}, "each word is divided once"


def test_a_sentence_that_fits_is_one_piece() -> None:
    assert list(pieces([1, 2, 3], most=6, overlap=2)) == [(0, 3, 0, 3)]


def test_pieces_overlap_and_the_border_is_in_the_middle() -> None:
    assert list(pieces([1] * 10, most=6, overlap=2)) == [(0, 6, 0, 5), (4, 10, 5, 10)]


@pytest.mark.parametrize("seed", range(20))
def test_pieces_keep_every_word_once_and_are_not_too_long(seed: int) -> None:
    draw = random.Random(seed)
    lengths = [draw.randint(1, 6) for _ in range(draw.randint(1, 200))]
    most, overlap = draw.randint(12, 40), draw.randint(0, 6)
    made = list(pieces(lengths, most=most, overlap=overlap))
    kept = [word for piece in made for word in range(piece.first, piece.last)]
    assert kept == list(range(len(lengths)))
    for piece in made:
        assert piece.start <= piece.first < piece.last <= piece.stop
        assert sum(lengths[piece.start : piece.stop]) <= most
    for before, after in zip(made, made[1:], strict=False):
        assert sum(lengths[after.start : before.stop]) <= overlap


def test_training_reads_every_word_once() -> None:
    lengths = [random.Random(3).randint(1, 5) for _ in range(100)]
    parts = list(cut(lengths, most=17))
    assert [word for part in parts for word in part] == list(range(100))
    assert all(sum(lengths[word] for word in part) <= 17 for part in parts)
