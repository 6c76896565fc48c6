"""Overlap: the sentences that are found are those of the plain program, in single sentences and in a corpus."""

import random
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
from elmoc.text.overlap import Overlap, overlapping_sentences
from tests.references import plain_overlap
from tests.tiny import Sentences, write_corpus

WORDS = ["a", "A", "b", "B.", "c", ",", "--", "é", "É", "e\u0301", "日本", "x2"]


def drawn(generator: random.Random, count: int, longest: int) -> Sentences:
    return [generator.choices(WORDS, k=generator.randint(0, longest)) for _ in range(count)]


def found_in(overlap: Overlap, sentences: Sentences) -> list[bool]:
    words = [word for sentence in sentences for word in ("<s>", *sentence, "</s>")]
    starts = np.cumsum([0, *(len(sentence) + 2 for sentence in sentences)])[:-1]
    return overlap.find(overlap.hashes(words), starts).tolist()


def test_what_is_found_is_what_the_plain_program_finds() -> None:
    generator = random.Random(1)
    known = drawn(generator, 30, 14)
    text = drawn(generator, 150, 12)
    text += [[*generator.choices(WORDS, k=3), *sentence[2:], "and", "more"] for sentence in known]
    text += [[word.upper() for word in sentence if word != ","] for sentence in known]
    text = generator.sample(text, len(text))
    found = found_in(Overlap(known), text)
    assert found == [plain_overlap(sentence, known) for sentence in text]
    assert 20 < sum(found) < len(found) - 20


@pytest.mark.parametrize(
    ("sentence", "overlaps"),
    [
        ("One two three four five six seven eight nine ten .", True),
        ("one , TWO three four-- five six seven eight , nine ten", True),
        ("so one two three four five six seven eight ends", True),
        ("one two three four five six seven", False),
        ("one two three four five six seven x eight nine ten", False),
        ("the cat sat on it", True),
        ("the cat sat on it now", False),
        ("cat sat on it", False),
        ("a b c d", False),
        ("déjà vu ist straße", False),
        ("DÉJÀ vu ist STRAßE “ schön ”", True),
        (normalize("NFD", "déjà vu ist Straße schön"), True),
        ("deja vu ist Straße schon", False),
        ("", False),
        (". . . . . . . . .", False),
    ],
)
def test_cases(sentence: str, overlaps: bool) -> None:
    known = ["one two three four five six seven eight nine ten", "The cat , sat on it !", "a b c d",
             "Déjà vu ist Straße schön", ". . . . . ."]  # fmt: skip
    assert found_in(Overlap(each.split() for each in known), [sentence.split()]) == [overlaps]


def test_a_corpus_is_searched(tmp_path: Path) -> None:
    generator = random.Random(2)
    shards = [drawn(generator, 60, 9) for _ in range(4)]
    known = [*drawn(generator, 20, 14), *(shard[number] for shard in shards for number in range(0, 60, 9))]
    known.append(["un", "known", "words", "of", "no", "corpus"])
    corpus = write_corpus(tmp_path / "c", shards[:3], shards[3:])
    expected = [sentence for shard in shards for sentence in shard if plain_overlap(sentence, known)]
    assert overlapping_sentences(corpus, Overlap(known)) == len(expected) > 5
    assert overlapping_sentences(corpus, Overlap([])) == 0
