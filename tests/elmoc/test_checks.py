"""Checks: sound directories pass, and damage anywhere in a file is found and named."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from elmoc.__main__ import main
from elmoc.corpus import Corpus
from elmoc.word_vectors.sources import RandomVectors
from tests.tiny import add_table, learnable_sentences, write_corpus

Fails = Callable[[int], str]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    """A corpus whose shards and table are longer than the blocks at their ends."""
    train = [learnable_sentences(6000, seed) for seed in range(2)]
    corpus = write_corpus(tmp_path / "corpus", train, [learnable_sentences(6000, 2)])
    add_table(corpus, "raw", RandomVectors(seed=5, size=2000))
    return corpus


def flip_a_bit_in_the_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 8 * 4 + 1] ^= 1  # a token becomes one that is 256 away, or a number another
    path.write_bytes(content)


def test_a_sound_corpus(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(corpus.path)]) == 0
    assert capsys.readouterr().out == f"{corpus.path}: sound\n"


def test_all_that_is_damaged_or_missing_is_listed(
    corpus: Corpus, capsys: pytest.CaptureFixture[str], session_model: Path
) -> None:
    damaged = ("shards/train-0.bin", "shards/held_out-0.bin", "vectors/raw.npy")
    for file in damaged:
        flip_a_bit_in_the_middle(corpus.path / file)
    Corpus(corpus.path)  # no reader sees it
    missing = corpus.path / "nothing"
    assert main(["check", str(corpus.path), str(missing), str(session_model)]) == 1
    printed = capsys.readouterr()
    assert f"{corpus.path}: 3 damaged\n" in printed.out
    for file in damaged:
        assert f"    {corpus.path / file} is damaged" in printed.out
    assert f"{missing}: 1 damaged\n    {missing} " in printed.out
    assert f"{session_model}: sound\n" in printed.out, "what comes after it is checked all the same"
    assert "train-0.bin" in printed.err


def test_a_model_and_a_run(model_path: Path, error_line: Fails, capsys: pytest.CaptureFixture[str]) -> None:
    run = model_path.parent / "run"
    (run / "checkpoints").mkdir(parents=True)
    shutil.copytree(model_path, run / "model")
    checkpoint = run / "checkpoints" / "000000007.pt"
    with zipfile.ZipFile(checkpoint, "w") as archive:
        archive.writestr("data", bytes(1000))
    assert main(["check", str(model_path), str(run)]) == 0
    assert capsys.readouterr().out == f"{model_path}: sound\n{run}: sound\n"
    flip_a_bit_in_the_middle(checkpoint)
    assert "000000007.pt" in error_line(main(["check", str(run)]))
    checkpoint.write_bytes(checkpoint.read_bytes()[:-40])
    assert "000000007.pt" in error_line(main(["check", str(run)]))
    flip_a_bit_in_the_middle(run / "model" / "model.safetensors")
    line = error_line(main(["check", str(run)]))
    assert "model.safetensors" in line
    assert "and 1 more" in line
    (run / "model" / "heads.safetensors").write_bytes(b"")
    assert "heads.safetensors" in error_line(main(["check", str(run)]))
