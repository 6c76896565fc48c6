"""Uses of a word: found in a text, sampled alike, and given the vectors of their places."""

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.looking.uses import CONTEXT_WORDS, Use, find_uses, use_vectors

from elmoc import ElmoC

TEXT = "The bank of the river .\nA banker .\n\nBank on the bank !\nThe bank of the river .\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


def places(uses: list[Use]) -> list[tuple[int, int]]:
    return [(use.line, use.position) for use in uses]


def test_tokens_are_found_and_equal_sentences_count_once(text: Path) -> None:
    found, count = find_uses(text, "bank")
    assert (places(found), count) == ([(1, 1), (4, 3)], 3)
    assert found[0].tokens == ("The", "bank", "of", "the", "river", ".")
    both, count = find_uses(text, "BANK", ignore_case=True)
    assert (places(both), count) == ([(1, 1), (4, 0), (4, 3)], 4)
    zipped = text.with_suffix(".gz")
    zipped.write_bytes(gzip.compress(TEXT.encode()))
    assert find_uses(zipped, "bank") == (found, 3)
    text.write_text('{"id": 1, "text": "The bank of the river ."}\n{"id": 2, "text": "bank bank"}\n')
    [first, *others], count = find_uses(text, "bank")
    assert (first.tokens, len(others), count) == (found[0].tokens, 2, 3), "keys are no words"


def test_each_use_of_many_is_kept_as_often(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("".join(f"w{number} x\n" for number in range(2000)))
    found, count = find_uses(text, "x", most=400)
    assert (len(found), count) == (400, 2000)
    assert found == find_uses(text, "x", most=400)[0], "the same each time"
    quarters = Counter(use.line * 4 // 2001 for use in found)
    assert min(quarters.values()) > 70, "from everywhere in the text"
    assert places(found) == sorted(places(found))


def test_of_a_long_line_only_what_is_near_is_read(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(" ".join([*["a"] * 1000, "x", *["b"] * 1000]) + "\n")
    [use], _ = find_uses(text, "x")
    assert use.tokens == (*["a"] * CONTEXT_WORDS, "x", *["b"] * CONTEXT_WORDS)
    assert use.tokens[use.position] == "x"


def test_the_word_is_marked() -> None:
    use = Use(tuple("abcdefg"), 3)
    assert use.marked() == "a b c [d] e f g"
    assert Use(("w",) * 30, 15).marked() == " ".join(["…", *["w"] * 12, "[w]", *["w"] * 12, "…"])
    assert Use(("a",), 0).marked() == "[a]"
    assert use.around(2) == (("b", "c"), ("e", "f"))


def test_vectors_are_those_of_the_place(text: Path, model_path: Path) -> None:
    elmo = ElmoC.from_pretrained(model_path)
    uses, _ = find_uses(text, "bank")
    for layer, chosen in (("average", [0, 1, 2]), ("top", [2]), ("1", [1])):
        [vectors] = use_vectors(elmo, uses, [layer])
        for vector, use in zip(vectors, uses, strict=True):
            expected = elmo.embed(use.tokens)[chosen].mean(0)[use.position]
            np.testing.assert_allclose(vector, expected.numpy(), atol=1e-5)
    for layer in ("3", "-1", "top,1", ""):
        with pytest.raises(InputError, match="--layer"):
            use_vectors(elmo, uses, [layer])
