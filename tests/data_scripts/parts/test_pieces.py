"""Pieces: they give back every line of the files."""

from pathlib import Path

from data_scripts.parts.pieces import cut_pieces
from elmoc.text.documents import TextRange, lines_of, read_documents


def test_pieces_give_back_every_line(tmp_path: Path) -> None:
    lines = ["é" * length for length in [0, 1, 50, 3000, 5, 70_000, 0, 0, 40_000] * 9]
    (tmp_path / "a").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    for name in "bcd":
        (tmp_path / name).write_text("\n".join(lines[:4]))
    pieces = cut_pieces([TextRange(tmp_path / name) for name in "abcd"], 4000, False)
    assert len(pieces) > 5
    assert [part.path.name for part in pieces[-1].parts] == ["b", "c", "d"], "small files are one piece"
    parts = [part for piece in pieces for part in piece.parts]
    assert [line for part in parts for line in lines_of(read_documents(part))] == lines + 3 * lines[:4]
