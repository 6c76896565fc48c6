"""One Billion Word: the benchmark's archive becomes a corpus directory, split as in the ELMo-C paper.

Of the 99 training chunks (`training-monolingual.tokenized.shuffled/news.en-00001-of-00100` to `…-00099-…`) the last,
00099, is held out, and the other 98 are trained on; the archive's own held-out set is not used. The chunks are unpacked
beside the corpus and removed when it is finished. Safe to interrupt and run again.
"""

import argparse
import gzip
import lzma
import os
import re
import shutil
import sys
import tarfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from data_scripts.build_corpus import build_corpus
from data_scripts.parts.download import download, file_name, is_address
from data_scripts.parts.options import Options
from data_scripts.parts.work_folder import refuse_output
from data_scripts.parts.workers import default_workers
from elmoc.errors import InputError, reason, run_command
from elmoc.files.locks import locked
from elmoc.files.records import read_record, write_record
from elmoc.files.text import require_file
from elmoc.files.writing import atomic_directory, require_space
from elmoc.progress import progress_bar

HELD_OUT_CHUNK = 99
FORMAT = "elmoc-unpacked"
VERSION = 1
_CHUNK = re.compile(r"(?:^|/)training-monolingual\.tokenized\.shuffled/news\.en-([0-9]{5})-of-00100$")
_UNPACKED_RATIO = 2.4  # size of the unpacked chunks by that of the archive
_GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True)
class UnpackedRecord:
    """Which archive the chunks of a folder are from: its path, size, and time of change in nanoseconds."""

    archive: str
    size: int
    mtime: int


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
    Options(workers=workers)
    path = Path(archive)
    place = Path(os.path.abspath(corpus))
    folder = place.parent / f".{place.name}.unpacked"
    with locked(place):
        if (corpus / "corpus.json").exists():
            shutil.rmtree(folder, ignore_errors=True)  # a run that was killed while it removed it
        refuse_output(corpus)
        if is_address(archive):
            path = place.parent / file_name(archive)
            download(archive, path)
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
    require_file(archive)
    stat = archive.stat()
    identity = UnpackedRecord(os.path.realpath(archive), stat.st_size, stat.st_mtime_ns)
    if _unpacked_from(folder) == identity and not _wrong_chunks(folder):
        return
    shutil.rmtree(folder, ignore_errors=True)
    require_space(folder, int(_UNPACKED_RATIO * stat.st_size))
    with atomic_directory(folder) as partial:
        _unpack_chunks(archive, partial)
        if wrong := _wrong_chunks(partial):
            numbers = ", ".join(f"{number:05}" for number in wrong[:3]) + (", …" if len(wrong) > 3 else "")
            raise InputError(
                f"{archive} is not laid out like the One Billion Word archive: {len(wrong)} of the chunks "
                f"training-monolingual.tokenized.shuffled/news.en-NNNNN-of-00100 are missing, or too many ({numbers}): "
                "download the benchmark's archive"
            )
        for file in partial.iterdir():  # pieces of text are known again by this time
            os.utime(file, ns=(stat.st_mtime_ns, stat.st_mtime_ns))
        write_record(partial / "unpacked.json", identity, format=FORMAT, version=VERSION)


def _wrong_chunks(folder: Path) -> list[int]:
    """The numbers of the chunks that a folder lacks, or has too many."""
    found = {chunk_number(file.name) for file in folder.glob("news.en-*")}
    return sorted(found ^ set(range(1, HELD_OUT_CHUNK + 1)))


def _unpacked_from(folder: Path) -> UnpackedRecord | None:
    """Which archive the chunks of the folder are from; None where it does not say."""
    try:
        return read_record(
            folder / "unpacked.json", UnpackedRecord, format=FORMAT, version=VERSION, advice="it is unpacked again"
        )
    except (InputError, OSError):
        return None


def _unpack_chunks(archive: Path, folder: Path) -> None:
    with open(archive, "rb") as raw:
        compressed = raw.read(2) == _GZIP_MAGIC
        raw.seek(0)
        try:
            if compressed:  # `tarfile` alone would not compare the text with gzip's checksum
                with gzip.open(raw, "rb") as content:
                    _unpack_members(content, raw, archive, folder)
            else:
                _unpack_members(raw, raw, archive, folder)
        except InputError:
            raise
        except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, OverflowError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise InputError(
                f"{archive} is truncated, damaged or not a tar archive ({reason(error)}): remove it and download it "
                "again"
            ) from None


def _unpack_members(content: IO[bytes] | gzip.GzipFile, raw: IO[bytes], archive: Path, folder: Path) -> None:
    """Unpack the chunks of the tar archive that is read from `content`; `raw` is its file."""
    with (
        tarfile.open(fileobj=content, mode="r|*") as members,
        progress_bar(desc="unpacking", total=os.fstat(raw.fileno()).st_size, unit="B", unit_scale=True) as bar,
    ):
        for member in members:
            match = _CHUNK.search(member.name)
            text = members.extractfile(member) if match and member.isfile() else None
            if text is not None:
                target = folder / Path(member.name).name
                if target.exists():
                    raise InputError(f"{archive} holds {target.name} twice: download the benchmark's archive")
                require_space(target, member.size)
                with open(target, "wb") as file:
                    shutil.copyfileobj(text, file, 1 << 20)
            bar.update(raw.tell() - bar.n)
    while content.read(1 << 20):  # to the checksum at the end
        pass


if __name__ == "__main__":
    sys.exit(main())
