"""`teacher_vectors`: every word and piece is read alone, as a plain program reads it; a stopped call goes on."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from data_scripts.join_vectors import main as join_vectors
from data_scripts.teacher_vectors import Teacher, TeacherOptions, main, make_teacher_vectors
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.pieces import Pieces
from tests.tiny_bert import tiny_bert


@pytest.fixture
def model(small_corpus: Corpus, tmp_path: Path) -> Path:
    """A random BERT that knows letters and a few of the words."""
    return tiny_bert(tmp_path / "tiny-bert", small_corpus.lexicon)


def plain_vectors(folder: Path, words: list[str], layers: list[int]) -> np.ndarray:
    """The same by transformers alone, one word at a time."""
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModel.from_pretrained(folder).eval()
    vectors = []
    for word in words:
        with torch.no_grad():
            states = network(**tokenizer(word, return_tensors="pt"), output_hidden_states=True).hidden_states
        chosen = torch.stack([states[layer][0, 1:-1] for layer in layers])
        vectors.append(chosen.mean(dim=(0, 1)).numpy())
    return np.stack(vectors)


def test_words_and_pieces_are_read_alone(small_corpus: Corpus, model: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ELMOC_INSTRUCTIONS", "baseline")  # in float32
    out = tmp_path / "teacher.safetensors"
    make_teacher_vectors(small_corpus.path, str(model), out, TeacherOptions(layers=[1, 3]))
    vectors = open_word_vectors(out)
    assert isinstance(vectors, CompactVectors)
    assert vectors.about == "tiny-bert (apache-2.0), layers 1, 3"
    words = [word for word in small_corpus.lexicon if word not in ("<s>", "</s>")][:60]
    found = vectors.lookup(words)
    np.testing.assert_allclose(found, plain_vectors(model, words, [1, 3]), rtol=2e-3, atol=2e-3)
    assert found.std(axis=0).min() > 0.05, "words do not differ"
    # Outside the corpus, a string is made of its pieces, each as it was read alone.
    piece = plain_vectors(model, [words[0][0]], [1, 3])
    assert isinstance(vectors.parts, Pieces)
    np.testing.assert_allclose(vectors.parts.vectors([words[0][0]]), piece, rtol=2e-3, atol=2e-3)
    assert sorted(vectors.counts.tolist()) == sorted(small_corpus.counts.astype(np.float32).tolist())


def test_a_stopped_call_goes_on(small_corpus: Corpus, model: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("data_scripts.teacher_vectors._PART_WORDS", 50)
    make_teacher_vectors(small_corpus.path, str(model), tmp_path / "whole.safetensors")
    read = Teacher.read
    calls = []

    def stops(teacher: Teacher, items: list[list[int]]):
        calls.append(len(items))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return read(teacher, items)

    out = tmp_path / "teacher.safetensors"
    monkeypatch.setattr(Teacher, "read", stops)
    with pytest.raises(KeyboardInterrupt):
        make_teacher_vectors(small_corpus.path, str(model), out)
    assert not out.exists()
    first = len(calls)
    make_teacher_vectors(small_corpus.path, str(model), out)
    parts = -(-len(open_word_vectors(out).hashes) // 50)  # type: ignore[attr-defined]
    assert len(calls) - first >= parts - 2, "parts that were done are read again"
    assert out.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert not list(tmp_path.glob(".*.parts"))


def test_the_command_reads_frequent_words_alone_and_refuses(
    small_corpus: Corpus, model: Path, tmp_path: Path, capsys
) -> None:
    make_teacher_vectors(small_corpus.path, str(model), tmp_path / "whole.safetensors")
    out = tmp_path / "frequent.safetensors"
    assert main([str(small_corpus.path), str(model), str(out), "--words", "30"]) == 0
    said = capsys.readouterr().out
    assert "at most" in said
    frequent = open_word_vectors(out)
    assert len(frequent.hashes) == 30
    words = small_corpus.lexicon[:30]
    whole = open_word_vectors(tmp_path / "whole.safetensors")
    np.testing.assert_allclose(frequent.lookup(words), whole.lookup(words), atol=2e-3)
    # Another word is composed of its pieces.
    assert frequent.lookup(small_corpus.lexicon[31:32]).any()
    assert main([str(small_corpus.path), str(model), str(tmp_path / "x.safetensors"), "--layers", "4"]) == 1
    assert "has layers 0 to 3" in capsys.readouterr().err
    assert main([str(small_corpus.path), str(tmp_path / "nowhere"), str(tmp_path / "x.safetensors")]) == 1
    assert "nowhere" in capsys.readouterr().err
    with pytest.raises(InputError, match="must be named"):
        make_teacher_vectors(small_corpus.path, str(model), tmp_path / "x.bin")


def test_sources_are_joined_so_that_words_differ_alike(small_corpus: Corpus, tmp_path: Path, capsys) -> None:
    known, other, unknown = small_corpus.lexicon[3:6]
    # Far from zero, and 10 apart.
    (tmp_path / "v.vec").write_text(f"{known} 103 4\n{other} 97 -4\n", encoding="utf-8")
    command = [str(small_corpus.path), str(tmp_path / "v.vec"), "random:1:50", str(tmp_path / "both.json")]
    assert join_vectors(command) == 0
    vectors = open_word_vectors(tmp_path / "both.json")
    assert vectors.size == 52
    rows = vectors.lookup([known, other, unknown])
    np.testing.assert_allclose(np.linalg.norm(rows[0, :2] - rows[1, :2]), 2, rtol=1e-6)
    assert not rows[2, :2].any()
    assert rows[2].any()
    spread = vectors.lookup(small_corpus.lexicon)[:, 2:].var(axis=0).sum() ** 0.5
    np.testing.assert_allclose(spread, 1, rtol=1e-5)
    (tmp_path / "v.vec").write_text(f"{known} 103 4\n", encoding="utf-8")
    assert join_vectors([*command[:-1], str(tmp_path / "other.json")]) == 1
    assert "tells no two words" in capsys.readouterr().err
