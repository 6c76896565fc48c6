"""Local shards: a piece's folder is used again only when it is as it was written."""

import time
from pathlib import Path

import numpy as np
import pytest

from data_scripts.parts import local_shards
from data_scripts.parts.local_shards import LocalShard, local_counts, local_lexicon, piece_key, write_piece
from data_scripts.parts.merge_lexicons import LocalShardSource, merge_lexicons
from data_scripts.parts.text_pieces import Piece, Segment
from elmoc.corpus import Shard
from elmoc.errors import InputError

SHARD_TOKENS = 200


@pytest.fixture
def task(tmp_path: Path) -> tuple[Piece, Path]:
    """A piece of text, and the folder that `build_corpus` gives it."""
    (tmp_path / "text").write_text("".join(f"w{number % 50} b c d\n" for number in range(300)))
    piece = Piece((Segment(str(tmp_path / "text")),), False, 3000, SHARD_TOKENS)
    return piece, tmp_path / ".work" / piece_key(piece)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "list", "number", "folder"])
@pytest.mark.parametrize("name", ["piece.json", "lexicon.txt", "00000.ids", "00001.counts.npy", "00002.documents.npy"])
def test_a_damaged_piece_is_made_again(task: tuple[Piece, Path], name: str, damage: str) -> None:
    shards = write_piece(task)
    folder, file = task[1], task[1] / name
    whole = content(folder)
    data = file.read_bytes()
    file.unlink()
    if damage == "folder":
        file.mkdir()
    elif damage != "remove":
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        file.write_bytes({"flip": flipped, "truncate": data[:-2], "list": b"[]", "number": b"1" * 10_000}[damage])
    assert write_piece(task) == shards
    assert content(folder) == whole
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_whole_piece_is_not_made_again(task: tuple[Piece, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    shards = write_piece(task)
    monkeypatch.setattr(local_shards, "_write_shards", None)
    assert write_piece(task) == shards


def test_text_that_changes_while_it_is_read_is_refused(
    task: tuple[Piece, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = local_shards.read_blocks

    def changing(segment: Segment):
        yield from real(segment)
        Path(segment.path).write_text("something else\n")

    monkeypatch.setattr(local_shards, "read_blocks", changing)
    with pytest.raises(InputError, match=r"/text changed while it was read: run the command again"):
        write_piece(task)
    assert not list(task[1].parent.iterdir())


def test_the_time_grows_with_the_text(tmp_path: Path) -> None:
    """Documents of one word, and shards of ten tokens, all from one block."""

    def seconds(documents: int) -> float:
        ids = np.tile(np.array([0, 2, 1], dtype=np.uint32), documents)
        started = time.process_time()
        cut = sum(1 for _ in local_shards._cut_shards(iter([(ids, np.arange(0, 3 * documents, 3))]), 10))
        assert cut > documents / 5
        return time.process_time() - started

    seconds(1000)
    assert seconds(160_000) < 16 * seconds(20_000)


def test_the_shards_of_all_pieces_are_passed_once_when_merging(tmp_path: Path) -> None:
    passes = 0

    class Counted(list):
        def __iter__(self):
            nonlocal passes
            passes += 1
            return super().__iter__()

    sources = Counted()
    for number in range(5):
        (tmp_path / f"text{number}").write_text(f"a b{number}\n")
        piece = Piece((Segment(str(tmp_path / f"text{number}")),), False, 10, SHARD_TOKENS)
        folder = tmp_path / ".work" / piece_key(piece)
        (shard,) = write_piece((piece, folder))
        assert shard == LocalShard(tokens=4, sentences=1, documents=1)
        assert local_lexicon(folder) == ["<s>", "</s>", "a", f"b{number}"]
        sources.append(LocalShardSource(folder, 0, False, Shard(f"shards/{number}.bin", 4, 1, 1)))
    lexicon = merge_lexicons(sources, tmp_path / ".work", 1)
    assert lexicon.words == ["</s>", "<s>", "a", "b0", "b1", "b2", "b3", "b4"]
    assert passes == 1


def test_counts_take_the_room_of_the_types_of_a_shard(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("".join(f"w{number} x{number} y{number} a a a a\n" for number in range(4000)))
    piece = Piece((Segment(str(tmp_path / "text")),), False, 100, SHARD_TOKENS)
    folder = tmp_path / ".work" / piece_key(piece)
    shards = write_piece((piece, folder), None)
    assert len(shards) > 100
    sizes = {kind: sum(path.stat().st_size for path in folder.glob(f"*.{kind}")) for kind in ("counts.npy", "ids")}
    assert sizes["counts.npy"] < 2 * sizes["ids"]
    types, counts = local_counts(folder, 50)
    assert counts.sum() == shards[50].tokens
    assert counts[types.tolist().index(local_lexicon(folder).index("a"))] == 4 * shards[50].sentences
