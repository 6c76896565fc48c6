"""Archives: whether the zip archives that PyTorch writes are whole, as it does not look at their checksums."""

import zipfile
from collections.abc import Callable
from pathlib import Path

_BLOCK_BYTES = 1 << 20


def check_archive(path: Path | str, *, progress: Callable[[int], object] = lambda size: None) -> None:
    """Raise an exception (of `zipfile`, or a `ValueError`) unless an archive is stored plain, and as it was written.

    `progress` is called with the bytes that have been read since the last call.
    """
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("it is compressed")
        for member in members:
            try:
                with archive.open(member) as content:
                    while block := content.read(_BLOCK_BYTES):
                        progress(len(block))
            except zipfile.BadZipFile:
                raise ValueError(f"the content of {member.filename} has changed") from None
