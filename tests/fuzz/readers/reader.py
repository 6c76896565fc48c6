"""An entry of the registry: one way in which the project reads a file or a command line, and when that went well."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.fuzz.mutations.raw import Mutation


class CommandFailed(Exception):
    """A command has ended with a status other than 0, and has said why on standard error."""


def same(result: Any, expected: Any) -> bool:
    """Whether two results are equal, arrays and tensors in them number by number (NaN is no number)."""
    if isinstance(expected, dict):
        return isinstance(result, dict) and same(sorted(result.items()), sorted(expected.items()))
    if isinstance(expected, list | tuple):
        return isinstance(result, list | tuple) and len(result) == len(expected) and all(map(same, result, expected))
    return bool(np.array_equal(np.asarray(result), np.asarray(expected)))


def consistent(result: Any, expected: Any) -> bool:
    """For reads that check what they have read themselves, and so give nothing."""
    return result is None


def anything(result: Any, expected: Any) -> bool:
    """For the undamaged sample, by which others are judged."""
    return True


@dataclass(frozen=True, kw_only=True)
class Reader:
    """How a file of the sample is damaged, read and judged.

    target: the file, by its path in the sample's folder.
    mutations: what is done to its content; one is drawn for each case.
    read: reads the sample in a folder, of which `target` may be damaged; may write into its folder `out`.
    right: whether a result that was given, without an error, is right, beside that of the undamaged sample.
    names: one of these has to stand in the sentence that refuses the file (by default its name).
    is_file: whether it can also be replaced by a folder, a pipe and the like.
    share: cases by those of other readers; small for the slow.
    writes: whether reading changes the sample, which is then restored after each case.
    """

    name: str
    target: str
    mutations: tuple[Mutation, ...]
    read: Callable[[Path], Any]
    right: Callable[[Any, Any], bool] = same
    names: tuple[str, ...] | None = None
    is_file: bool = True
    share: float = 1.0
    writes: bool = False


def run(main: Callable[[list[str]], int], *words: object) -> None:
    """Run a command that has to succeed."""
    given = [str(word) for word in words]
    with patch.object(sys, "argv", ["command", *given]):
        status = main(given)
    if status:
        raise CommandFailed(status)
