"""Corpus directory: read back as it was written, and a damaged one refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elmoc.corpus import ID_DTYPE, Corpus
from elmoc.errors import InputError
from elmoc.files.arrays import save_array
from elmoc.files.records import read_json, write_json
from tests import tiny

LEXICON = ["</s>", "<s>", "the", "déjà", "日本", "only-held-out"]


def write_corpus(path: Path) -> Corpus:
    """Two training shards and one held-out shard of few words."""
    train = [[["the", "déjà"], ["日本"]], [["the"]]]
    return tiny.write_corpus(path, train, [[["only-held-out", "the"]]])


def test_written_and_read(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    assert corpus.lexicon == LEXICON
    assert corpus.ids["日本"] == 4
    assert corpus.counts.tolist() == [3, 3, 2, 1, 1, 0]
    assert (corpus.begin_id, corpus.record.end_id, corpus.types, corpus.train_tokens) == (1, 0, 6, 10)
    assert [corpus.read_shard(shard).tolist() for shard in corpus.train] == [[1, 2, 3, 0, 1, 4, 0], [1, 2, 0]]
    assert [corpus.read_shard(shard).tolist() for shard in corpus.held_out] == [[1, 5, 2, 0]]
    assert corpus.read_documents(corpus.train[0]).tolist() == [0]
    assert (corpus.record.train_sentences, corpus.record.held_out_tokens) == (3, 4)
    assert corpus.record.unknown_id is None
    many = read_json(tmp_path / "corpus.json", 1 << 20) | {"settings": {"files": "x" * (9 << 20)}}
    write_json(tmp_path / "corpus.json", many)
    assert Corpus(tmp_path).types == 6


FILES = ["lexicon.txt", "counts.npy", "shards/train-1.bin", "shards/held_out-0.documents.npy"]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_damage_is_found_when_the_corpus_is_opened(tmp_path: Path, file: str, damage: str) -> None:
    write_corpus(tmp_path)
    content = bytearray((tmp_path / file).read_bytes())
    (tmp_path / file).unlink()
    if damage != "missing":
        content[-4] ^= 1
        (tmp_path / file).write_bytes(content[:-4] if damage == "cut" else content)
    with pytest.raises((InputError, FileNotFoundError), match=file):
        Corpus(tmp_path)


def test_damage_after_the_corpus_was_opened(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path)
    shard = corpus.train[0]
    save_array(tmp_path / "counts.npy", np.zeros(3, dtype=np.int64))
    np.array([1, 2, 6, 0, 1, 4, 0], dtype=ID_DTYPE).tofile(tmp_path / shard.file)
    (tmp_path / shard.documents_file).unlink()
    for error, file, read in (
        (InputError, "counts.npy", lambda: corpus.counts),
        (FileNotFoundError, shard.documents_file, lambda: corpus.read_documents(shard)),
        (InputError, shard.file, lambda: corpus.read_shard(shard)),  # an id that no row of a table has
    ):
        with pytest.raises(error, match=file):
            read()


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (lambda info: info.update(version=99), "version 99"),
        (lambda info: info.update(format="something"), "elmoc-corpus"),
        (lambda info: info.update(types=-1), "types"),
        (lambda info: info["train"][1].pop("sentences"), "sentences"),
        (lambda info: info["train"][0].update(words=5), r"train\[0\]\.words"),
        (lambda info: info["train"][0].update(tokens=10**39), r"train\[0\]\.tokens"),
        (lambda info: info["checksums"]["lexicon.txt"].pop("whole"), "whole"),
    ],
)
def test_a_description_that_does_not_fit(tmp_path: Path, change: Callable[[dict[str, Any]], object], key: str) -> None:
    write_corpus(tmp_path)
    tiny.edit_json(tmp_path / "corpus.json", change)
    with pytest.raises(InputError, match=rf"corpus\.json.*{key}"):
        Corpus(tmp_path)
