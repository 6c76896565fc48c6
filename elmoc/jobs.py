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
from contextvars import copy_context
from pathlib import Path
from threading import Thread
from typing import IO, Any

import msgspec

from elmoc.errors import InputError, is_quiet
from elmoc.process import (
    PARENT_VARIABLE,
    PROGRESS_VARIABLE,
    progress_bar,
)
from elmoc.stopping import Stopped, handled_signals

# Seconds to wait for the last lines of a job that has ended: a process that it left
# behind may keep its output open.
_LAST_LINES_SECONDS = 10.0
_ROOT = Path(__file__).resolve().parent.parent
_ERROR = "error: "


def start_job(
    module: str,
    options: Any,
    *,
    stdout: int | IO[Any] | None = None,
    stderr: int | IO[Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start `python -m MODULE --json -` and return its process, without waiting for it.

    The job is in a process group of its own, so that Ctrl-C in a terminal reaches this
    process only. It gets SIGHUP when the thread that started it ends (on Linux).

    Args:
        module: a command that reads its options with `elmoc.command_line`, such as
            `pretrain.join` or `elmoc dump-features`.
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
                **(environment or {}),
            },
            process_group=0,
        )


def run_job(module: str, options: Any) -> None:
    """Run `python -m MODULE --json -` to its end; show what it prints, and its bars.

    Ctrl-C, SIGTERM and SIGHUP are passed on as Ctrl-C, and the job is waited for while
    it saves. Outside the main thread, which alone gets signals, it is only waited for.

    Args:
        module: a command that reads its options with `elmoc.command_line`, such as
            `pretrain.join` or `elmoc dump-features`.
        options: a mapping or a dataclass of what JSON knows, and paths.

    Raises:
        InputError: the job failed; the message is its last line that begins `error: `.
        KeyboardInterrupt: this process, or the job (then it is `Stopped`), was asked to
            stop.
    """
    output = _Output()
    asked: BaseException | None = None
    status = None
    with handled_signals():
        process = start_job(
            module,
            options,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Without a buffer, so that a line appears when the job prints it.
            environment={PROGRESS_VARIABLE: "json", "PYTHONUNBUFFERED": "1"},
        )
        readers = [
            output.shown(process.stdout, sys.stdout),
            output.shown(process.stderr, sys.stderr),
        ]
        while status is None:
            try:
                status = process.wait()
            # Also of a handler of the caller's, e.g. for an alarm: the job must not go
            # on writing behind the caller's back.
            except BaseException as error:
                asked = error
                process.send_signal(signal.SIGINT)
        for reader in readers:
            reader.join(_LAST_LINES_SECONDS)
    # A job that failed has left its bars open.
    for bar in output.bars.values():
        bar.close()
    if asked is not None:
        raise asked
    # By `run_command`, or in a process that had not set up its handlers yet.
    number = status - 128 if status > 128 else -status
    if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        raise Stopped(number)
    if status:
        raise InputError(
            output.error or f"`python -m {module}` ended with status {status}"
        )


class _Output:
    """Shows what a job prints: its lines, and a bar for each of its bars.

    error: the last line that begins `error: `, without that. It is not shown, since
        whoever gets the `InputError` will.
    bars: those that have not reached their end, by the numbers that the job has given.
    """

    def __init__(self) -> None:
        self.error = ""
        self.bars: dict[int, Any] = {}

    def shown(self, source: IO[bytes] | None, to: IO[str]) -> Thread:
        """A thread that shows all lines of a pipe."""
        assert source is not None
        # In the context of the caller, which may be `quiet`.
        thread = Thread(
            target=copy_context().run, args=(self._show, source, to), daemon=True
        )
        thread.start()
        return thread

    def _show(self, source: IO[bytes], to: IO[str]) -> None:
        from tqdm import tqdm

        with source:
            for line in source:
                if line.startswith(b'{"progress":'):
                    self._redraw(msgspec.json.decode(line)["progress"])
                    continue
                text = line.decode(errors="backslashreplace")
                if text.startswith(_ERROR):
                    self.error = text.removeprefix(_ERROR).rstrip("\n")
                elif not is_quiet():
                    # `tqdm.write` takes the bars away before, and draws them again.
                    tqdm.write(text, file=to, end="")
                    to.flush()

    def _redraw(self, state: Mapping[str, Any]) -> None:
        bar = state["bar"]
        if bar not in self.bars:
            self.bars[bar] = progress_bar(**state["options"])
        for name, value in state["shown"].items():
            setattr(self.bars[bar], name, value)
        self.bars[bar].refresh()
        if state["closed"]:
            self.bars.pop(bar).close()
