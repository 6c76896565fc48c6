"""Work folder: `CORPUS/.work`, where a build keeps what is finished until the corpus is."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmoc.corpus import SUBWORDS
from elmoc.errors import InputError
from elmoc.files.locks import is_beside, locked

_MADE = (".work", "shards", "lexicon.txt", "counts.npy", SUBWORDS)
"""What an unfinished corpus may have, beside locks and what a killed writer left."""
_MADE_IN_WORK = re.compile(r"[0-9a-f]{16}|final_ids\.npy")
"""Names in its work folder: of the folders of pieces, and of what the merged lexicon leaves there."""


def refuse_output(corpus: Path) -> None:
    """Raise an `InputError` when `corpus` is finished already, or is a directory of something else.

    What a build left of its work folder that was killed while it removed it is removed here.
    """
    description, work = corpus / "corpus.json", corpus / ".work"
    if description.exists():
        if work.exists():
            with locked(description):
                shutil.rmtree(work, ignore_errors=True)
        raise InputError(f"{corpus} is a finished corpus already: remove it or choose another output path")
    if not corpus.exists():
        return
    foreign = _foreign(corpus, work) if corpus.is_dir() else [corpus]
    if foreign and not work.is_dir():
        raise InputError(f"{corpus} exists and is not an unfinished corpus: remove it or choose another output path")
    if foreign:
        raise InputError(
            f"{foreign[0]} is not of an unfinished corpus, though {work} is there: move it elsewhere to go on, or "
            "choose another output path"
        )


def _foreign(corpus: Path, work: Path) -> list[Path]:
    """What is in a directory that no interrupted build leaves there."""
    found = [path for path in corpus.iterdir() if not work.is_dir() or path.name not in _MADE]
    if work.is_dir():
        found += [path for path in work.iterdir() if not _MADE_IN_WORK.fullmatch(path.name)]
    return [path for path in found if not is_beside(path.name)]


@contextmanager
def work_folder(corpus: Path) -> Iterator[Path]:
    """`CORPUS/.work`, locked against a second build, and removed once the block ends well; see `refuse_output`."""
    refuse_output(corpus)
    with locked(corpus / "corpus.json"):
        refuse_output(corpus)
        work = corpus / ".work"
        work.mkdir(exist_ok=True)
        yield work
        shutil.rmtree(work)


def clean(corpus: Path, work: Path, keep: set[str]) -> None:
    """Remove what an interrupted build left that this one does not use."""
    shutil.rmtree(corpus / "shards", ignore_errors=True)
    for path in work.iterdir():
        if path.is_dir() and path.name not in keep:
            shutil.rmtree(path)
