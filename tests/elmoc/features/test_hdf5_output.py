"""HDF5 output: a file appears whole or not at all, whatever ends its writer, on a disk that is full, too."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.features.dump import converted


def test_numbers_that_a_type_does_not_have() -> None:
    with pytest.raises(InputError):
        converted(np.full((3, 4), 7e4, np.float32), "float16")
    assert converted(np.full((3, 4), 6e4, np.float32), "float16").dtype == np.float16


@pytest.mark.parametrize("limit", [20_000, 900_000])
def test_a_file_that_may_not_grow_is_an_error_not_a_crash(tmp_path: Path, limit: int) -> None:
    """A full disk is reported by the library in the same way."""
    code = f"""
import resource, sys
import numpy as np
from elmoc.errors import run_command
from elmoc.features.reader import LAYOUTS
from elmoc.features.layouts import Entry, FeatureShape
shape = FeatureShape(layers=3, width=10, dtype="float32", single=False)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
def command():
    with LAYOUTS["allennlp"].open(sys.argv[1], {{}}, shape=shape) as writer:
        for index in range(4000):
            writer.add(Entry(4), np.zeros((3, 4, 10), dtype=np.float32))
sys.exit(run_command(command))
"""
    path = tmp_path / "f.h5"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"error: {path}: File too large\n")
    assert list(tmp_path.iterdir()) == []
