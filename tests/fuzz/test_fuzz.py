"""Damaged files and command lines: each is read rightly, or refused by one sentence that names it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.openings import openings
from tests.fuzz.readers import READERS

ROOT = Path(__file__).parent.parent.parent
CODE = """
class Corpus:
    def read(self):
        return read_lines(self.path)

    def write(self):
        with open(self.path, "wb") as file, h5py.File(path, "w"):
            file.write(text.decode())

def outer():
    def inner():
        return msgspec.json.decode(open(path).read())
"""
pytestmark = pytest.mark.timeout(900)
CASES = 200
"""Of each reader; `make fuzz` runs more."""


def fuzz(*options: object) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer in a process of its own, from which children can be forked."""
    command = [sys.executable, "-m", "tests.fuzz", *map(str, options)]
    return subprocess.run(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)


@pytest.fixture(scope="module")
def failures(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """The failed cases of the readers whose tests were asked for, by reader."""
    file = tmp_path_factory.mktemp("fuzz") / "failures.jsonl"
    asked = {item.callspec.params.get("reader") for item in request.session.items if hasattr(item, "callspec")}
    names = [name for name in READERS if name in asked]
    done = fuzz("--cases", CASES, "--failures", file, *(f"--reader={name}" for name in names))
    assert file.exists(), done.stderr
    found: dict[str, list[Any]] = {name: [] for name in names}
    for line in file.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        found[case["reader"]].append(case)
    assert done.returncode == int(any(found.values())), done.stderr
    return found


@pytest.mark.parametrize("reader", READERS)
def test_damaged_input_is_read_rightly_or_refused_by_a_sentence(reader: str, failures: dict[str, list[Any]]) -> None:
    assert failures[reader] == [], "run `python -m tests.fuzz --reader NAME` for these cases alone"


def test_functions_that_open_files_are_found_in_the_code(tmp_path: Path) -> None:
    (tmp_path / "elmoc").mkdir()
    (tmp_path / "elmoc/corpus.py").write_text(CODE)
    assert openings(tmp_path) == {"elmoc/corpus.py:Corpus.read", "elmoc/corpus.py:outer.<locals>.inner"}


def test_every_function_that_opens_a_file_and_every_file_is_known_to_the_fuzzer() -> None:
    done = fuzz("--untested")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
