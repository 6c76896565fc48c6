"""Tables of word vectors: words without a vector are counted."""

from pathlib import Path

from downstream.inputs.probe_inputs import InputSources, ProbeInputs
from downstream.inputs.sentence import Sentence
from downstream.inputs.word_table import WordTable
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
