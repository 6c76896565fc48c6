"""Worker processes: one that dies is one sentence, and none outlives its parent."""

import os
import signal
import time
from collections.abc import Iterator
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import pytest

from data_scripts.parts.workers import parallel_map
from elmoc.errors import InputError


def end_by(number: int) -> int:
    if number:
        os.kill(os.getpid(), number)
    return number


@pytest.mark.parametrize(
    ("number", "how"),
    [
        (signal.SIGKILL, "was killed, probably because memory ran out"),
        (signal.SIGUSR1, "was ended by SIGUSR1"),
        (signal.SIGTERM, "was ended by SIGTERM"),
    ],
)
def test_a_worker_that_dies_is_one_sentence(number: signal.Signals, how: str) -> None:
    with pytest.raises(InputError) as error:
        list(parallel_map(end_by, [0, 0, int(number), 0], 2))
    assert str(error.value) == f"a worker process {how}: run the command again with fewer --workers"


def full_disk(_: int) -> None:
    raise OSError(28, os.strerror(28), "out")


def test_errors_of_a_worker_are_those_of_the_command() -> None:
    with pytest.raises(OSError, match="No space left on device: 'out'"):
        list(parallel_map(full_disk, range(3), 2))


def test_items_may_be_endless() -> None:
    def numbers() -> Iterator[int]:
        for number in count():
            assert number < 100, "it reads on and on before it gives anything"
            yield number

    results = parallel_map(abs, numbers(), 2)
    assert next(results) == 0
    results.close()


def note_and_wait(folder: Path) -> None:
    (folder / str(os.getpid())).touch()
    signal.pause()


def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    parent = get_context("fork").Process(target=lambda: list(parallel_map(note_and_wait, [tmp_path] * 2, 2)))
    parent.start()
    try:
        while len(workers := [int(path.name) for path in tmp_path.iterdir()]) < 2:
            time.sleep(0.01)
    finally:
        parent.kill()
        parent.join()
    end = time.monotonic() + 20
    while any(Path(f"/proc/{number}/cmdline").exists() and _command(number) for number in workers):
        assert time.monotonic() < end
        time.sleep(0.01)


def _command(number: int) -> bytes:
    """What the process runs; nothing for one that has ended."""
    try:
        return Path(f"/proc/{number}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
