"""Labels of words: read from both kinds of files, and refused where there are none."""

from pathlib import Path

import numpy as np
import pytest

from downstream.linear.labels import check_labels, constituent_labels, read_labelled
from downstream.readers.conll2012 import Span
from elmoc.errors import InputError
from tests.downstream.readers.test_conll2012 import TWO_PARTS
from tests.downstream.readers.test_conllu import TREES

PARSED = TWO_PARTS.replace("*))  ", "*))))", 1)  # all brackets of the parse are closed


def labels(path: Path, *kinds: str) -> list[list[list[str | None]]]:
    check_labels(kinds)
    return [found for _, found in read_labelled(path, kinds)]


def test_parts_of_speech_and_constituents_of_documents(tmp_path: Path) -> None:
    path = tmp_path / "d.conll"
    path.write_text(PARSED)
    first, *others = labels(path, "pos", "constituent")
    assert first == [["DT", "NNS", "VBD", "RP", "VBG", "."], ["NP", "NP", "VP", "VP", "S", "S"]]
    assert others == [[["UH"], [None]]] * 2, "a word alone has no constituent that holds others, too"


def brute_force(spans: list[Span], words: int) -> list[str | None]:
    found: list[str | None] = []
    for place in range(words):
        above = [span for span in spans if span.first <= place <= span.last and span.last > span.first]
        lowest = {(span.last - span.first, span.first): span for span in above}  # of equal ones the inner, the later
        found.append(lowest[min(lowest)].label.split("-")[0] if lowest else None)
    return found


def test_constituents_of_random_trees_are_those_of_a_search() -> None:
    generator = np.random.default_rng(1)

    def grow(first: int, last: int, depth: int) -> list[Span]:
        spans = [Span(f"N{generator.integers(9)}-SBJ", first, last)]
        if depth and last > first:
            cut = int(generator.integers(first, last + 1))
            for begin, end in ((first, cut), (cut + 1, last)):
                if begin <= end and generator.random() < 0.8:
                    spans += grow(begin, end, depth - 1)
        return spans

    for _ in range(100):
        words = int(generator.integers(1, 12))
        spans = sorted(grow(0, words - 1, 6), key=lambda span: (span.first, -span.last))
        assert constituent_labels(spans, words) == brute_force(spans, words)


def test_columns(ten: Path) -> None:
    assert labels(ten, "column:1", "column:-1")[-1] == [["O"], ["O"]]
    assert labels(ten, "column:1")[7] == [["B-PER", "I-PER", "I-PER"]]


def test_labels_of_dependency_trees(tmp_path: Path) -> None:
    path = tmp_path / "d.conllu"
    path.write_text(TREES)
    assert labels(path, "deprel", "upos", "xpos") == [
        [["nsubj", "root", "case", "obl", "punct"], ["PRON", "VERB", "ADP", "PROPN", "PUNCT"], [None] * 4 + [":"]],
        [["root"], ["INTJ"], [None]],
    ]
    words = [sentence.words for sentence, _ in read_labelled(path, ["upos"])]
    assert words == [("Se", "fue", "a", "Nueva_York", ":"), ("Adiós",)]


@pytest.mark.parametrize(
    ("kinds", "text", "place"),
    [
        (["tense"], "", "--label tense"),
        (["pos", "column:1"], "", "--label pos column:1"),
        (["upos"], "1\tAda\n", "line 1"),
        (["column:2"], "Ada\tO\n", "line 1"),
        (["pos"], "Ada\tO\n", "line 1"),
        (["constituent"], TWO_PARTS, "line 2: "),
    ],
)
def test_labels_that_cannot_be_read(tmp_path: Path, kinds: list[str], text: str, place: str) -> None:
    path = tmp_path / "d.conll"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        labels(path, *kinds)
    assert place in str(error.value)
