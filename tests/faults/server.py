"""Server: a process that has everything imported, and forks a child for every command that is run with faults.

It is started by `calls.py` with the library of `interposed.cpp` loaded, reads requests from standard input and answers
on standard output, a JSON object a line.
"""

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import signal
import sys
import time
import traceback
from typing import Any

ROOMS = ("elmoc", "pretrain", "downstream", "data_scripts")
LEFT_OUT = ("speed", "gpu", "cuda_graph", "flair", "spacy", "masked_training")
LIBRARIES = (
    "fasttext",
    "matplotlib.backends.backend_agg",
    "matplotlib.figure",
    "nltk.tokenize.punkt",
    "scipy",
    "torch._dynamo",
)
"""What is imported when a function is called, by the modules or by libraries."""
PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h


def import_everything() -> None:
    """Import the modules that commands import when they run, so that the forked children need not."""
    for room in ROOMS:
        for module in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}."):
            if not set(LEFT_OUT) & set(module.name.split(".")):
                importlib.import_module(module.name)
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.collect()
    gc.freeze()  # a child that collects garbage need not copy all of this memory


def start(request: dict[str, Any]) -> int:
    """Fork a child that runs a command in a session of its own; its process id."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        os.setsid()
        for descriptor, name in ((0, os.devnull), (1, request["output"]), (2, request["errors"])):
            os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC if descriptor else os.O_RDONLY), descriptor)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
        sys.argv = [request["module"], *request["arguments"]]
        counts, folder = (request[name].encode() for name in ("counts", "folder"))
        main = importlib.import_module(request["module"]).main
        ctypes.CDLL(None).arm(folder, counts, request["mode"], ctypes.c_long(request["at"]))
        status = main(request["arguments"])
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def wait(child: int, seconds: float) -> int | None:
    """The wait status of a child, or None when it is not over after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > end:
            return None
        time.sleep(0.002)


def end_group(group: int, seconds: float) -> bool:
    """Whether what a child left running ended by itself in so many seconds; it is killed if not."""
    end = time.monotonic() + seconds
    while True:
        try:
            ended, _ = os.waitpid(-group, os.WNOHANG)
        except ChildProcessError:
            return True
        if not ended and time.monotonic() > end:
            os.killpg(group, signal.SIGKILL)
            return False
        if not ended:
            time.sleep(0.01)


def main() -> None:
    """Answer requests until there are no more."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # so that what a killed child leaves can be seen
    import_everything()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print(json.dumps("ready"), file=answers, flush=True)
    requests = {"start": start, "wait": wait, "end_group": end_group}
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(requests[name](*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    main()
