"""Processes: how threads wait, memory that is kept, cores, and children that end with their parent."""

import os
import platform
import signal
import subprocess
import sys

import pytest

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_child_is_asked_to_stop_once_and_waited_for(number: int) -> None:
    code = """
import os, signal, sys
from pretrain.recipe.steps import run_child
child = '''
import signal, time
def stop(number, frame):
    print("asked", flush=True)
    time.sleep(0.2)
    raise SystemExit(130)
signal.signal(signal.SIGINT, stop)
signal.signal(signal.SIGTERM, stop)
print("runs", flush=True)
time.sleep(60)
'''
try:
    run_child([sys.executable, "-c", child], environment=dict(os.environ))
except KeyboardInterrupt:
    print("stopped")
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "runs\n"
        os.killpg(parent.pid, number)  # as a terminal does; the child is in another group
        said = parent.stdout.read().split()
    assert said == (["asked"] if number == signal.SIGKILL else ["asked", "stopped"])
