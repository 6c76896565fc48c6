"""Work folder: `CORPUS/.work`, where a build keeps what is finished until the corpus is."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elmoc.errors import InputError
from elmoc.files.locks import locked


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
    unfinished = work.exists() or not corpus.exists()
    if not unfinished and (not corpus.is_dir() or any(not path.name.endswith(".lock") for path in corpus.iterdir())):
        raise InputError(f"{corpus} exists and is not an unfinished corpus: remove it or choose another output path")


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
