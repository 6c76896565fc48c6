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
    assert find_named_files(["folder"]) == find_named_files(["folder/*"]) == {Path("folder/text"): ""}
    for name in ("pipe", "missing", "", "folder/nowhere", "folder/p*"):
        with pytest.raises(InputError):
            find_named_files([name])
    Path("link").symlink_to("folder/text")
    for again in ("folder/text", "link", str(tmp_path / "folder/text")):
        with pytest.raises(InputError, match="twice"):
            find_named_files(["folder", again])


def test_a_name_is_none_of_a_file_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b.txt").write_text("12345")
    named = ("a=b.txt", "a=*.txt", "x=a=b.txt", "no/x=y", "plain.txt")
    assert [split_name(text)[0] for text in named] == ["", "", "x", "", ""]
    assert find_named_files(["x=a=b.txt"]) == {Path("a=b.txt"): "x"}
    for text in ("höhe=b.txt", "two words=b.txt", "=b.txt", "x="):
        with pytest.raises(InputError, match=text):
            split_name(text)
