"""One Billion Word: the benchmark's archive becomes a corpus directory, split as in the ELMo-C paper.

Of the 99 training chunks (`training-monolingual.tokenized.shuffled/news.en-00001-of-00100` to `…-00099-…`) the last,
00099, is held out, and the other 98 are trained on; the archive's own held-out set is not used. The chunks are unpacked
beside the corpus and removed when it is finished. Safe to interrupt and run again.
"""

import argparse
import os
import re
import shutil
import sys
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from data_scripts.build_corpus import build_corpus
from data_scripts.parts.download import download
from data_scripts.parts.workers import default_workers
from elmoc.errors import InputError, run_command
from elmoc.files.records import read_json, write_json
from elmoc.files.writing import refuse_existing, require_space
from elmoc.progress import progress_bar

HELD_OUT_CHUNK = 99
_CHUNK = re.compile(r"(?:^|/)training-monolingual\.tokenized\.shuffled/news\.en-(\d{5})-of-00100$")
_UNPACKED_RATIO = 2.4  # size of the unpacked chunks by that of the archive


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.one_billion",
        description="Make a corpus directory from the One Billion Word benchmark's archive "
        "(1-billion-word-language-modeling-benchmark-r13output.tar.gz): chunk 00099 of its training chunks is held "
        "out, the others are trained on.",
    )
    parser.add_argument(
        "archive", metavar="ARCHIVE", help="the archive, or its http(s) address (it is downloaded beside the corpus)"
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="the corpus directory to make")
    parser.add_argument("--workers", type=int, default=default_workers(), metavar="N", help="processes (%(default)s)")
    options = vars(parser.parse_args(argv))
    return run_command(lambda: one_billion(**options))


def one_billion(archive: str, corpus: Path, *, workers: int = 1) -> None:
    """Build `corpus` from the archive (path or address).

    Raises `InputError` for an archive that is missing, broken, or not laid out like the benchmark's.
    """
    refuse_existing(corpus / "corpus.json")
    if archive.startswith(("http://", "https://")):
        path = corpus.parent / archive.rstrip("/").rsplit("/", 1)[-1]
        download(archive, path)
    else:
        path = Path(archive)
    folder = corpus.with_name(f".{corpus.name}.unpacked")
    unpack(path, folder)
    chunks = sorted(file for file in folder.iterdir() if file.name.startswith("news.en-"))
    held_out = [chunk for chunk in chunks if chunk_number(chunk.name) == HELD_OUT_CHUNK]
    build_corpus(
        chunks, corpus, held_out=held_out, workers=workers, recorded_name=lambda file: f"{archive}:{file.name}"
    )
    shutil.rmtree(folder)


def chunk_number(name: str) -> int:
    """The number of the chunk in a file name such as `news.en-00099-of-00100`."""
    return int(name.split("-")[1])


def unpack(archive: Path, folder: Path) -> None:
    """Unpack the training chunks of the archive into `folder`, unless they are all there from the same archive."""
    if not archive.is_file():
        raise InputError(f"{archive} does not exist (or is not a file): give the benchmark's .tar.gz archive")
    stat = archive.stat()
    identity = {"archive": str(archive.resolve()), "size": stat.st_size, "mtime": stat.st_mtime_ns}
    finished = folder / "unpacked.json"
    if finished.exists() and read_json(finished, advice="remove it") == identity:
        return
    shutil.rmtree(folder, ignore_errors=True)
    require_space(folder, int(_UNPACKED_RATIO * stat.st_size))
    folder.mkdir(parents=True)
    try:
        _unpack_chunks(archive, folder)
        missing = sorted(set(range(1, HELD_OUT_CHUNK + 1)) - {chunk_number(file.name) for file in folder.iterdir()})
        if missing:
            numbers = ", ".join(f"{number:05}" for number in missing[:3]) + (", …" if len(missing) > 3 else "")
            raise InputError(
                f"{archive} is not laid out like the One Billion Word archive: {len(missing)} of the chunks "
                f"training-monolingual.tokenized.shuffled/news.en-NNNNN-of-00100 are missing ({numbers})"
            )
    except BaseException:
        shutil.rmtree(folder)
        raise
    write_json(finished, identity)


def _unpack_chunks(archive: Path, folder: Path) -> None:
    size = archive.stat().st_size
    try:
        with (
            open(archive, "rb") as raw,
            tarfile.open(fileobj=raw, mode="r|*") as members,
            progress_bar(desc="unpacking", total=size, unit="B", unit_scale=True) as bar,
        ):
            for member in members:
                match = _CHUNK.search(member.name)
                content = members.extractfile(member) if match and member.isfile() else None
                if content is not None:
                    target = folder / Path(member.name).name
                    with open(target, "wb") as file:
                        shutil.copyfileobj(content, file, 1 << 20)
                    os.utime(target, (member.mtime, member.mtime))
                bar.update(raw.tell() - bar.n)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise InputError(f"{archive} is truncated or not a tar archive ({error}): download it again") from None


if __name__ == "__main__":
    sys.exit(main())
