"""Building a corpus of subwords: its shards against a plain program, its units, and what is refused."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from data_scripts.build_subwords import SubwordOptions, build_subwords, main
from elmoc.corpus import BEGIN, END, Corpus
from elmoc.word_vectors.subwords import Subwords
from tests.tiny import write_corpus

from data_scripts import train_fasttext, write_text

TEXT = [["the", "lowest", "lower", "newer"], ["Zürich", "low", "a<s>b"], ["wider", "newest", "the"]]


@pytest.fixture
def words(tmp_path: Path) -> Corpus:
    """A corpus of two sources and several documents."""
    shards = [TEXT * 5, TEXT[::-1] * 4, TEXT[:2] * 3]
    return write_corpus(tmp_path / "words", shards[:2], shards[2:], sources=["news", "talk", "news"], documents=2)


@pytest.mark.parametrize("workers", [1, 2])
def test_shards_are_those_of_a_plain_program(words: Corpus, tmp_path: Path, workers: int) -> None:
    build_subwords(SubwordOptions(words=words.path, corpus=tmp_path / "units", units=300, workers=workers))
    units = Corpus(tmp_path / "units")
    subwords = Subwords.of_corpus(units)
    counts: Counter[int] = Counter()
    for ours, theirs in zip([*units.train, *units.held_out], [*words.train, *words.held_out], strict=True):
        expected, documents = [], []
        starts = set(words.read_documents(theirs).tolist())
        for place, row in enumerate(words.read_shard(theirs).tolist()):
            if place in starts:
                documents.append(len(expected))
            word = words.lexicon[row]
            split = [word] if word in (BEGIN, END) else subwords.split([[word]])[0][0]
            expected += [units.ids[unit] for unit in split]
        assert units.read_shard(ours).tolist() == expected
        assert units.read_documents(ours).tolist() == documents
        assert (ours.source, ours.sentences) == (theirs.source, theirs.sentences)
        counts.update(expected if ours in units.train else [])
    assert units.counts.tolist() == [counts[row] for row in range(units.types)]
    assert (np.diff(units.counts) <= 0).all(), "the most frequent come first"
    assert units.types <= 300
    assert "Ġthe" in units.lexicon
    assert units.record.settings["words"] == str(words.path)
    assert words.record.settings.items() <= units.record.settings.items()


def test_units_are_learnt_as_often_as_words_occur(tmp_path: Path) -> None:
    text = [[["aab"] * 9, ["xyz"] * 2]]
    words = write_corpus(tmp_path / "words", text, text)
    build_subwords(SubwordOptions(words=words.path, corpus=tmp_path / "units", units=262, workers=1))
    merges = Subwords.of_corpus(Corpus(tmp_path / "units")).merges
    assert len(merges) == 262 - 256 - 2
    assert all("x" not in left + right for left, right in merges[:3])


def test_what_has_no_words_is_refused(words: Corpus, tmp_path: Path, error_line: Callable[[int], str]) -> None:
    assert main([str(words.path), str(tmp_path / "units"), "--units", "300"]) == 0
    for command, made in ((main, "again"), (train_fasttext.main, "vectors.bin"), (write_text.main, "text.txt")):
        assert "units" in error_line(command([str(tmp_path / "units"), str(tmp_path / made)]))
        assert not (tmp_path / made).exists()
    error_line(main([str(words.path), str(tmp_path / "units")]))
