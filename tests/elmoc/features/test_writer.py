"""Feature writer: a feature file appears whole or not at all."""

import io
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.features.layouts.sentence import Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import DiskFile, write_features
from tests.elmoc.features.sentences import shape_of, states_of

SHAPE = shape_of(states_of(0, 1))


def test_nothing_appears_when_writing_fails(tmp_path: Path) -> None:
    def interrupted() -> None:
        with write_features(tmp_path / "features.h5", {}, shape=SHAPE) as writer:
            writer.add(Sentence(["a"]), states_of(0, 1))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_attributes_that_json_lacks_are_written_and_gone_on_with(tmp_path: Path) -> None:
    attributes = {"bytes": b"a", "letters": np.array([b"a"]), "array": np.arange(2), "long": np.longdouble(1) / 3}
    for resume in (False, True):
        with (
            suppress(KeyboardInterrupt),
            write_features(tmp_path / "f.h5", attributes, shape=SHAPE, resume=resume) as file,
        ):
            file.add(Sentence(["a"]), states_of(0, 1))
            file.checkpoint()
            if not resume:
                raise KeyboardInterrupt
    with FeatureFile(tmp_path / "f.h5") as features:
        assert len(features) == 2
        found = {name: np.asarray(value).tolist() for name, value in features.attributes.items()}
        assert found == {"bytes": "a", "letters": ["a"], "array": [0, 1], "long": 1 / 3}


def test_an_existing_file_is_not_overwritten(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(InputError, match="exists already"), write_features(path, {}, shape=SHAPE):
        pass
    assert path.read_bytes() == before


def test_a_second_writer_is_told_so(tmp_path: Path) -> None:
    path = tmp_path / "features.h5"
    code = """
import sys
from elmoc.errors import run_command
from elmoc.features.layouts.sentence import FeatureShape
from elmoc.features.writer import write_features
SHAPE = FeatureShape(layers=3, width=4, dtype="float32", single=False)
def command():
    with write_features(sys.argv[1], {}, shape=SHAPE):
        pass
sys.exit(run_command(command))
"""
    with write_features(path, {}, shape=SHAPE) as writer:
        writer.add(Sentence(["a"]), states_of(0, 1))
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"error: another process is writing {path}: wait for it, or stop it\n"
    with FeatureFile(path) as file:
        assert len(file) == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("call", [1, 3, 6])
@pytest.mark.parametrize("method", ["write", "truncate"])
def test_an_interrupt_while_the_library_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int, method: str
) -> None:
    calls = 0
    original = getattr(io.FileIO, method)

    class Interrupted(io.FileIO):
        """An interrupt comes in one of the calls."""

    def interrupted(self: Interrupted, *arguments: Any) -> int:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return original(self, *arguments)

    setattr(Interrupted, method, interrupted)
    monkeypatch.setattr("elmoc.features.writer.DiskFile", type("DiskFile", (DiskFile, Interrupted), {}))

    def write() -> None:
        with write_features(tmp_path / "f.h5", {"model": "abc"}, shape=SHAPE) as writer:
            for index in range(300):
                writer.add(Sentence(["w"] * 50), states_of(index, 50))

    if method == "truncate" and call > 1:  # HDF5 does it once
        write()
    else:
        with pytest.raises(KeyboardInterrupt):
            write()
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", [20_000, 900_000])
def test_a_file_that_may_not_grow_is_an_error_not_a_crash(tmp_path: Path, limit: int) -> None:
    code = f"""
import resource, sys
import numpy as np
from elmoc.errors import run_command
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.writer import write_features
shape = FeatureShape(layers=3, width=10, dtype="float32", single=False)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
def command():
    with write_features(sys.argv[1], {{}}, shape=shape) as writer:
        for index in range(4000):
            writer.add(Sentence(['w'] * 4), np.zeros((3, 4, 10), dtype=np.float32))
            print(index)
sys.exit(run_command(command))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "f.h5")], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"error: {tmp_path / 'f.h5'}: File too large: allow larger files (ulimit -f)\n"
    assert int(done.stdout.split()[-1]) < 2000, "it ends when it fails, not after all the sentences"
    assert list(tmp_path.iterdir()) == []
