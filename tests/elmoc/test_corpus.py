"""Corpus directory: read back as it was written, and a damaged one refused in words."""

from pathlib import Path

import numpy as np
import pytest

from elmoc.corpus import ID_DTYPE, Corpus, Shard, finish_corpus
from elmoc.errors import InputError
from elmoc.files.arrays import save_array
from elmoc.files.records import read_json, write_json

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
    assert (corpus.info["train_sentences"], corpus.info["held_out_tokens"]) == (3, 4)
    assert corpus.info["unknown_id"] is None


def test_an_unfinished_directory_is_no_corpus(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "corpus.json").unlink()
    with pytest.raises(InputError, match="not a finished corpus"):
        Corpus(tmp_path)


@pytest.mark.parametrize("file", ["shards/train-00000.bin", "shards/held-out-00000.bin"])
@pytest.mark.parametrize("missing", [True, False])
def test_truncated_and_missing_shards(tmp_path: Path, file: str, missing: bool) -> None:
    write_corpus(tmp_path)
    if missing:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_bytes((tmp_path / file).read_bytes()[:-4])
    with pytest.raises(InputError, match="missing" if missing else "truncated"):
        Corpus(tmp_path)


@pytest.mark.parametrize("content", ["the\n", "</s>\n<s>\nthe\ndéjà\n日本\nanother\n", ""])
def test_another_lexicon(tmp_path: Path, content: str) -> None:
    corpus = write_corpus(tmp_path)
    (tmp_path / "lexicon.txt").write_text(content)
    with pytest.raises(InputError, match="is not the lexicon of this corpus"):
        _ = corpus.lexicon


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
    with pytest.raises(InputError, match="does not fit the lexicon"):
        _ = corpus.counts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 99"),
        ({"format": "something"}, "not of the format"),
        ({"version": None}, "version None"),
    ],
)
def test_other_versions_and_formats(tmp_path: Path, change: dict, message: str) -> None:
    write_corpus(tmp_path)
    write_json(tmp_path / "corpus.json", read_json(tmp_path / "corpus.json") | change)
    with pytest.raises(InputError, match=message):
        Corpus(tmp_path)
