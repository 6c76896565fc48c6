"""Jobs: how one process of the project runs a command of the project in another.

Rooms do not import each other: a step of a recipe, or a probe of a suite, is
`python -m MODULE --json -` in a process of its own, which reads its options as one JSON
object from standard input. It ends with the process that started it.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import msgspec

from elmoc.errors import InputError, is_quiet
from elmoc.process import ERROR_VARIABLE, PARENT_VARIABLE
from elmoc.stopping import Stopped, handled_signals

_ROOT = Path(__file__).resolve().parent.parent


def start_job(
    module: str,
    options: Any,
    *,
    stdout: int | IO[Any] | None,
    stderr: int | IO[Any] | None,
    environment: Mapping[str, str],
) -> "subprocess.Popen[bytes]":
    """Start `python -m MODULE --json -` and return its process, without waiting for it.

    The job is in a process group of its own, so that Ctrl-C in a terminal reaches this
    process only. It gets SIGHUP when the thread that started it ends (on Linux).

    Args:
        module: a command that reads its options with `elmoc.command_line`, such as
            `data_scripts.build_corpus` or `elmoc dump-features`.
        options: a mapping or a dataclass of what JSON knows, and paths.
        stdout: as of `subprocess.Popen`, e.g. an open log file.
        stderr: the same.
        environment: variables that are set besides those of this process.
    """
    folders = filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")])
    # A pipe would block until the job reads its options; a file does not.
    with tempfile.TemporaryFile() as stdin:
        values = msgspec.to_builtins(options, enc_hook=os.fspath)
        stdin.write(json.dumps(values).encode())
        stdin.seek(0)
        return subprocess.Popen(
            [sys.executable, "-m", *module.split(), "--json", "-"],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env={
                **os.environ,
                PARENT_VARIABLE: str(os.getpid()),
                "PYTHONPATH": os.pathsep.join(folders),
                **environment,
            },
            process_group=0,
        )


def run_job(module: str, options: Any) -> None:
    """Run `python -m MODULE --json -` to its end. It prints where this process does,
    but for its error, and nothing where this process is `quiet`.

    Ctrl-C, SIGTERM and SIGHUP are passed on as Ctrl-C, and the job is waited for while
    it saves. Outside the main thread, which alone gets signals, it is only waited for.

    Args:
        module: a command that reads its options with `elmoc.command_line`, such as
            `data_scripts.build_corpus` or `elmoc dump-features`.
        options: a mapping or a dataclass of what JSON knows, and paths.

    Raises:
        InputError: the job failed; it says why.
        KeyboardInterrupt: this process, or the job (then it is `Stopped`), was asked to
            stop.
    """
    asked: BaseException | None = None
    status = None
    shown = subprocess.DEVNULL if is_quiet() else None
    with tempfile.NamedTemporaryFile() as told, handled_signals():
        process = start_job(
            module,
            options,
            stdout=shown,
            stderr=shown,
            environment={ERROR_VARIABLE: told.name},
        )
        while status is None:
            try:
                status = process.wait()
            # Also of a handler of the caller's, e.g. for an alarm: the job must not go
            # on writing behind the caller's back.
            except BaseException as error:
                asked = error
                process.send_signal(signal.SIGINT)
        said = told.read().decode()
    if asked is not None:
        raise asked
    # By `run_command`, or in a process that had not set up its handlers yet.
    number = status - 128 if status > 128 else -status
    if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        raise Stopped(number)
    if status:
        raise InputError(said or f"`python -m {module}` ended with status {status}")
