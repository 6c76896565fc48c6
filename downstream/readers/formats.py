"""Formats: how a file of a task may look, by an example.

Each task's folder lists its own in `formats.py`. The table of docs/probes.md is made of
them, and a test has every example read.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


class Format(NamedTuple):
    """A form of the files of a task.

    name: as the page names it.
    example: the text of a small file.
    suffix: at the end of the file's name.
    options: of the task's reader, without which it does not read the file.
    """

    name: str
    example: str
    suffix: str = ".txt"
    options: Mapping[str, Any] = MappingProxyType({})
