"""Archives laid out like that of the One Billion Word benchmark, tiny."""

import io
import tarfile
from pathlib import Path

ROOT = "1-billion-word-language-modeling-benchmark-r13output"
CHUNKS = "training-monolingual.tokenized.shuffled"


def write_archive(path: Path, chunks: range = range(1, 100), padding: int = 0) -> Path:
    """An archive of one sentence a chunk, which holds the chunk's number, and a held-out file that is not used.

    `padding`: how often the first chunk's sentence is repeated besides.
    """
    with tarfile.open(path, "w:gz") as archive:
        names = {f"{CHUNKS}/news.en-{number:05}-of-00100": number for number in chunks}
        names["heldout-monolingual.tokenized.shuffled/news.en.heldout-00000-of-00050"] = 1000
        names[f"{CHUNKS}/._news.en-00001-of-00100"] = 1000
        for name, number in reversed(names.items()):
            add(archive, name, f"this is sentence c{number} .\n".encode() * (1 + padding * (number == 1)))
    return path


def add(archive: tarfile.TarFile, path: str, data: bytes = b"", **fields) -> None:
    """Add a file of the benchmark's folder; `fields` are those of its header that differ."""
    member = tarfile.TarInfo(f"{ROOT}/{path}")
    member.size, member.mtime = len(data), 1_300_000_000
    for field, value in fields.items():
        setattr(member, field, value)
    if member.size == len(data):
        archive.addfile(member, io.BytesIO(data))
    else:  # a header that lies
        archive.fileobj.write(member.tobuf(tarfile.GNU_FORMAT))
