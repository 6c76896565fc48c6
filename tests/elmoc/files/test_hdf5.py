"""HDF5 files: what is damaged, elsewhere or not there is refused, and nothing larger than the file is allocated;
a new one appears whole or not at all, on a disk that is full, too."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.sentences import LINES, shape_of, states_of, write_features, write_lines

from elmoc.features.layouts import Entry

Change = Callable[[h5py.File], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "features.h5")


def external_link(file: h5py.File) -> None:
    with h5py.File(Path(file.filename).with_name("other.h5"), "w") as other:
        other["0"] = states_of(7, 4)
    file["1"] = h5py.ExternalLink("other.h5", "0")


def external_storage(file: h5py.File) -> None:
    raw = Path(file.filename).with_name("raw.bin")
    states_of(7, 4).tofile(raw)
    file.create_dataset("1", (3, 4, 4), "f4", external=[(str(raw), 0, raw.stat().st_size)])


def virtual_dataset(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((3, 4, 4), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "0", (3, 4, 4))
    file.create_virtual_dataset("1", layout)


def sparse(file: h5py.File) -> None:
    file.create_dataset("1", (3, 10**12, 4), "f4", chunks=(3, 100, 4))[:, 5] = 1


def half_of_the_chunks(file: h5py.File) -> None:
    file.create_dataset("1", (3, 4, 4), "f4", chunks=(3, 2, 4))[:, :2] = 1


CHANGES: dict[str, Change] = {
    "external link": external_link,
    "soft link": lambda file: file.__setitem__("1", h5py.SoftLink("/0")),
    "external storage": external_storage,
    "virtual dataset": virtual_dataset,
    "48 TB": sparse,
    "half of the chunks": half_of_the_chunks,
    "integers": lambda file: file.create_dataset("1", data=np.ones((3, 2, 4), "i4")),
    "references": lambda file: file.create_dataset("1", data=np.full((3, 2, 4), file.ref, h5py.ref_dtype)),
    "width": lambda file: file.create_dataset("1", data=states_of(1, 3, width=5)),
    "group": lambda file: file.create_group("1"),
    "not a number": lambda file: file.create_dataset("1", data=np.full((3, 2, 4), np.nan, "f4")),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_sentence_that_is_elsewhere_or_not_whole(path: Path, change: Change) -> None:
    with h5py.File(path, "a") as file:
        del file["1"]
        change(file)
    with FeatureFile(path) as features:
        np.testing.assert_array_equal(features[0], states_of(0, 4))
        for read in (lambda: features[1], features.check):
            with pytest.raises(InputError, match=str(path)):
                read()


def test_a_whole_file_is_checked(path: Path, tmp_path: Path) -> None:
    with FeatureFile(path) as features:
        features.check()
    with write_features(tmp_path / "other.h5", {}, shape=shape_of(states_of(0, 1))) as writer:
        for index, line in enumerate(LINES):
            tokens = line.split() + ["more"] * (index == 2)
            writer.add(Entry(len(tokens), line.strip()), states_of(index, len(tokens)))
    with FeatureFile(tmp_path / "other.h5") as features, pytest.raises(InputError, match="sentence 2 "):
        features.check()


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_is_read_where_there_are_no_locks(path: Path, number: int) -> None:
    library, code = path.with_name("no.so"), path.with_name("no.c")
    code.write_text(f"#include <errno.h>\nint flock(int a, int b) {{ errno = {number}; return -1; }}\n")
    subprocess.run(["cc", "-shared", "-fPIC", code, "-o", library], check=True)
    read = f"from elmoc import FeatureFile\nprint(len(FeatureFile({str(path)!r})))"
    environment = os.environ | {"LD_PRELOAD": str(library)}
    done = subprocess.run([sys.executable, "-c", read], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(LINES)}\n"


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
