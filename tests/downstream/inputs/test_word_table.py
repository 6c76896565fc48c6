"""Tables of word vectors: words without a vector are counted."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from downstream.inputs.probe_inputs import InputSources, ProbeInputs
from downstream.inputs.sentence import Sentence
from downstream.inputs.word_table import WordTable
from elmoc.errors import InputError
from elmoc.word_vectors.sources import RandomVectors
from tests.downstream.conftest import words_of

SENTENCES = [Sentence(tuple(words), "ten.conll", 3 * row) for row, words in enumerate(words_of())]


def test_words_without_a_vector_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "few.vec"
    path.write_text("London 1 2\nOakland 3 4\n")
    words = WordTable(str(path), sentences=SENTENCES)
    description = words.describe()
    distinct = {word for sentence in SENTENCES for word in sentence.words}
    assert (description["words"], description["words_without_vector"]) == (len(distinct), len(distinct) - 2)
    x, _ = ProbeInputs(InputSources(words=words, states=None))([Sentence(("Oakland", "came", "London"), "x", 1)])
    assert x.tolist() == [[[3, 4], [0, 0], [1, 2]]]


def test_vectors_that_are_not_finite_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Source(RandomVectors):
        def lookup(self, words: Sequence[str]) -> np.ndarray:
            vectors = super().lookup(words)
            vectors[list(words).index("London"), 1] = np.nan
            return vectors

    monkeypatch.setattr("downstream.inputs.word_table.open_word_vectors", lambda *_, **__: Source(seed=1, size=4))
    with pytest.raises(InputError, match=r"few\.vec: the vector of 'London' has numbers that are not finite"):
        WordTable("few.vec", sentences=SENTENCES)


def test_several_sources_stand_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "few.vec").write_text("London 1 2\nOakland 3 4\nParis 8 -4\n")
    (tmp_path / "others.txt").write_text("came 100 200 300\nOakland 400 700 600\nParis 500 100 -300\n")
    train = [Sentence(("Oakland", "came", "London"), "x", 1), Sentence(("Paris", "none"), "x", 2)]
    paths = [str(tmp_path / "few.vec"), str(tmp_path / "others.txt")]
    words = WordTable(*paths, sentences=train)
    inputs = ProbeInputs(InputSources(words=words, states=None))
    assert inputs(train)[0][0].tolist() == [[3, 4, 400, 700, 600], [0, 0, 100, 200, 300], [1, 2, 0, 0, 0]]
    description = words.describe()
    alone = [WordTable(path, sentences=train) for path in paths]
    assert (description["size"], description["words_without_vector"]) == (5, 1)
    for name in ("origin", "fingerprint"):
        assert description[name] == " + ".join(each.describe()[name] for each in alone)
    inputs.standardise_words(train)
    expected = []
    for each in alone:
        of_one = ProbeInputs(InputSources(words=each, states=None))
        of_one.standardise_words(train)
        expected.append(of_one(train)[0])
    torch.testing.assert_close(inputs(train)[0], torch.cat(expected, dim=2))
    again = ProbeInputs(InputSources(words=words, states=None))
    again.load_state_dict(inputs.state_dict())
    assert torch.equal(again(train)[0], inputs(train)[0])
