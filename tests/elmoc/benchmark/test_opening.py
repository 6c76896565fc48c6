"""Benchmark of opening: its file is one that the library reads, and its rows are figures."""

import subprocess
import sys
from pathlib import Path

import fasttext
import numpy as np
import pytest

from elmoc import devices
from elmoc.benchmark import opening
from elmoc.word_vectors.fasttext.vectors import FastTextVectors


def test_the_synthetic_file_is_one_of_fasttext_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "DIM", 7)
    monkeypatch.setattr(opening, "_BLOCK_BYTES", 1 << 10)
    path = tmp_path / "v.bin"
    opening.write_fasttext_file(path, words=1000, buckets=500)
    known, unseen = ([word.decode() for word in opening.made_up_words(first, 20)] for first in (0, 10**6))
    model = fasttext.load_model(str(path))
    assert all(word in model for word in known)
    assert not any(word in model for word in unseen)
    assert len(set(model.get_words())) == 1000
    words = [*known, *unseen]
    assert np.array_equal(FastTextVectors(path).lookup(words), [model.get_word_vector(word) for word in words])


@pytest.mark.parametrize("free", [1 << 40, 0])
def test_rows_of_figures(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(opening, "QUICK", opening.Size(words=2000, sample=50))
    monkeypatch.setattr(devices, "free_memory", lambda device: free)
    rows = dict(opening.rows(quick=True))
    for opened in ("elmoc, first opening", "elmoc, later opening", *(["fastText, opening"] if free else [])):
        assert float(rows[opened].split(" s, ")[0]) >= 0
    for who in ("elmoc", *(["fastText"] if free else [])):
        for kind in ("known", "unseen"):
            assert float(rows[f"{who}, {kind} words"].split(" ")[0].replace(",", "")) > 0
    assert rows["elmoc, how"].startswith("C++ compiled by")
    if not free:
        assert rows["fastText"] == "not measured: it takes 7.2 MB of memory, 0 B are free"


def test_the_processes_that_are_measured_do_without_pytorch() -> None:
    code = "import sys; from elmoc.benchmark import opening; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
