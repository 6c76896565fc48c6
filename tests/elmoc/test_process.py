"""Process-wide settings: threads sleep while they wait unless the user says otherwise, and freed memory is kept."""

import os
import platform
import subprocess
import sys

import pytest

from elmoc.process import wait_without_spinning

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


def test_the_users_choice_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    wait_without_spinning()
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    wait_without_spinning()
    assert os.environ["OMP_WAIT_POLICY"] == "active"
