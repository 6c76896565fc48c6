"""What was begun: a directory that several commands fill is gone on with only as it was begun."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elmoc.errors import InputError
from elmoc.files.locks import locked
from elmoc.files.records import convert, read_json, write_json
from elmoc.settings import differences

NAME = "begun.json"
ADVICE = "remove that directory and begin again"


def require_no_file(folder: Path) -> None:
    """Raise an `InputError` where a file is given for the directory to make, as where names are swapped."""
    if folder.exists() and not folder.is_dir():
        raise InputError(
            f"{folder} is an existing file, but OUT, the last of the names, is a directory to make: choose another name"
        )


def recorded(folder: Path) -> dict[str, Any]:
    """What was recorded of how a directory was begun; an `InputError` where that is damaged."""
    record = folder / NAME
    return convert(read_json(record, advice=ADVICE), dict[str, Any], where=str(record), advice=ADVICE)


@contextmanager
def begun(
    folder: Path, command: str, options: Mapping[str, Any], *, open_options: Callable[[], Collection[str]] = tuple
) -> Iterator[None]:
    """Keep `folder` to this command while the block runs, and record how it was begun.

    Raises `InputError` where another process is at it, something else is in it, or something was made in it with other
    `options` (of JSON's types, or tuples of them), but for those of `open_options`, which nothing was made with as yet.
    What else is recorded, as earlier versions did, may be another now.
    """
    plain = {name: list(each) if isinstance(each, tuple) else each for name, each in options.items()}
    record, now = folder / NAME, {"command": command, **plain}
    require_no_file(folder)
    with locked(record):
        may_change = open_options()
        files = (each for each in folder.rglob("*") if not each.is_dir())
        made = any(each != record and not each.name.endswith(".lock") for each in files)
        if made and record.exists():
            fixed = {name: each for name, each in now.items() if name not in may_change}
            if differing := differences(recorded(folder), fixed):
                raise InputError(
                    f"{folder} was begun with other values of {', '.join(differing)}: give the same to go on, or "
                    "choose another directory"
                )
        elif made:
            raise InputError(f"{folder} is not empty, and was not begun by this command: choose another directory")
        if not made or may_change:
            write_json(record, now)
        yield
