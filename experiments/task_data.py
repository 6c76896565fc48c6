"""Data for probes: what the home of a public set serves becomes what `downstream`
reads.

The sets, their homes and what is done with their files are in `task_sets.py`.
"""

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal
from zipfile import ZipFile

from msgspec import Meta

from elmoc.command_line import run_main
from elmoc.errors import InputError, reading, say
from elmoc.files.compression import open_binary
from elmoc.files.text import open_text
from experiments.task_sets import MEASURED, SETS, Files

# The sets of `downstream/suite/english.toml`.
ENGLISH = (
    "snli",
    "sst5",
    "wnut17",
    "btc",
    "litbank_entities",
    "propbank_ewt",
    "litbank_coref",
    "ontogum",
)
Name = Literal[
    "english",
    "snli",
    "sst5",
    "wnut17",
    "btc",
    "uner",
    "litbank_entities",
    "propbank_ewt",
    "litbank_coref",
    "ontogum",
    "bc5cdr",
    "ncbi_disease",
]


@dataclass(frozen=True, kw_only=True)
class TaskDataCommand:
    """The command `python -m experiments.task_data`."""

    name: Annotated[
        Name,
        Meta(
            description=f"a set of data ({', '.join(SETS)}), or english: those of "
            "downstream/suite/english.toml",
            extra={"metavar": "NAME"},
        ),
    ]
    source: Annotated[
        Path,
        Meta(
            description="what was downloaded: a file, a .zip archive, or a folder of "
            "them, as they are or unpacked",
            extra={"option": "--from", "metavar": "DOWNLOADED"},
        ),
    ]
    out: Annotated[
        Path,
        Meta(
            description="the folder for the results, which is the suite's --data",
            extra={"metavar": "OUT"},
        ),
    ]


def convert_task_data(name: Name, source: Path, out: Path) -> None:
    """Convert a set of data, or several, to what probes read.

    A printed line has the SHA-256 of each file's text, and says whether the results of
    the pages were measured on this text.

    Args:
        name: of the set, or `english`.
        source: what was downloaded.
        out: the folder for the results; those that are there are replaced.

    Raises:
        InputError: a file is missing in what was downloaded, or is not what it should
            be.
    """
    with ExitStack() as stack:
        files = open_downloads(source, stack)
        for each in ENGLISH if name == "english" else (name,):
            task_set = SETS[each]
            say(f"{each}: {task_set.home} ({task_set.licence})")
            for file, convert in task_set.files.items():
                with reading(f"{source} for {each} (see {task_set.home})"):
                    text = "".join(f"{line}\n" for line in convert(files))
                    if not text:
                        raise InputError("no sentences")
                with open_text(out / file) as target:
                    target.write(text)
                digest = sha256(text.encode()).hexdigest()
                is_measured = digest.startswith(MEASURED[file])
                said = "as measured" if is_measured else "not the text measured"
                say(f"{out / file}: SHA-256 {digest}, {said}")


def open_downloads(source: Path, stack: ExitStack) -> Files:
    """Open what was downloaded: a file, a .zip archive, or a folder of them.

    Args:
        source: of the files.
        stack: keeps archives open.

    Raises:
        InputError: an archive is damaged.
    """
    files: dict[str, Any] = {}
    for path in sorted(source.rglob("*")) if source.is_dir() else [source]:
        with reading(path):
            if path.suffix == ".zip":
                zipped = stack.enter_context(ZipFile(path))
                for name in zipped.namelist():
                    files[f"{path}/{name}"] = partial(zipped.open, name)
            else:
                files[path.as_posix()] = partial(open_binary, path)
    return files


main = partial(
    run_main,
    TaskDataCommand,
    lambda given: convert_task_data(given.name, given.source, given.out),
    prog="python -m experiments.task_data",
    description="Convert public sets of data, as their homes serve them, to what the "
    "probes read. Safe to interrupt and run again.",
)

if __name__ == "__main__":
    sys.exit(main())
