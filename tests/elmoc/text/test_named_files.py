"""Named files: what can be a file of text, and what is a NAME and what a part of a path."""

import os
from pathlib import Path

import pytest
from elmoc.errors import InputError
from elmoc.text.named_files import find_named_files, split_name


def test_only_ordinary_files_are_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("folder").mkdir()
    Path("folder/text").write_text("a\n")
    os.mkfifo("folder/pipe")
    Path("folder/nowhere").symlink_to("missing")
    Path("folder/again").symlink_to("text")
    for named in ("folder", "f*", "folder/te*"):
        assert find_named_files([named]) == {Path("folder/text"): ""}
    Path("corpus").mkdir()
    for name in ("corpus.json", "lexicon.txt"):
        Path("corpus", name).write_text("a\n")
    others = {"pipe": "pipe or a device", "corpus": "is a corpus directory"}
    for name in (*others, "missing", "", "folder/nowhere", "folder/p*"):
        with pytest.raises(InputError, match=others.get(name, "names no file")):
            find_named_files([name])
    Path("link").symlink_to("folder/text")
    for again in ("folder/text", "link", str(tmp_path / "folder/text")):
        with pytest.raises(InputError, match="twice"):
            find_named_files(["folder", again])


def test_a_warning_counts_what_is_no_text_in_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["a.txt", "notes/b.md", "news.tr", "c", "d.jsonl", "e.gz", "f.parquet"]
    others = ["README.md", "notes/LICENSE", "g.json", "page.HTML", "h.png", "i.docx", "j.py"]
    (tmp_path / "notes/.git").mkdir(parents=True)
    for name in [*texts, *others, ".hidden", "notes/.git/head"]:
        content = {
            "e.gz": b"\x1f\x8b\x08\0",
            "f.parquet": b"PAR1\0",
            "h.png": b"\x89PNG\r\n\0",
            "i.docx": b"PK\3\4\x14\0",
        }
        (tmp_path / name).write_bytes(content.get(name, b"a b\n"))
    (tmp_path / "linked").symlink_to(tmp_path / "notes")
    assert list(find_named_files([tmp_path])) == sorted(tmp_path / name for name in texts)
    said = capsys.readouterr().err
    assert "7 files are not read" in said
    assert f"links to folders are not read: {tmp_path}/linked" in said
    assert all(name in said for name in others)
    assert len(find_named_files([f"{tmp_path}/*.md", str(tmp_path / "h.png")])) == 2, "what is named is read"
    assert capsys.readouterr().err == ""


def test_a_name_is_none_of_a_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b.txt").write_text("12345")
    named = ("a=b.txt", "a=*.txt", "x=a=b.txt", "no/x=y", "plain.txt")
    assert [split_name(text)[0] for text in named] == ["", "", "x", "", ""]
    assert find_named_files(["x=a=b.txt"]) == {Path("a=b.txt"): "x"}
    for text in ("höhe=b.txt", "two words=b.txt", "=b.txt", "x="):
        with pytest.raises(InputError, match=text):
            split_name(text)
