"""Errors: how a command tells its user in one line what is wrong, and how text is made
fit to be printed.
"""

import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

from elmoc.stopping import Stopped, handled_signals

# Parts of PyTorch's messages when memory ran out, on the CPU and on a GPU.
_OUT_OF_MEMORY = ("allocate memory", "out of memory")
# The extras of this project, by the packages that they install.
_EXTRAS = {
    "fasttext": "train",
    "nltk": "train",
    "matplotlib": "plots",
    "plotly": "plots",
    "huggingface_hub": "hub",
    "sklearn": "sklearn",
    "spacy": "spacy",
    "faiss": "pack",
    "allennlp_light": "train",
    "scipy": "train",
    "seqeval": "train",
    "tabulate": "train",
    "pyarrow": "formats",
    "tensorboard": "tensorboard",
    "transformers": "teacher",
}
# What goes on with a command that was stopped.
AGAIN = "give the same command again"
RESUME = f"{AGAIN}, with --resume if it had begun"
# Characters of a printed line, which may quote damaged text of any length.
_LONGEST = 800
_QUIET = ContextVar("quiet", default=False)


class InputError(Exception):
    """Something the user gave cannot be used; the message names it, on one line that
    can be printed.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def printable(text: str) -> str:
    """A text with escapes for characters that steer a terminal; ends of lines stay."""
    return "".join(
        each if each.isprintable() or each == "\n" else repr(each)[1:-1]
        for each in text
    )


def one_line(text: str) -> str:
    """A text on one line, without control characters, and cut in the middle where it is
    long.
    """
    line = printable(" ".join(text.splitlines()))
    # Both ends: a message names its file first, and says what to do last.
    cut = f"{line[: _LONGEST - 300]} … {line[-297:]}"
    return line if len(line) <= _LONGEST else cut


def say(text: str, *, file: TextIO | None = None) -> None:
    """Print a line, which may quote a file: without control characters, and cut where
    it is long (`one_line`).
    """
    if not is_quiet():
        print(one_line(text), file=file, flush=True)


def note(text: str) -> None:
    """Print a line to standard error: something that a user may not expect."""
    say(f"note: {text}", file=sys.stderr)


def warn(text: str) -> None:
    """Print a line to standard error: something that may make results wrong."""
    say(f"warning: {text}", file=sys.stderr)


@contextmanager
def quiet() -> Iterator[None]:
    """Show no lines of `say` and no progress bars while the block runs.

    It holds for this thread, and for processes that `elmoc.jobs` starts from it.
    """
    token = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(token)


def is_quiet() -> bool:
    """Whether the call is inside of `quiet`."""
    return _QUIET.get()


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Name `path` for whatever goes wrong while the block reads it: the one boundary of
    damaged and foreign files.

    An `InputError` gets the path where it does not name it. An `OSError` that names its
    file, lack of memory and of a package pass as they are. All else becomes "PATH
    cannot be read (reason): it may be damaged or of another kind".
    """
    try:
        yield
    except InputError as error:
        if type(error) is not InputError or one_line(str(path)) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        if (
            isinstance(error, ModuleNotFoundError)
            or ran_out_of_memory(error)
            or (isinstance(error, OSError) and error.filename)
        ):
            raise
        raise InputError(
            f"{path} cannot be read ({reason(error)}): it may be damaged or of another "
            "kind"
        ) from error


def run_command(
    command: Callable[[], object], *, go_on: str = AGAIN, told: str | None = None
) -> int:
    """Run a command's body and return its exit status: 0, 1 after an error, 130 after
    Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.

    Every exception becomes one line on standard error: an `InputError` as it stands, an
    `OSError` with its file, lack of memory, and whatever else as "unexpected: …". With
    ELMOC_TRACEBACK=1 the traceback is printed before it.

    Args:
        command: the body.
        go_on: what a user who stopped it does to go on; "" where another process is
            the user.
        told: a file for the line of an error, which is not printed then.
    """
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character does not cost the work.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with handled_signals(), _closed_bars():
            command()
            print(end="", flush=True)
    except KeyboardInterrupt as error:
        drop_output()
        number = error.args[0] if isinstance(error, Stopped) else signal.SIGINT
        name = signal.Signals(number).name
        how = "interrupted" if number == signal.SIGINT else f"stopped by {name}"
        # The terminal may be closed.
        with suppress(OSError):
            print(f"{how}: {go_on}" if go_on else how, file=sys.stderr)
        return 128 + number
    except BrokenPipeError:
        drop_output()
        sys.stderr.close()
        return 1
    except Exception as error:
        drop_output()
        if os.environ.get("ELMOC_TRACEBACK"):
            traceback.print_exc()
        line = one_line(describe_error(error))
        if told is None:
            print(f"error: {line}", file=sys.stderr)
        else:
            Path(told).write_text(line, encoding="utf-8")
        return 1
    return 0


@contextmanager
def _closed_bars() -> Iterator[None]:
    """Close the bars that are shown when the block ends, so that the last line of a
    command begins a line.
    """
    try:
        yield
    finally:
        if "tqdm" in sys.modules:
            for bar in list(sys.modules["tqdm"].tqdm._instances):
                # The terminal may be closed.
                with suppress(OSError):
                    bar.close()


def _open_missing_streams() -> None:
    """Open what a shell has closed (`2>&-`), so that no file gets its number, and with
    it what libraries print.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r+"))  # noqa: SIM115


def describe_error(error: BaseException) -> str:
    """One sentence for an error (see `run_command`)."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError):
        said = error.strerror or str(error)
        # A rename has two.
        files = [str(each) for each in (error.filename, error.filename2) if each]
        return f"{' and '.join(files)}: {said}" if files else said
    if ran_out_of_memory(error):
        return (
            f"memory ran out ({reason(error)}): use smaller sizes, or a machine with "
            "more of it"
        )
    if isinstance(error, ModuleNotFoundError):
        package = (error.name or "").partition(".")[0]
        if package in _EXTRAS:
            return (
                f"{error.name} is not installed: the extra {_EXTRAS[package]} has it "
                f"(in a checkout: `pip install -e '.[{_EXTRAS[package]}]'`)"
            )
    return (
        f"unexpected: {type(error).__name__}: {reason(error)} (ELMOC_TRACEBACK=1 in "
        "the environment prints where)"
    )


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether this process was refused memory, on the CPU or on a GPU."""
    if isinstance(error, RuntimeError):
        return any(text in str(error) for text in _OUT_OF_MEMORY)
    return isinstance(error, MemoryError)


def shortened(text: str, most: int = 80) -> str:
    """`text` as a sentence can quote it: at most this number of characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def human_bytes(size: float) -> str:
    """A number of bytes with its unit, e.g. `1.5 GB`."""
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def reason(error: object) -> str:
    """The message of a library's exception, as a sentence can quote it: on one line,
    of printable characters, not long.
    """
    return shortened(one_line(" ".join(str(error).split())), 200)


def drop_output() -> None:
    """Close standard output or standard error to a reader that is gone, so that later
    prints, and the end of the interpreter, do not fail.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            print(end="", flush=True, file=stream)
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
