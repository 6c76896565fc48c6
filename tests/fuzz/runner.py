"""Runner: cases in child processes with limits, so that a crash, a hang or a lack of memory counts as one case.

Each child is forked from this warm process and does a few dozen cases, one after the other; where it ends before its
last one, that case has failed, and another child goes on behind it.
"""

import contextlib
import faulthandler
import json
import os
import resource
import selectors
import shutil
import signal
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.fuzz.cases import Outcome, Sample, judge, run_case
from tests.fuzz.readers import READERS
from tests.fuzz.readers.reader import anything

CASES_OF_A_CHILD = 100
SECONDS = 10.0
"""The longest that a case may take."""
MEMORY_BYTES = 1 << 30
"""What a child may take beyond the warm process."""
FILE_BYTES = 200 << 20


@dataclass(frozen=True)
class Chunk:
    """The cases of one child."""

    reader: str
    numbers: range
    seed: int


class Child:
    """A child process at work on a chunk."""

    def __init__(self, chunk: Chunk, pristine: Path) -> None:
        self.chunk = chunk
        self.done = 0
        self.folder = Path(tempfile.mkdtemp(dir=pristine.parent))
        self.pipe, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            work(chunk, pristine, self.folder, writing)
        os.close(writing)
        self._buffer = b""
        self.deadline = time.monotonic() + 3 * SECONDS  # the first case waits for the sample

    def outcomes(self) -> list[Outcome] | None:
        """What has come since the last call; None when the child has ended."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        self.done += len(lines)
        self.deadline = time.monotonic() + SECONDS
        return [Outcome(**json.loads(line)) for line in lines] if data else None

    def end(self, hangs: bool) -> tuple[list[Outcome], list[Chunk]]:
        """Kill it and its own children; returns the case that it has not ended, if any, and those behind that."""
        for kill in (os.kill, os.killpg):  # it may not have made its group yet
            with contextlib.suppress(ProcessLookupError):
                kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.pipe)
        shutil.rmtree(self.folder, ignore_errors=True)
        left = self.chunk.numbers[self.done :]
        if not left:
            return [], []
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "ended"
        kind, detail = ("hang", f"over {SECONDS:.0f} s") if hangs else ("crash", how)
        chunks = [replace(self.chunk, numbers=left[1:])] if left[1:] else []
        return [Outcome(self.chunk.reader, left[0], self.chunk.seed, kind, detail=detail)], chunks


def run_cases(chunks: Iterable[Chunk], pristine: Path, jobs: int) -> Iterator[Outcome]:
    """Yield the outcomes of all cases, in no order; `jobs` children work at a time."""
    waiting, children = deque(chunks), selectors.DefaultSelector()
    try:
        while waiting or children.get_map():
            while waiting and len(children.get_map()) < jobs:
                child = Child(waiting.popleft(), pristine)
                children.register(child.pipe, selectors.EVENT_READ, child)
            ready = {key.data for key, _ in children.select(timeout=0.2)}
            for child in [key.data for key in children.get_map().values()]:
                outcomes = child.outcomes() if child in ready else []
                yield from outcomes or ()
                hangs = time.monotonic() > child.deadline
                if outcomes is None or hangs:
                    children.unregister(child.pipe)
                    failed, rest = child.end(hangs)
                    yield from failed
                    waiting.extendleft(rest)
    finally:
        for key in list(children.get_map().values()):
            key.data.end(hangs=True)


def chunks(names: Iterable[str], cases: int, seed: int) -> Iterator[Chunk]:
    """The cases of these readers, `cases` of each (of a slow one its share, but 20 or more unless `cases` is 0)."""
    for name in names:
        count = max(20, round(cases * READERS[name].share)) if cases else 0
        for start in range(0, count, CASES_OF_A_CHILD):
            yield Chunk(name, range(start, min(count, start + CASES_OF_A_CHILD)), seed)


def work(chunk: Chunk, pristine: Path, folder: Path, pipe: int) -> None:
    """What a child does: writes each outcome as a line of JSON to the pipe, and exits."""
    complaints = os.dup(2)
    try:
        os.setpgid(0, 0)
        faulthandler.disable()  # a crash is expected here
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        limit_process()
        reader, sample = READERS[chunk.reader], Sample(pristine, folder / "sample")
        _, _, expected = judge(sample, replace(reader, right=anything), None)
        sample.restore(reader)
        for number in chunk.numbers:
            outcome = run_case(sample, reader, number, chunk.seed, expected)
            os.write(pipe, json.dumps(asdict(outcome)).encode() + b"\n")
        os._exit(0)
    except BaseException:  # a mistake of the fuzzer itself
        os.write(complaints, f"{chunk}:\n{traceback.format_exc()}".encode())
    finally:
        os._exit(1)


def limit_process() -> None:
    """Limit memory, files and core dumps of this process."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check_valid(pristine: Path, names: Iterable[str]) -> None:
    """Read the undamaged sample by these readers: they have to accept it, and what they need is then imported."""
    with tempfile.TemporaryDirectory(dir=pristine.parent) as folder:
        before = os.getcwd()
        sample = Sample(pristine, Path(folder) / "sample")
        for name in names:
            reader = READERS[name]
            kind, detail, result = judge(sample, replace(reader, right=anything), None)
            assert kind == "right", f"{name}: the undamaged sample is {kind}: {detail}"
            assert reader.right(result, result), f"{name}: what is read of the undamaged sample is not right"
            sample.restore(reader)
        os.chdir(before)
