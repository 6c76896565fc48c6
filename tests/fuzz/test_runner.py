"""The fuzzer itself: readers that are made to fail in every way there is are found out, and the cases go on."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from elmoc.errors import InputError
from tests.fuzz import runner
from tests.fuzz.mutations.raw import truncate
from tests.fuzz.readers import READERS
from tests.fuzz.readers.reader import Reader, consistent, same

TEXT = b"all is well\n"


def fail(error: BaseException) -> None:
    raise error


def leave(folder: Path) -> None:
    (folder / "a.partial").touch()
    raise InputError("a.txt is damaged: make it again")


WAYS: dict[str, Callable[[Path], Any]] = {
    "right": lambda folder: TEXT,
    "wrong": lambda folder: b"something else",
    "sentence": lambda folder: fail(InputError("a.txt is damaged: make it again")),
    "unclear": lambda folder: fail(InputError("there is something wrong here")),
    "traceback": lambda folder: fail(KeyError("a")),
    "left": leave,
    "crash": lambda folder: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": lambda folder: time.sleep(60),
    "memory": lambda folder: bytes(1 << 40),
}


@pytest.mark.parametrize("kind", WAYS)
def test_every_failure_is_found_and_the_next_cases_are_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(folder: Path) -> Any:
        damaged = (folder / "a.txt").read_bytes() != TEXT
        return WAYS[kind](folder) if damaged else TEXT

    made_up = Reader(name="made up", target="a.txt", mutations=(truncate,), read=read, right=same, is_file=True)
    monkeypatch.setitem(READERS, "made up", made_up)
    monkeypatch.setattr(runner, "SECONDS", 0.3)
    pristine = tmp_path / "pristine"
    pristine.mkdir()
    (pristine / "a.txt").write_bytes(TEXT)
    cases = range(100, 103)
    outcomes = list(runner.run_cases([runner.Chunk("made up", cases, seed=0)], pristine, jobs=2))
    assert Counter(outcome.kind for outcome in outcomes) == {kind: len(cases)}
    assert sorted(outcome.number for outcome in outcomes) == list(cases)
    assert [path.name for path in tmp_path.iterdir()] == ["pristine"], "the folders of the children are removed"


def test_what_a_read_gives_is_compared_or_refused() -> None:
    """A read that checks its result itself gives nothing, so that no result is thrown away by mistake."""
    assert consistent(None, None)
    assert not consistent([], [])
