"""What was begun: a directory that several commands fill is gone on with only as it was begun."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from elmoc.errors import InputError
from elmoc.files.locks import locked
from elmoc.files.records import convert, read_json, write_json
from elmoc.settings import differences

NAME = "begun.json"
ADVICE = "remove that directory and begin again"


@contextmanager
def begun(folder: Path, command: str, options: Mapping[str, Any]) -> Iterator[None]:
    """Keep `folder` to this command while the block runs, and record how it was begun.

    Raises `InputError` where another process is at it, something else is in it, or something was made in it with other
    `options` (of JSON's types, or tuples of them). What else is recorded, as earlier versions did, may be another now.
    """
    plain = {name: list(each) if isinstance(each, tuple) else each for name, each in options.items()}
    record, now = folder / NAME, {"command": command, **plain}
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is not a directory: choose another name")
    with locked(record):
        files = (each for each in folder.rglob("*") if not each.is_dir())
        made = any(each != record and not each.name.endswith(".lock") for each in files)
        if made and record.exists():
            before = convert(read_json(record, advice=ADVICE), dict[str, Any], where=str(record), advice=ADVICE)
            if differing := differences(before, now):
                raise InputError(
                    f"{folder} was begun with other values of {', '.join(differing)}: give the same to go on, or "
                    "choose another directory"
                )
        elif made:
            raise InputError(f"{folder} is not empty, and was not begun by this command: choose another directory")
        else:
            write_json(record, now)
        yield
