"""Workers: their errors are those of the command, and they end with it."""

import os
import signal
import time
from collections.abc import Iterator
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from data_scripts.parts.workers import parallel_map
from elmoc.errors import InputError


def end_by_kill(number: int) -> None:
    if number:
        os.kill(os.getpid(), signal.SIGKILL)


def full_disk(_: int) -> None:
    raise OSError(28, os.strerror(28), "out")


def test_errors_of_a_worker_are_those_of_the_command() -> None:
    with pytest.raises(OSError, match="No space left on device: 'out'"):
        list(parallel_map(full_disk, range(3), 2))
    with pytest.raises(InputError, match="a worker process was killed"):
        list(parallel_map(end_by_kill, [0, 0, 1, 0], 2))


def test_items_may_be_endless_and_workers_compute_without_the_threads_of_the_command() -> None:
    torch.set_num_threads(2)
    assert torch.ones(10**6).double().sum() == 10**6

    def numbers() -> Iterator[int]:
        for number in count():
            assert number < 100, "it reads on and on before it gives anything"
            yield number

    results = parallel_map(lambda number: int(torch.full((10**6,), number).double().mean()) + 1, numbers(), 2)
    assert next(results) == 1
    results.close()


def note_and_wait(folder: Path) -> None:
    (folder / str(os.getpid())).touch()
    signal.pause()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(tmp_path: Path, number: int) -> None:
    parent = get_context("fork").Process(target=lambda: list(parallel_map(note_and_wait, [tmp_path] * 2, 2)))
    parent.start()
    try:
        while len(workers := [int(path.name) for path in tmp_path.iterdir()]) < 2:
            time.sleep(0.01)
    finally:
        os.kill(parent.pid, number)
        parent.join()
    end = time.monotonic() + 200
    while any(runs(number) for number in workers):
        assert time.monotonic() < end
        time.sleep(0.01)


def runs(number: int) -> bool:
    """Whether a process runs that is not waiting to be reaped."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
