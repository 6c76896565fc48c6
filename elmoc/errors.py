"""Errors: how a command tells its user, in one sentence, what is wrong and what to do."""

import errno
import sys
from collections.abc import Callable


class InputError(Exception):
    """Something the user gave cannot be used; the message is one sentence that names it and says what to do."""


def run_command(command: Callable[[], None]) -> int:
    """Run a command's body and return its exit status.

    An `InputError` or an operating-system error (missing file, full disk) becomes one line on standard error
    and status 1; an interrupt becomes status 130. Any other exception is a bug and keeps its traceback.
    """
    try:
        command()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except OSError as error:
        print(f"error: {describe_os_error(error)}", file=sys.stderr)
        return 1
    return 0


def describe_os_error(error: OSError) -> str:
    """One sentence for an operating-system error, with the file it is about."""
    where = f" ({error.filename})" if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"the disk is full{where}: free some space and run the command again"
    return f"{error.strerror or error}{where}"
