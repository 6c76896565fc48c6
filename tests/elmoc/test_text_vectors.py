"""Vectors of raw texts: pooled states of their words, from Python and by `elmoc embed`."""

import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.model_directory import read_model_directory, write_model_directory

from elmoc import ElmoC

TEXTS = ["The cat can't sit. It ran!", "", "One [a b] word", " \n"]
WORDS = [[["The", "cat", "ca", "n't", "sit", "."], ["It", "ran", "!"]], [], [["One", "[", "a", "b", "]", "word"]], []]


def test_texts_are_pooled_over_the_words_of_their_sentences(elmo: ElmoC, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [[elmo.embed(words) for words in sentences] for sentences in WORDS]
    words = [torch.cat([torch.zeros(3, 0, 10), *parts], dim=1) for parts in plain]
    for text, own, expected in zip(TEXTS, elmo.embed_texts(TEXTS, pooling=None), words, strict=True):
        torch.testing.assert_close(own.states, expected, atol=1e-6, rtol=0)
        found = [text[start:end] for start, end in own.offsets]
        assert found == own.words == [word for sentence in WORDS[TEXTS.index(text)] for word in sentence]
    for most in (300_000, 1):
        # A group of texts at a time, and each text alone.
        monkeypatch.setattr("elmoc.text_vectors._CHARACTERS", most)
        for pooling, pool in (("mean", torch.mean), ("max", torch.amax)):
            vectors = elmo.embed_texts(iter(TEXTS), pooling=pooling)  # type: ignore[call-overload]
            expected = [pool(each.mean(0), 0) if each.shape[1] else torch.zeros(10) for each in words]
            assert vectors.dtype == np.float32
            np.testing.assert_allclose(vectors, torch.stack(expected), atol=1e-6)
    assert elmo.embed_texts([]).shape == (0, 10)


def test_a_model_keeps_the_words_that_its_text_kept(elmo: ElmoC, tmp_path: Path) -> None:
    directory = replace(elmo.directory, training=elmo.directory.training | {"keep": [r"\[.*?\]"]})
    write_model_directory(tmp_path / "kept", directory)
    [text] = ElmoC.from_pretrained(tmp_path / "kept").embed_texts(TEXTS[2:3], pooling=None)
    assert text.words == ["One", "[a_b]", "word"]
    assert text.offsets == [(0, 3), (4, 9), (10, 14)]
    assert read_model_directory(tmp_path / "kept").training["keep"] == [r"\[.*?\]"]


@pytest.mark.parametrize(
    ("texts", "pooling", "said"),
    [
        ("a text", "mean", "texts are a list of strings, or one column of a table, not a str: give \\[text\\]"),
        ({"a": "text"}, "mean", "texts are a list of strings, or one column of a table, not a dict"),
        (np.array([["a"]]), "mean", "texts are a list of strings, or one column of a table, not a ndarray"),
        (["a", ["b"]], "mean", "text 2 is \\['b'\\] \\(list\\), not a string"),
        (["a", "这是一个没有空格的句子" * 3], None, "text 2 holds text of a script without spaces"),
        (["a"], "sum", "pooling is mean, max or None, not 'sum'"),
        (["a", "b " * 40_001], "mean", "text 2 has a sentence of 40,001 words, more than 40,000"),
    ],
)
def test_errors(elmo: ElmoC, texts: object, pooling: str, said: str) -> None:
    with pytest.raises(InputError, match=f"^{said}"):
        elmo.embed_texts(texts, pooling=pooling)  # type: ignore[call-overload]


def test_the_command_writes_a_vector_a_row(elmo: ElmoC, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["The cat can't sit.\n\nIt ran!", "One."]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"id": 1, "text": row}) + "\n" for row in rows))
    expected = elmo.embed_texts(rows)
    model = str(elmo.directory.path)
    for kind in ("npy", "parquet", "jsonl"):
        out = tmp_path / f"vectors.{kind}"
        command = ["embed", model, str(tmp_path / "rows.jsonl"), "--out", str(out), "--precision", "float32"]
        assert main(command) == 0
        if kind == "npy":
            found = np.load(out)
        elif kind == "parquet":
            table = pq.read_table(out)
            assert table["text"].to_pylist() == rows
            assert table["line"].to_pylist() == [1, 2]
            found = np.array(table["vector"].to_pylist())
        else:
            lines = list(map(json.loads, out.read_text().splitlines()))
            assert [line["text"] for line in lines] == rows
            assert [line["line"] for line in lines] == [1, 2]
            found = np.array([line["vector"] for line in lines])
        np.testing.assert_allclose(found, expected, atol=1e-6)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"The cat can't sit.\nIt ran!\n\n\nOne.\n")))
    assert main(["embed", model, "-", "--out", str(tmp_path / "two.npy"), "--precision", "float32"]) == 0
    np.testing.assert_allclose(np.load(tmp_path / "two.npy"), expected, atol=1e-6)


def test_the_command_says_where_an_array_would_have_gaps(
    model_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.npy"
    source.write_text('{"text": "One."}\n{"text": ""}\n{"text": "Two."}\n')
    assert main(["embed", str(model_path), str(source), "--out", str(out)]) == 1
    assert "1 rows have no text, and an array does not tell which" in capsys.readouterr().err
    assert not out.exists()
    assert main(["embed", str(model_path), str(source), "--out", str(out.with_suffix(".jsonl"))]) == 0
    found = list(map(json.loads, out.with_suffix(".jsonl").open()))
    assert [(row["line"], row["text"]) for row in found] == [(1, "One."), (3, "Two.")]
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text('{"doc_key": "x", "sentences": [["One", "."]]}\n')
    assert main(["embed", str(model_path), str(tmp_path / "[ab].jsonl"), "--out", str(out)]) == 0
    assert len(np.load(out)) == 2, "a key of another file is of another text"
    out.unlink()
    (tmp_path / "rows.json").write_text('[{"text": "One."}]')
    assert main(["embed", str(model_path), str(tmp_path / "rows.json"), "--out", str(out)]) == 1
    (tmp_path / "empty.txt").write_text("\n \n")
    assert main(["embed", str(model_path), str(tmp_path / "empty.txt"), "--out", str(out)]) == 1
    assert main(["embed", str(model_path), str(source), "--out", "out.txt"]) == 1
    assert capsys.readouterr().err.endswith("out.txt: --out ends in .npy, .parquet, .jsonl\n")
