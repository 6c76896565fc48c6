"""Checks: sound directories pass, and damage anywhere in a file is found and named."""

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmoc.__main__ import main
from elmoc.corpus import ID_DTYPE, Corpus
from elmoc.files.arrays import save_array
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import RandomVectors
from tests.docs.inputs import write_python_inputs
from tests.elmoc.word_vectors.fasttext.files import fasttext_bytes
from tests.tiny import add_table, forget_checksums, learnable_sentences, tiny_model, write_corpus

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


def without_checksums(corpus: Corpus) -> None:
    for file in (corpus.path / "corpus.json", corpus.path / "vectors" / "raw.json"):
        forget_checksums(file)


def test_a_sound_corpus(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(corpus.path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == str(corpus.path)
    assert [line.split(":")[0].strip() for line in lines[1:-1]] == [
        "lexicon.txt",
        "shards",
        "counts.npy",
        "vectors/raw",
    ]
    assert all(line.endswith("B, sound") for line in lines[1:-1])
    assert "B/s)" in lines[-1]


@pytest.mark.parametrize("file", ["shards/train-1.bin", "shards/held_out-0.bin", "vectors/raw.npy"])
def test_a_flipped_bit_that_no_reader_sees(corpus: Corpus, error_line: Fails, file: str) -> None:
    flip_a_bit_in_the_middle(corpus.path / file)
    Corpus(corpus.path)
    error = error_line(main(["check", str(corpus.path)]))
    assert f"{file} is damaged (its content is not what was written): build the" in error
    assert error.endswith("again")


def test_all_that_is_damaged_is_listed(
    corpus: Corpus, error_line: Fails, capsys: pytest.CaptureFixture[str], model_path: Path
) -> None:
    for file in ("shards/train-0.bin", "shards/held_out-0.bin"):
        flip_a_bit_in_the_middle(corpus.path / file)
    status = main(["check", str(corpus.path), str(model_path)])
    printed = capsys.readouterr()
    assert "  shards: 577.4 KB, 2 of 3 damaged\n" in printed.out
    assert printed.out.count("is damaged (its content is not what was written)") == 2
    assert f"{model_path}\n  model: " in printed.out, "what comes after it is checked all the same"
    assert status == 1
    assert "error: 2 parts are damaged or missing, see above; the first: " in printed.err
    assert "train-0.bin is damaged" in printed.err


def test_each_that_is_missing_is_named(tmp_path: Path, model_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.h5", tmp_path / "other"
    assert main(["check", str(one), str(model_path), str(other)]) == 1
    printed = capsys.readouterr()
    for path in (one, other):
        assert f"{path}\n    {path} does not exist: check the name\n" in printed.out
    assert printed.out.count(", sound\n") == 1
    assert "error: 2 parts are damaged or missing, see above; the first: " in printed.err


def test_without_checksums_the_content_is_compared(
    corpus: Corpus, error_line: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    without_checksums(corpus)
    assert main(["check", str(corpus.path)]) == 0
    assert "  shards: 577.4 KB, sound as far as can be seen without checksums\n" in capsys.readouterr().out
    path = corpus.path / "shards" / "train-0.bin"
    ids = np.fromfile(path, dtype=ID_DTYPE)
    words = np.flatnonzero((ids != corpus.begin_id) & (ids != corpus.end_id))
    ids[words[500]] = (ids[words[500]] + 1) % corpus.types
    ids.tofile(path)
    assert "counts.npy has other counts than the training shards" in error_line(main(["check", str(corpus.path)]))


@pytest.mark.parametrize(
    ("file", "array", "message"),
    [
        ("shards/train-0.bin", np.array([2] * 9 + [99], dtype=ID_DTYPE), "has the id 99, but the corpus has 22 types"),
        ("shards/train-0.bin", np.array([5] * 10, dtype=ID_DTYPE), "does not hold 6,000 sentences from <s> to </s>"),
        ("shards/train-0.documents.npy", np.array([1]), "must rise from 0 to below"),
        ("counts.npy", np.array([-1] * 22), "does not count the"),
        ("vectors/raw.npy", np.zeros((22, 2000), dtype=np.float32), "has 22 rows of zeros, where 0 are expected"),
        ("vectors/raw.npy", np.full((22, 2000), np.nan, dtype=np.float32), "holds numbers that are not finite"),
    ],
)
def test_content_that_does_not_fit_is_named(
    corpus: Corpus, error_line: Fails, file: str, array: np.ndarray, message: str
) -> None:
    without_checksums(corpus)
    if file.endswith(".bin"):
        np.resize(array, corpus.train[0].tokens).tofile(corpus.path / file)
    else:
        save_array(corpus.path / file, array)
    error = error_line(main(["check", str(corpus.path)]))
    assert f"{file} {message}" in error
    assert error.endswith("again")


def test_documents_that_start_inside_a_sentence_are_named(corpus: Corpus, error_line: Fails) -> None:
    path = corpus.path / "corpus.json"
    record = json.loads(path.read_text())
    del record["checksums"]
    record["train"][0]["documents"], record["train_documents"] = 2, 3
    path.write_text(json.dumps(record))
    save_array(corpus.path / "shards" / "train-0.documents.npy", np.array([0, 1]))
    error = error_line(main(["check", str(corpus.path)]))
    assert "train-0.documents.npy has documents that do not start with <s>: build the corpus again" in error


def test_a_model_and_a_run(model_path: Path, error_line: Fails, capsys: pytest.CaptureFixture[str]) -> None:
    run = model_path.parent / "run"
    (run / "checkpoints").mkdir(parents=True)
    assert "has neither a model nor a checkpoint yet" in error_line(main(["check", str(run)]))
    shutil.copytree(model_path, run / "model")
    checkpoint = run / "checkpoints" / "000000007.pt"
    with zipfile.ZipFile(checkpoint, "w") as archive:
        archive.writestr("data", bytes(1000))
    assert main(["check", str(model_path), str(run)]) == 0
    assert [line.split(",")[-1] for line in capsys.readouterr().out.splitlines() if "B, " in line] == [" sound"] * 3
    shutil.copy(checkpoint, run / "checkpoints" / "000000009.pt")
    flip_a_bit_in_the_middle(checkpoint)
    said = "000000007.pt is truncated or damaged (the content of data has changed): "
    assert f"{said}remove it, the run goes on from a newer one" in error_line(main(["check", str(run)]))
    (run / "checkpoints" / "000000009.pt").rename(run / "checkpoints" / "000000005.pt")
    assert f"{said}remove it to go on from the one before" in error_line(main(["check", str(run)]))
    (run / "checkpoints" / "000000005.pt").unlink()
    assert f"{said}remove it to begin the run again" in error_line(main(["check", str(run)]))
    checkpoint.write_bytes(checkpoint.read_bytes()[:-40])
    assert "000000007.pt is truncated or damaged (" in error_line(main(["check", str(run)]))
    (run / "model" / "heads.safetensors").write_bytes(b"")
    assert "heads.safetensors is truncated or changed" in error_line(main(["check", str(run)]))
    forget_checksums(model_path / "config.json")
    assert main(["check", str(model_path)]) == 0
    assert "sound as far as can be seen without checksums" in capsys.readouterr().out


def bundled(folder: Path, vectors: Path) -> None:
    write_model_directory(folder, tiny_model(vectors=open_word_vectors(vectors)), vectors=vectors)


def recorded(folder: Path, vectors: Path) -> None:
    write_model_directory(folder, tiny_model(vectors=open_word_vectors(vectors)))


@pytest.mark.parametrize("write", [bundled, recorded])
def test_word_vectors_of_a_model(
    tmp_path: Path, error_line: Fails, capsys: pytest.CaptureFixture[str], write: Callable[[Path, Path], None]
) -> None:
    source, model = tmp_path / "v.bin", tmp_path / "model"
    source.write_bytes(fasttext_bytes())
    write(model, source)
    assert main(["check", str(model)]) == 0
    assert "  word vectors: 743 B, sound as far as can be seen without checksums\n" in capsys.readouterr().out
    read = model / "v.bin" if write is bundled else source
    moved = read.rename(tmp_path / "moved.bin")
    if write is bundled:
        assert main(["check", str(model)]) == 0, "they are still where they were in training"
        source.unlink()
    error = error_line(main(["check", str(model)]))
    assert f"the word vectors {source}, which {model} reads, are not there: say where they are now with --vec" in error
    assert main(["check", str(model), "--vectors", str(moved)]) == 0
    flip_a_bit_in_the_middle(moved)
    shutil.copy(moved, read)
    error = error_line(main(["check", str(model)]))
    assert f"the word vectors of {model} cannot be used: {read} (fingerprint " in error
    read.write_bytes(moved.read_bytes()[:-7])
    assert f"the word vectors of {model} cannot be used: {read} " in error_line(main(["check", str(model)]))
    for other in (str(moved), "random:1:5"):
        assert f"{other} (fingerprint" in error_line(main(["check", str(model), "--vectors", other]))


def test_a_feature_file(tmp_path: Path, error_line: Fails, capsys: pytest.CaptureFixture[str]) -> None:
    write_python_inputs(tmp_path)
    assert main(["check", str(tmp_path / "features.h5")]) == 0
    assert "sound as far as can be seen without checksums" in capsys.readouterr().out
    with h5py.File(tmp_path / "features.h5", "r+") as file:
        file["1"][0, 2, 3] = np.nan
    error = error_line(main(["check", str(tmp_path / "features.h5")]))
    assert "features.h5: sentence 1 has numbers that are not finite" in error


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "does not exist"),
        ("folder", "is neither a corpus, nor a run, nor a model: name one of these, or a feature file"),
        ("file", "is not a whole HDF5 file"),
    ],
)
def test_what_cannot_be_checked(tmp_path: Path, error_line: Fails, name: str, message: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    assert f"{name} {message}" in error_line(main(["check", str(tmp_path / name)]))
