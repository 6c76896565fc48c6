"""Damaged files and command lines: each is read rightly, or refused by one sentence that names it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
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
CASES = 100
"""Of each reader; `make fuzz` runs more."""


@dataclass(frozen=True)
class Fuzzed:
    """What the fuzzer has found: the failed cases of every reader that was asked for, and what no reader damages."""

    failures: dict[str, list[Any]]
    untested: str


@pytest.fixture(scope="module")
def fuzzed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Fuzzed:
    """The fuzzer, run for the tests that were asked for, in a process of its own, from which children can be forked."""
    folder = tmp_path_factory.mktemp("fuzz")
    failures, untested = folder / "failures.jsonl", folder / "untested.txt"
    items = request.session.items
    asked = {item.callspec.params.get("reader") for item in items if hasattr(item, "callspec")}
    names = [name for name in READERS if name in asked]
    options = ["--cases", CASES if names else 0, "--failures", failures, *(f"--reader={name}" for name in names)]
    known = test_every_function_that_opens_a_file_and_every_file_is_known_to_the_fuzzer
    if known in [getattr(item, "function", None) for item in items]:
        options += ["--untested", untested]
    command = [sys.executable, "-m", "tests.fuzz", *map(str, options)]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)
    assert failures.exists(), done.stderr
    found: dict[str, list[Any]] = {name: [] for name in names}
    for line in failures.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        found[case["reader"]].append(case)
    assert done.returncode == int(any(found.values())), done.stderr
    return Fuzzed(found, untested.read_text(encoding="utf-8") if untested.exists() else "was not looked for")


@pytest.mark.parametrize("reader", READERS)
def test_damaged_input_is_read_rightly_or_refused_by_a_sentence(reader: str, fuzzed: Fuzzed) -> None:
    assert fuzzed.failures[reader] == [], "run `python -m tests.fuzz --reader NAME` for these cases alone"


def test_functions_that_open_files_are_found_in_the_code(tmp_path: Path) -> None:
    (tmp_path / "elmoc").mkdir()
    (tmp_path / "elmoc/corpus.py").write_text(CODE)
    assert openings(tmp_path) == {"elmoc/corpus.py:Corpus.read", "elmoc/corpus.py:outer.<locals>.inner"}


def test_every_function_that_opens_a_file_and_every_file_is_known_to_the_fuzzer(fuzzed: Fuzzed) -> None:
    assert fuzzed.untested == ""
