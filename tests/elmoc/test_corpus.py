"""Corpus directory: read back as it was written, and a damaged one refused in words."""

import io
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmoc.corpus import ID_DTYPE, Corpus, Shard, finish_corpus, lexicon_fingerprint
from elmoc.errors import InputError
from elmoc.files.arrays import save_array
from tests.tiny import forget_checksums

LEXICON = ["</s>", "<s>", "the", "déjà", "日本", "only-held-out"]
TRAIN = [[1, 2, 3, 0, 1, 4, 0], [1, 2, 0]]
HELD_OUT = [[1, 5, 2, 0]]


def write_corpus(path: Path) -> Corpus:
    shards: dict[str, list[Shard]] = {"train": [], "held-out": []}
    for split, contents in (("train", TRAIN), ("held-out", HELD_OUT)):
        for number, ids in enumerate(contents):
            file = f"shards/{split}-{number:05}.bin"
            (path / "shards").mkdir(parents=True, exist_ok=True)
            np.array(ids, dtype=ID_DTYPE).tofile(path / file)
            save_array((path / file).with_suffix(".documents.npy"), np.array([0]))
            shards[split].append(Shard(file, len(ids), ids.count(1), 1))
    finish_corpus(
        path,
        lexicon=LEXICON,
        counts=np.array([3, 3, 2, 1, 1, 0]),
        train=shards["train"],
        held_out=shards["held-out"],
        sources=["a.txt"],
        settings={"min_count": 1},
    )
    return Corpus(path)


def test_written_and_read(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    assert corpus.lexicon == LEXICON
    assert corpus.ids["日本"] == 4
    assert corpus.counts.tolist() == [3, 3, 2, 1, 1, 0]
    assert (corpus.begin_id, corpus.end_id, corpus.types, corpus.train_tokens) == (1, 0, 6, 10)
    assert [corpus.read_shard(shard).tolist() for shard in corpus.train] == TRAIN
    assert [corpus.read_shard(shard).tolist() for shard in corpus.held_out] == HELD_OUT
    assert corpus.read_documents(corpus.train[0]).tolist() == [0]
    assert (corpus.record.train_sentences, corpus.record.held_out_tokens) == (3, 4)
    assert corpus.record.unknown_id is None


def test_sentences_are_written_as_text(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    file = io.StringIO()
    written = list(corpus.written_sentences([(corpus.train[0], 7), (corpus.train[1], 3)], file))
    assert file.getvalue() == "the déjà\n日本\n\nthe\n"
    words = [["the", "déjà"], ["日本"], ["the"]]
    assert written == list(zip([corpus.train[0], *corpus.train], words, strict=True))
    assert len(list(corpus.written_sentences([(corpus.train[0], 4)], io.StringIO()))) == 1, "that begin before"


def test_an_unfinished_directory_is_no_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "corpus.json").unlink()
    with pytest.raises(InputError, match="not a finished corpus"):
        Corpus(tmp_path)


def edit(corpus: Corpus, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change `corpus.json`; returns the directory."""
    info = json.loads((corpus.path / "corpus.json").read_text(encoding="utf-8"))
    change(info)
    (corpus.path / "corpus.json").write_text(json.dumps(info), encoding="utf-8")
    return corpus.path


def without_checksums(corpus: Corpus) -> Corpus:
    """The corpus as one from before there were checksums."""
    forget_checksums(corpus.path / "corpus.json")
    return Corpus(corpus.path)


@pytest.mark.parametrize("file", ["shards/train-00000.bin", "shards/held-out-00000.bin"])
@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("damage", ["missing", "no ordinary file", "truncated or changed"])
def test_shards_that_are_not_there_as_a_whole(tmp_path: Path, file: str, checksums: bool, damage: str) -> None:
    corpus = write_corpus(tmp_path) if checksums else without_checksums(write_corpus(tmp_path))
    content = (tmp_path / file).read_bytes()
    (tmp_path / file).unlink()
    if damage == "no ordinary file":
        os.mkfifo(tmp_path / file)
    elif damage != "missing":
        (tmp_path / file).write_bytes(content[:-4])
    with pytest.raises(InputError, match=rf"{file} is {damage}.*: build the corpus again"):
        Corpus(corpus.path)


@pytest.mark.parametrize(
    "file", ["lexicon.txt", "counts.npy", "shards/train-00001.bin", "shards/held-out-00000.documents.npy"]
)
def test_a_flipped_bit_is_found_when_the_corpus_is_opened(tmp_path: Path, file: str) -> None:
    write_corpus(tmp_path)
    content = bytearray((tmp_path / file).read_bytes())
    content[-4] ^= 1
    (tmp_path / file).write_bytes(content)
    with pytest.raises(InputError, match=rf"{file} is damaged .*: build the corpus again"):
        Corpus(tmp_path)


@pytest.mark.parametrize("content", ["the\n", "</s>\n<s>\nthe\ndéjà\n日本\nanother\n", ""])
def test_another_lexicon(tmp_path: Path, content: str) -> None:
    corpus = write_corpus(tmp_path)
    (tmp_path / "lexicon.txt").write_text(content)
    with pytest.raises(InputError, match="is not the lexicon of this corpus"):
        _ = corpus.lexicon


def test_a_lexicon_with_a_word_on_two_lines(tmp_path: Path) -> None:
    words = [*LEXICON[:-1], "the"]

    def change(info: dict[str, Any]) -> None:
        info.pop("checksums")
        info["lexicon_fingerprint"] = lexicon_fingerprint(words)

    (edit(write_corpus(tmp_path), change) / "lexicon.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"lexicon\.txt has a word on two lines: build the corpus again"):
        _ = Corpus(tmp_path).ids


def test_damaged_arrays(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    for file, read in (
        ("counts.npy", lambda: corpus.counts),
        ("shards/train-00000.documents.npy", lambda: corpus.read_documents(corpus.train[0])),
    ):
        (tmp_path / file).write_bytes((tmp_path / file).read_bytes()[:-3])
        with pytest.raises(InputError, match="truncated"):
            read()
        (tmp_path / file).unlink()
        with pytest.raises(InputError, match="does not exist"):
            read()
    save_array(tmp_path / "counts.npy", np.zeros(3, dtype=np.int64))
    with pytest.raises(
        InputError, match=r"counts\.npy holds 3 numbers of type int64, where 6 of type int64 are expected"
    ):
        _ = corpus.counts


@pytest.mark.parametrize("counts", [[3, 3, 2, 1, 0, 0], [3, 3, 2, 1, 2, -1]])
def test_counts_that_are_not_those_of_the_training_tokens(tmp_path: Path, counts: list[int]) -> None:
    corpus = write_corpus(tmp_path)
    save_array(tmp_path / "counts.npy", np.array(counts))
    with pytest.raises(InputError, match=r"counts\.npy does not count the 10 training tokens: build the corpus again"):
        _ = corpus.counts


@pytest.mark.parametrize("documents", [[1, 4], [0, 0], [0, 7], [0, -1], [3, 0]])
def test_documents_that_do_not_fit_their_shard(tmp_path: Path, documents: list[int]) -> None:
    corpus = write_corpus(tmp_path)
    save_array(tmp_path / "shards" / "train-00000.documents.npy", np.array(documents))
    shard = replace(corpus.train[0], documents=2)
    with pytest.raises(InputError, match=r"documents\.npy must rise from 0 to below 7, .*: build the corpus again"):
        corpus.read_documents(shard)


def test_ids_that_no_row_of_a_table_has(tmp_path: Path) -> None:
    corpus = without_checksums(write_corpus(tmp_path))
    np.array([1, 2, 6, 0, 1, 4, 0], dtype=ID_DTYPE).tofile(tmp_path / "shards" / "train-00000.bin")
    with pytest.raises(
        InputError, match=r"train-00000\.bin has the id 6, but the corpus has 6 types: build the corpus"
    ):
        corpus.read_shard(corpus.train[0])
    (tmp_path / "shards" / "train-00000.bin").write_bytes(b"")  # while the corpus is open
    with pytest.raises(InputError, match=r"train-00000\.bin is truncated or changed .*: build the corpus again"):
        corpus.read_shard(corpus.train[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda info: info.update(version=99), "has version 99 of the format elmoc-corpus, this elmoc reads version 1"),
        (lambda info: info.update(format="something"), "is not of the format elmoc-corpus"),
        (lambda info: info.update(version=None), "has version None"),
        (lambda info: info.pop("types"), "the field types is missing"),
        (lambda info: info.update(types=6.0), r"types must be of type int, not 6\.0"),
        (lambda info: info.update(types=-1), "begin_id, end_id and unknown_id must be at least 0 and below types"),
        (lambda info: info.update(begin_id=6), "begin_id, end_id and unknown_id must be at least 0 and below types"),
        (lambda info: info.update(end_id=-1), "begin_id, end_id and unknown_id must be at least 0 and below types"),
        (lambda info: info.update(unknown_id=10**30), "begin_id, end_id and unknown_id must be at least 0 and below"),
        (lambda info: info.update(train=[]), "train: expected `array` of length >= 1"),
        (lambda info: info.update(train={}), "train must be of type array, not {}"),
        (lambda info: info["train"][1].update(file="../elsewhere.bin"), r"train\[1\]\.file: expected `str` matching"),
        (lambda info: info["train"][1].update(file="/etc/passwd"), r"train\[1\]\.file: expected `str` matching"),
        (lambda info: info["train"][1].update(file="shards/../a.bin"), r"train\[1\]\.file: expected `str` matching"),
        (lambda info: info["train"][1].pop("sentences"), r"the field train\[1\]\.sentences is missing"),
        (lambda info: info["held_out"][0].update(tokens=5), "held_out_tokens is 4, but its shards have 5 together"),
        (lambda info: info.update(train_documents=3), "train_documents is 3, but its shards have 2 together"),
        (lambda info: info["train"][0].update(words=5), r"unknown key train\[0\]\.words"),
        (lambda info: info["checksums"]["lexicon.txt"].pop("whole"), "the field .*whole is missing"),
    ],
)
def test_a_description_that_does_not_fit(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    edit(write_corpus(tmp_path), change)
    with pytest.raises(InputError, match=rf"corpus\.json.*{message}.*: .*build the corpus again"):
        Corpus(tmp_path)
