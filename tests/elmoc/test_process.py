"""Processes: how threads wait, memory that is kept, cores, and children that end with their parent."""

import platform
import subprocess
import sys

import pytest
from elmoc.errors import InputError
from elmoc.process import torchrun_numbers

SCRIPT = """
import resource
import numpy as np
from elmoc.process import keep_freed_memory
if {keep}:
    keep_freed_memory()
for _ in range(2):
    np.ones(1 << 25)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(8):
    np.ones(1 << 25)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_freed_memory_is_used_again_without_page_faults() -> None:
    given_back, kept = (
        int(subprocess.run([sys.executable, "-c", SCRIPT.format(keep=keep)], capture_output=True, check=True).stdout)
        for keep in (False, True)
    )
    assert kept < 100
    assert given_back > 8 * 100, "256 MB each time, in pages or huge pages"


def test_a_process_whose_parent_has_ended_before_it_could_ask_ends() -> None:
    code = """
import os
from elmoc.process import end_with_parent
end_with_parent(os.getppid())
print("goes on", flush=True)
end_with_parent(os.getppid() + 1)
print("is left alone")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "goes on\n", "")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"WORLD_SIZE": "two"}, "RANK, WORLD_SIZE, LOCAL_RANK in .*'two'"),
        ({"RANK": "-1"}, "RANK=-1 "),
        ({"RANK": "7", "WORLD_SIZE": "2"}, "RANK=7 of WORLD_SIZE=2 "),
        ({"RANK": "1"}, "RANK=1 of WORLD_SIZE=1 "),
    ],
    ids=str,
)
def test_a_wrong_number_of_a_launcher_is_named(
    given: dict[str, str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert torchrun_numbers() == {"rank": 0, "world_size": 1, "local_rank": 0}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=f"^{problem}"):
        torchrun_numbers()
