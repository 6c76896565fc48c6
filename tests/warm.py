"""Warm processes: commands in processes of their own, forked by one that has imported PyTorch, which takes seconds."""

import multiprocessing
import os
import runpy
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path

import torch

ROOT = Path(__file__).parent.parent
IMPORTED = ("torch._dynamo", "torch.distributed.launcher.api", "pretrain.setup", "pretrain.train")
"""What the forked processes need not import; `torch._dynamo` is imported by the first step of an optimiser."""
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([*IMPORTED])


class WarmProcess:
    """What `python WORDS…` in the root of the repository would be, with one thread.

    Args:
        words: `-m`, a module and its arguments; or `-c`, code and its arguments.
        log: the beginning of the paths of the two files to which it prints.
        environment: variables beside those of this process.
    """

    def __init__(self, words: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._files = [log.with_name(f"{log.name}.{stream}") for stream in ("stdout", "stderr")]
        variables = os.environ | {"OMP_NUM_THREADS": "1"} | (environment or {})
        for file in self._files:
            file.write_text("")
        self._process = CONTEXT.Process(target=_run, args=(list(words), dict(variables), self._files), daemon=True)
        with chdir(ROOT):  # where the process that forks, which the first of them starts, finds what it imports
            self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def stdout(self) -> str:
        """What it has printed up to now."""
        return self._files[0].read_text()

    @property
    def stderr(self) -> str:
        """What it has complained of up to now."""
        return self._files[1].read_text()

    def poll(self) -> int | None:
        """Its exit status, negative where a signal ended it; None while it runs."""
        return self._process.exitcode

    def wait(self) -> int:
        """Its exit status, once it has ended."""
        self._process.join()
        status = self._process.exitcode
        assert status is not None
        return status


def start_together(*commands: Sequence[str], log: Path) -> list[WarmProcess]:
    """Start each command as one process of a run: they find each other by the variables that `torchrun` sets."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    found = {"WORLD_SIZE": str(len(commands)), "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
    return [
        WarmProcess(
            words,
            log=log.with_name(f"{log.name}-{rank}"),
            environment=found | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank, words in enumerate(commands)
    ]


def _run(words: list[str], variables: dict[str, str], files: list[Path]) -> None:
    """What a forked process does."""
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(ROOT)
    for descriptor, file in enumerate(files, start=1):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), descriptor)
    sys.stdout, sys.stderr = open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    torch.set_num_threads(1)
    kind, what, *sys.argv[1:] = words
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
