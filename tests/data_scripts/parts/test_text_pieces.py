"""Pieces of text: long lines."""

import io
from pathlib import Path

import pytest

from data_scripts.parts import text_pieces
from data_scripts.parts.text_pieces import Segment, cut_pieces, read_blocks
from elmoc.errors import InputError


def test_a_file_without_line_ends_is_passed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 8 << 20
    (tmp_path / "a").write_bytes(b"a " * (size // 2))
    read = 0

    class Counted(io.FileIO):
        def read(self, size: int = -1) -> bytes:
            nonlocal read
            data = super().read(size)
            read += len(data)
            return data

    monkeypatch.setattr(text_pieces, "open", Counted, raising=False)
    pieces = cut_pieces([tmp_path / "a"], 20_000, False)
    assert [(each.start, each.end) for piece in pieces for each in piece.segments] == [(0, size)]
    assert read < 2 * size


def test_a_long_line_after_a_cut_is_passed_once(tmp_path: Path) -> None:
    lines = [b"a" * length for length in (10, 5000, 3, 70_000, 1, 1, 40_000)]
    (tmp_path / "a").write_bytes(b"\n".join(lines))
    pieces = cut_pieces([tmp_path / "a"], 200, False)
    segments = [each for piece in pieces for each in piece.segments]
    assert b"".join(text.encode() for each in segments for _, text in read_blocks(each)) == b"\n".join(lines) + b"\n"
    assert [segment.start for segment in segments] == [0, 5012, 75_017]


@pytest.mark.parametrize("block_bytes", [7, 50])
def test_a_line_is_as_long_as_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int) -> None:
    monkeypatch.setattr(text_pieces, "MAX_LINE_BYTES", 50)
    (tmp_path / "a").write_text(f"{'a' * 50}\n\n{'b' * 50}\nc\n{'d' * 50}")
    (tmp_path / "b").write_text(f"{'a' * 50}\n\n{'b' * 51}\nc\n")
    texts = [text for _, text in read_blocks(Segment(str(tmp_path / "a")), block_bytes)]
    assert "".join(texts) == (tmp_path / "a").read_text() + "\n"
    with pytest.raises(InputError, match="b, line 3 is longer than 64 MiB: break it into several lines"):
        list(read_blocks(Segment(str(tmp_path / "b")), block_bytes))
