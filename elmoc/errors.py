"""Errors: how a command tells its user in one line what is wrong."""

import errno
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

# where the text of the operating system does not say what to do
_ADVICE = {
    errno.ENOSPC: "free some space and run the command again",
    errno.EDQUOT: "free some space and run the command again",
    errno.EFBIG: "allow larger files (ulimit -f)",
    errno.EMFILE: "allow more open files (ulimit -n)",
}
# what PyTorch says when memory ran out, on the CPU and on a GPU
_OUT_OF_MEMORY = ("allocate memory", "out of memory")
# characters of a printed line: what is damaged, and quoted in it, may be longer
_LONGEST = 800


class InputError(Exception):
    """Something the user gave cannot be used; the message names it, on one line that can be printed."""

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """A text on one line, without control characters, and cut in the middle where it is long."""
    line = " ".join(_cut(text).splitlines())
    return _cut("".join(each if each.isprintable() else repr(each)[1:-1] for each in line))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 300]} … {text[-297:]}"


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Name `path` for whatever goes wrong while the block reads it: the one boundary of damaged and foreign files.

    An `InputError` gets the path where it does not name it; an `OSError` that names its file and lack of memory pass as
    they are; anything else becomes "PATH cannot be read (reason): it may be damaged or of another kind".
    """
    try:
        yield
    except InputError as error:
        if type(error) is not InputError or one_line(str(path)) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except Exception as error:
        if (isinstance(error, OSError) and error.filename) or ran_out_of_memory(error):
            raise
        raise InputError(f"{path} cannot be read ({reason(error)}): it may be damaged or of another kind") from error


def run_command(command: Callable[[], None]) -> int:
    """Run a command's body and return its exit status: 0, 1 after an error, 130 after an interrupt.

    Every exception becomes one line on standard error: an `InputError` as it stands, an `OSError` with its file, lack
    of memory, and whatever else as "unexpected: …". With ELMOC_TRACEBACK=1 the traceback is printed before it.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character does not cost the work
            stream.reconfigure(errors="backslashreplace")
    try:
        for argument in sys.argv:
            if not is_utf8(argument):  # files record the names of what they were made from
                raise InputError(f"the argument {argument!r} is not valid UTF-8: rename the file")
        command()
        print(end="", flush=True)
    except KeyboardInterrupt:
        drop_output()
        with suppress(OSError):  # of a terminal that is closed
            print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        drop_output()
        sys.stderr.close()
        return 1
    except Exception as error:
        drop_output()
        if os.environ.get("ELMOC_TRACEBACK"):
            traceback.print_exc()
        print(f"error: {one_line(describe_error(error))}", file=sys.stderr)
        return 1
    return 0


def describe_error(error: BaseException) -> str:
    """One sentence for an error (see `run_command`)."""
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, OSError):
        files = " and ".join(str(each) for each in (error.filename, error.filename2) if each)
        parts = [files, error.strerror or str(error), _ADVICE.get(error.errno or 0, "")]
        return ": ".join(part for part in parts if part)
    if ran_out_of_memory(error):
        why = reason(error)
        return f"memory ran out{f' ({why})' if why else ''}: use smaller sizes, or a machine with more of it"
    return (
        f"unexpected: {type(error).__name__}: {reason(error)} "
        "(with ELMOC_TRACEBACK=1 in the environment the command prints where)"
    )


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether this process was refused memory, on the CPU or on a GPU."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(text in str(error) for text in _OUT_OF_MEMORY)
    )


def install_advice(extra: str) -> str:
    """What to do where a library of one of this project's extras is missing; the project is in no package registry."""
    return f"install it with `pip install -e '.[{extra}]'` in the checkout"


def shortened(text: str, most: int = 80) -> str:
    """`text` as a sentence can quote it: at most this number of characters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def reason(error: object) -> str:
    """What a library's exception says, as a sentence can quote it: on one line, of printable characters, not long."""
    return shortened(one_line(" ".join(str(error).split())), 200)


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8, which names of files with other bytes cannot."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def drop_output() -> None:
    """Drop what standard output or standard error does not take, now and from now on; one that takes it stays.

    So the interpreter does not try again when it ends, and what is printed later does not fail.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            print(end="", flush=True, file=stream)
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
