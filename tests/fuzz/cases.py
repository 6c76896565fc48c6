"""Cases: one damaged file is made, read and judged, in this process.

A case is known by the reader's name, its number and the seed, and is the same every time.
"""

import contextlib
import io
import os
import re
import shutil
import sys
import time
import traceback
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from elmoc.errors import run_command
from tests.fuzz.mutations.files import FILES
from tests.fuzz.readers.reader import CommandFailed, Reader

ROOT = Path(__file__).parent.parent.parent
GOOD = ("right", "sentence")
FAILURES = ("wrong", "traceback", "crash", "hang", "memory", "unclear", "left")
"""What may become of a case: the last two are a sentence that does not do, and files that are left behind."""
SLOW_SECONDS = 3.0
"""Processor time after which a case counts as hanging: every file is tiny, or should be refused for its size."""
LONGEST_SENTENCE = 1000


@dataclass(frozen=True)
class Outcome:
    """What became of a case; `detail` is the sentence or the traceback."""

    reader: str
    number: int
    seed: int
    kind: str
    mutation: str = ""
    detail: str = ""


class Sample:
    """A copy of the sample, in which one file is damaged again and again; the working directory is set to it."""

    def __init__(self, pristine: Path, folder: Path) -> None:
        self.pristine, self.folder = pristine, folder
        shutil.copytree(pristine, folder, symlinks=True)
        (folder / "out").mkdir()
        os.chdir(folder)
        self._files = {path: signature(path) for path in files_in(".")}

    def target(self, reader: Reader) -> Path:
        """The file that the reader's cases damage, relative to the sample: of several that match, the first."""
        return min(self.pristine.glob(reader.target)).relative_to(self.pristine)

    def damage(self, reader: Reader, number: int, seed: int) -> str:
        """Damage the reader's file; returns the name of the mutation."""
        target, random = self.target(reader), Random(f"{seed} {reader.name} {number}")
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink() or not target.is_file():
            remove(target)
        if reader.is_file and number < len(FILES):
            remove(target)
            FILES[number](target)
            return FILES[number].__name__
        mutation = random.choice(reader.mutations)
        target.write_bytes(mutation((self.pristine / target).read_bytes(), random))
        return mutation.__name__

    def restore(self, reader: Reader) -> list[str]:
        """Undo what reading has changed, but for the damaged file; returns what was left behind."""
        found = set(files_in("."))
        left = sorted(found - self._files.keys())
        for name in left:
            Path(name).unlink(missing_ok=True)
        for path in Path("out").iterdir():
            remove(path)
        if reader.writes:
            changed = [name for name, kept in self._files.items() if name not in found or signature(name) != kept]
            for name in changed:
                remove(Path(name))
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(self.pristine / name, name, follow_symlinks=False)
                self._files[name] = signature(name)
        return left


def signature(path: str) -> tuple[int, int, int]:
    """Changes whenever a file is written or replaced."""
    stat = os.lstat(path)
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


def files_in(folder: str) -> Iterator[str]:
    """What is in a folder and those below it, without the folders."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from files_in(entry.path)
            else:
                yield entry.path


def remove(path: Path) -> None:
    """Remove a file, a link or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def run_case(sample: Sample, reader: Reader, number: int, seed: int, expected: Any) -> Outcome:
    """Damage, read, judge, and restore the sample."""
    mutation = sample.damage(reader, number, seed)
    started = time.process_time()
    kind, detail, _ = judge(sample, reader, expected)
    left = [name for name in sample.restore(reader) if kind != "right" or name.endswith(".partial")]
    if kind in GOOD and time.process_time() - started > SLOW_SECONDS:
        kind, detail = "hang", f"{time.process_time() - started:.1f} s of processor time, then: {detail}"
    elif kind in GOOD and (left := [name for name in left if not may_stay(name)]):
        kind, detail = "left", f"{', '.join(left[:3])} after: {detail}"
    return Outcome(reader.name, number, seed, kind, mutation, detail[:LONGEST_SENTENCE])


def may_stay(name: str) -> bool:
    """Files that a later start of the same command goes on with."""
    return "/.work/" in name or name in ("./out/file.partial", "./out/results.jsonl")


def judge(sample: Sample, reader: Reader, expected: Any) -> tuple[str, str, Any]:
    """Read the sample: the kind of outcome, its sentence or traceback, and what was read."""
    results: list[Any] = []
    with captured() as printed:
        try:
            status = run_command(lambda: results.append(reader.read(sample.folder)))
        except CommandFailed:
            status = 1
        except SystemExit as error:  # of argparse, which says what is wrong with the words
            return "sentence" if error.code else "right", "", None
        except MemoryError:
            return "memory", shortened_traceback(), None
        except AssertionError as error:
            frames = traceback.extract_tb(error.__traceback__)
            own = not any(is_of_project(frame.filename) for frame in frames)
            return ("wrong" if own else "traceback"), shortened_traceback(), None
        except BaseException:
            return "traceback", shortened_traceback(), None
    if status == 0:
        result = results[0] if results else None
        try:
            right = not results or reader.right(result, expected)
        except Exception:  # it is not even comparable
            right = False
        return ("right", "", result) if right else ("wrong", "the result is not that of the undamaged file", result)
    said = re.split(r"^error: ", printed.buffer.getvalue().decode(), flags=re.MULTILINE)[-1].removesuffix("\n")
    if reader.is_file and said.startswith("memory ran out"):
        return "memory", said, None
    names = (sample.target(reader).name,) if reader.names is None else reader.names
    return ("sentence" if is_clear(said, names) else "unclear"), said, None


def is_clear(said: str, names: tuple[str, ...]) -> bool:
    """Whether a message is one printable line of some length that names the file."""
    printable = not any(unicodedata.category(each) in ("Cc", "Zl", "Zp", "Cs") for each in said)
    named = not names or any(name in said for name in names)
    return 10 <= len(said) <= LONGEST_SENTENCE and printable and named


@contextlib.contextmanager
def captured() -> Iterator[io.TextIOWrapper]:
    """Standard error, kept; standard output, of a terminal that has ASCII alone, is thrown away."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), each, write_through=True) for each in ("ascii", "utf-8"))
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        yield errors


def is_of_project(file: str) -> bool:
    """Whether a file of Python code is the project's own, and no test."""
    path = Path(file)
    return path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] not in ("tests", ".venv")


def shortened_traceback() -> str:
    """The exception that is being handled, with the frames of the project."""
    kind, error, trace = sys.exc_info()
    places = [
        f"{Path(frame.filename).relative_to(ROOT)}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(trace)
        if is_of_project(frame.filename)
    ]
    return f"{kind.__name__ if kind else ''}: {str(error)[:300]} at {' < '.join(reversed(places[-4:]))}"
