"""Texts that a recipe is given: files, folders or globs, each with the name of its kind or without one."""

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

from elmoc.corpus import SOURCE_NAME

COMPRESSED = 3
"""How many times larger a .gz file's text is, about."""


def named(texts: Sequence[str], name: str) -> list[str]:
    """The texts as `NAME=PATH`: those that say no NAME get this one."""
    return [text if name_of(text) else f"{name}={text}" for text in texts]


def name_of(text: str) -> str:
    """The NAME of `NAME=PATH`; "" of a path, which may hold an equals sign, too."""
    match = re.fullmatch(rf"({SOURCE_NAME})=.+", text, re.DOTALL)
    return match[1] if match and not os.path.lexists(text) and not glob.glob(text) else ""


def estimated_bytes(texts: Sequence[str]) -> int:
    """About how many bytes of text there are; what does not exist has none (who reads it says so)."""
    total = 0
    for text in texts:
        path = text.removeprefix(f"{name_of(text)}=") if name_of(text) else text
        files = Path(path).rglob("*") if os.path.isdir(path) else map(Path, [path, *glob.glob(path, recursive=True)])
        for file in set(files):
            if file.is_file():
                total += file.stat().st_size * (COMPRESSED if file.suffix == ".gz" else 1)
    return total
