"""Errors: how a command tells its user, in one sentence, what is wrong and what to do."""

import errno
import io
import sys
from collections.abc import Callable, Sequence

FULL = (errno.ENOSPC, errno.EDQUOT)
"""The errors of a disk or a quota that leaves no room."""
_ADVICE = {
    **dict.fromkeys(FULL, "free some space and run the command again"),
    errno.EFBIG: "allow larger files (ulimit -f)",
    errno.ENOENT: "check the name",
    errno.EEXIST: "something else has that name: move it, or choose another name",
    errno.ENOTDIR: "a folder of that name is a file: choose another place",
    errno.EISDIR: "it is a directory, but a file is needed",
    errno.ENOTEMPTY: "it is a directory with files in it: move them, or choose another name",
    errno.EACCES: "get the permission, or choose another place",
    errno.EPERM: "get the permission, or choose another place",
    errno.EROFS: "choose a place that can be written to",
    errno.ELOOP: "its links lead in a circle: mend them",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.EIO: "the disk or the network failed: check it, and run the command again",
    errno.ENOMEM: "use smaller sizes, or a machine with more memory",
}
_OUT_OF_MEMORY = ("allocate memory", "out of memory")
"""What PyTorch says when memory ran out, on the CPU and on a GPU."""


_LONGEST = 800
"""Characters of a sentence: what is damaged, and quoted in it, may be longer."""


class InputError(Exception):
    """Something the user gave cannot be used; the message is one sentence that names it and says what to do.

    Whatever it quotes, it is kept to one line that can be printed: see `one_line`.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(text: str) -> str:
    """A text on one line, without control characters, and cut in the middle where it is long."""
    line = " ".join(_cut(text).splitlines())
    return _cut("".join(each if each.isprintable() else repr(each)[1:-1] for each in line))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 300]} … {text[-297:]}"


def run_command(command: Callable[[], None]) -> int:
    """Run a command's body and return its exit status.

    An `InputError`, an error of the operating system (missing file, full disk) or memory that ran out becomes one line
    on standard error and status 1; an interrupt becomes status 130. Any other exception is a bug and keeps its
    traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that lacks a character does not cost the work
            stream.reconfigure(errors="backslashreplace")
    try:
        _refuse_undecodable(sys.argv)
        command()
    except InputError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        return _fail(describe_os_error(error))
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not any(text in str(error) for text in _OUT_OF_MEMORY):
            raise
        reason = " ".join(str(error).split()[:30])
        return _fail(
            f"memory ran out{f' ({reason})' if reason else ''}: use smaller sizes, or a machine with more of it"
        )
    return 0


def describe_os_error(error: OSError) -> str:
    """One sentence for an error of the operating system, with the file it is about and what to do."""
    what = error.strerror or str(error)
    if error.filename:
        names = [str(each) for each in (error.filename, error.filename2) if each]
        what = f"{' and '.join(names)}: {what}"
    return f"{what}: {_ADVICE.get(error.errno or 0, 'see to that, and run the command again')}"


def _fail(sentence: str) -> int:
    print(f"error: {one_line(sentence)}", file=sys.stderr)
    return 1


def _refuse_undecodable(arguments: Sequence[str]) -> None:
    """Raise an `InputError` for an argument that is not UTF-8: files record the names of what they were made from."""
    for argument in arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument):
            raise InputError(f"the argument {argument!r} is not valid UTF-8: rename the file")
