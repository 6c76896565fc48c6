"""Calls: commands whose file-system calls are counted, and that are stopped or made to fail at one of them."""

import json
import mmap
import os
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOURCE = Path(__file__).with_name("interposed.cpp")
TIME_LIMIT = 60.0
"""Seconds after which a command counts as hanging."""
GRACE = 5.0
"""Seconds in which the processes that a killed command leaves have to end by themselves."""


class Mode(IntEnum):
    """What happens at the chosen call, as `interposed.cpp` numbers it."""

    COUNT, KILL, KILL_WORKER, INTERRUPT, FULL, READ_ONLY, PAUSE = range(7)


@dataclass(frozen=True)
class Outcome:
    """How a command ended.

    status: its exit status; negative where a signal ended it, None where it hung.
    changes, growths, of_workers: the calls that it made, those of them that need room on the disk, and those that other
        processes made for it.
    left_running: whether processes that it started were still there `GRACE` seconds later.
    """

    status: int | None
    output: str
    errors: str
    changes: int
    growths: int
    of_workers: int
    left_running: bool

    @property
    def killed(self) -> bool:
        """Whether the fault killed it."""
        return self.status == -signal.SIGKILL

    @property
    def error_lines(self) -> list[str]:
        """What it said to be wrong, apart from progress bars and warnings."""
        lines = self.errors.replace("\r", "\n").splitlines()
        return [line for line in lines if line.startswith("error: ")]


class Counts:
    """The small file in which a command and its children count their calls."""

    FORMAT = "lllii"

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(struct.calcsize(self.FORMAT)))
        with open(path, "r+b") as file:
            self._mapped = mmap.mmap(file.fileno(), 0)

    def read(self) -> tuple[int, int, int]:
        """Changes, growths, and those of workers."""
        return struct.unpack(self.FORMAT, self._mapped)[:3]

    def waits(self) -> bool:
        """Whether a command waits at its call."""
        return bool(struct.unpack(self.FORMAT, self._mapped)[3])

    def release(self) -> None:
        """Let a command that waits at its call go on."""
        self._mapped[-4:] = struct.pack("i", 1)


class Commands:
    """Runs commands in children of a server (`server.py`), which this starts and ends.

    Args:
        folder: the folder whose calls are counted.
        scratch: a folder outside of it for what the commands print.
    """

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder = folder
        self.scratch = scratch
        self._number = 0
        library = build_library(scratch)
        variables = {"LD_PRELOAD": str(library), "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("server.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=os.environ | variables,
        )
        self._answer()

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()

    def start(self, module: str, arguments: list[str], mode: Mode = Mode.COUNT, at: int = 0) -> "Running":
        """Start a command; `at` is the number of the call at which the fault happens."""
        self._number += 1
        output, errors, counts = (self.scratch / f"{self._number}.{name}" for name in ("output", "errors", "counts"))
        running = Running(self, output, errors, Counts(counts))
        request = {"module": module, "arguments": arguments, "mode": int(mode), "at": at, "folder": str(self.folder)}
        files = {"output": str(output), "errors": str(errors), "counts": str(counts)}
        running.process = self.ask("start", request | files)
        return running

    def run(self, module: str, arguments: list[str], mode: Mode = Mode.COUNT, at: int = 0) -> Outcome:
        """Run a command to its end."""
        return self.start(module, arguments, mode, at).finish()

    def ask(self, name: str, *arguments: Any) -> Any:
        """The server's answer to a request."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps([name, arguments]) + "\n")
        self._server.stdin.flush()
        return self._answer()

    def _answer(self) -> Any:
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        assert line, "the server of the fault tests has died"
        return json.loads(line)


@dataclass
class Running:
    """A command that was started."""

    commands: Commands
    output: Path
    errors: Path
    counts: Counts
    process: int = 0

    def wait(self, seconds: float) -> int | None:
        """Its wait status, or None when it is not over after so many seconds."""
        return self.commands.ask("wait", self.process, seconds)

    def finish(self, status: int | None = None) -> Outcome:
        """Wait for its end (unless it is over, with `status`), and for that of its children."""
        status = self.wait(TIME_LIMIT) if status is None else status
        ended = self.commands.ask("end_group", self.process, GRACE if status is not None else 0)
        changes, growths, of_workers = self.counts.read()
        outcome = Outcome(
            status=None if status is None else os.waitstatus_to_exitcode(status),
            output=self.output.read_text(errors="replace"),
            errors=self.errors.read_text(errors="replace"),
            changes=changes,
            growths=growths,
            of_workers=of_workers,
            left_running=not ended,
        )
        for file in (self.output, self.errors, self.counts.path):
            file.unlink()
        return outcome


def compiler() -> list[str] | None:
    """The C++ compiler, if there is one."""
    command = shlex.split(os.environ.get("CXX", "")) or ["c++"]
    return command if shutil.which(command[0]) else None


def build_library(folder: Path) -> Path:
    """Compile `interposed.cpp` into `folder`."""
    command = compiler()
    assert command is not None
    library = folder / "interposed.so"
    with tempfile.TemporaryDirectory() as temporary:
        built = Path(temporary) / library.name
        flags = ["-O1", "-std=c++17", "-shared", "-fPIC", "-D_GNU_SOURCE"]
        subprocess.run([*command, *flags, str(SOURCE), "-o", str(built), "-ldl"], check=True)
        shutil.move(built, library)
    return library
