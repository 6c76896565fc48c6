"""Checks: sound directories pass, damage anywhere in a file is found and named, and what has no checksum is said."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from elmoc.__main__ import main
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.writing import atomic_path
from elmoc.model import ElmoC
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.fasttext import FastTextVectors
from elmoc.word_vectors.joined import JoinedVectors
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.stored import LexiconVectors
from tests.conftest import Fails
from tests.elmoc.features.sentences import write_lines
from tests.elmoc.word_vectors.fasttext_files import fasttext_bytes
from tests.tiny import add_table, learnable_sentences, tiny_model, write_corpus


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
    # Behind a link to its folder, and where it is gone.
    link = corpus.path.parent / "_linked"
    link.mkdir()
    shutil.copy(corpus.path / "corpus.json", link)
    (link / "shards").symlink_to(corpus.path / "shards")
    (corpus.path / "shards" / "train-1.bin").unlink()
    assert main(["check", str(link.parent)]) == 1
    told = capsys.readouterr().out
    assert f"{link}/shards/train-0.bin is damaged" in told
    assert f"{link}/shards/train-1.bin" in told
    assert f"{session_model}: sound\n" in printed.out, "what comes after it is checked all the same"
    assert "held_out-0.bin" in printed.err


def test_a_model_and_a_run(model_path: Path, error_line: Fails, capsys: pytest.CaptureFixture[str]) -> None:
    run = model_path.parent / "run"
    (run / "checkpoints").mkdir(parents=True)
    shutil.copytree(model_path, run / "model")
    checkpoint = run / "checkpoints" / "000000007.pt"
    checkpoint.write_bytes(bytes(1000))
    assert main(["check", str(model_path), str(run)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{model_path}: sound\n{run}: 1 unchecked\n    {checkpoint} has no checksum")
    with atomic_path(checkpoint, checksum=True) as partial:
        partial.write_bytes(bytes(1000))
    flip_a_bit_in_the_middle(checkpoint)
    assert "000000007.pt" in error_line(main(["check", str(run)]))
    checkpoint.write_bytes(bytes(960))
    assert "000000007.pt" in error_line(main(["check", str(run)]))
    card = run / "model" / "README.md"
    card.write_text(card.read_text().replace("For you to say", "CC BY 4.0"))
    checkpoints = checkpoint.parent.rename(run / ".hidden")
    assert main(["check", str(run)]) == 0
    assert capsys.readouterr().out == f"{run}: sound\n", "its card is its user's to change"
    checkpoints.rename(checkpoint.parent)
    card.unlink()  # of a copy, as the output layers may be
    flip_a_bit_in_the_middle(run / "model" / "model.safetensors")
    assert "and 1 more" in error_line(main(["check", str(run)]))
    shutil.rmtree(checkpoint.parent)
    assert "model.safetensors" in error_line(main(["check", str(run)]))
    (run / "model" / "heads.safetensors").write_bytes(b"")
    assert "heads.safetensors" in error_line(main(["check", str(run)]))


def test_word_vectors_of_another_are_checked_whole_wherever_they_are(tmp_path: Path, error_line: Fails) -> None:
    vectors, moved, model = tmp_path / "words.bin", tmp_path / "moved.bin", tmp_path / "model"
    vectors.write_bytes(fasttext_bytes(bucket=100_000, dim=15))
    write_model_directory(model, tiny_model(vectors=FastTextVectors(vectors)))
    shutil.copy(vectors, moved)
    assert main(["check", str(model)]) == 0
    flip_a_bit_in_the_middle(moved)
    assert main(["check", str(model)]) == 0
    assert "moved.bin is damaged" in error_line(main(["check", str(model), "--vectors", str(moved)]))
    ElmoC.from_pretrained(model, vectors=str(moved))  # opening reads blocks of it
    shutil.copy(moved, model / "words.bin")
    assert "model/words.bin is damaged" in error_line(main(["check", str(model)]))


def test_each_file_of_joined_word_vectors_is_checked_and_none_is_left_behind(
    tmp_path: Path, error_line: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [tmp_path / "one.bin", tmp_path / "two.bin"]
    for part in parts:
        with atomic_path(part, checksum=part == parts[0]) as partial:
            partial.write_bytes(fasttext_bytes(bucket=100_000, dim=15))
    JoinedVectors(list(map(FastTextVectors, parts)), [1.0, 0.5]).write_record(tmp_path / "joined.json")
    write_model_directory(tmp_path / "model", tiny_model(vectors=open_word_vectors(tmp_path / "joined.json")))
    assert main(["check", str(tmp_path / "model")]) == 0
    assert capsys.readouterr().out.endswith(f": 1 unchecked\n    {parts[1]} has no checksum: it was not read\n")
    flip_a_bit_in_the_middle(parts[0])
    assert "one.bin is damaged" in error_line(main(["check", str(tmp_path / "model")]))
    with pytest.raises(InputError, match="joins several files of word vectors: `elmoc pack` makes one"):
        ElmoC.from_pretrained(tmp_path / "model").save_pretrained(tmp_path / "whole", bundle_vectors=True)


def test_stored_vectors_that_are_given(tmp_path: Path, error_line: Fails) -> None:
    stored = LexiconVectors(torch.rand(30_000, 6), [f"w{number}" for number in range(30_000)])
    write_model_directory(tmp_path / "model", replace(tiny_model(vectors=stored), stored_vectors=stored))
    given = shutil.copy(tmp_path / "model/lexicon.safetensors", tmp_path / "given.safetensors")
    command = ["check", str(tmp_path / "model"), "--vectors", str(given)]
    assert main(command) == 0
    flip_a_bit_in_the_middle(given)
    assert "given.safetensors" in error_line(main(command))


def test_files_alone(tmp_path: Path, error_line: Fails, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(tmp_path / "new.h5")
    shutil.copy(tmp_path / "new.h5", tmp_path / "copied.h5")
    assert main(["check", str(tmp_path / "new.h5"), str(tmp_path / "copied.h5")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{tmp_path}/new.h5: sound\n{tmp_path}/copied.h5: 1 unchecked\n")
    flip_a_bit_in_the_middle(tmp_path / "new.h5")
    assert "new.h5" in error_line(main(["check", str(tmp_path)]))
    (tmp_path / "new.h5").unlink()
    write_lines(tmp_path / "new.h5")  # in place of an older file that left its checksum
    assert main(["check", str(tmp_path)]) == 0
    for name in ("new.h5", "new.h5.xxh3"):
        (tmp_path / name).rename(tmp_path / name.replace("new", "other"))
    assert "renamed" in error_line(main(["check", str(tmp_path / "other.h5")]))
