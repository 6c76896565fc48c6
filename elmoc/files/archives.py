"""Archives: whether the zip archives that PyTorch writes are whole, as it does not look at their checksums."""

import zipfile
from pathlib import Path


def check_archive(path: Path | str) -> None:
    """Raise an exception (of `zipfile`, or a `ValueError`) unless an archive is stored plain, and as it was written."""
    with zipfile.ZipFile(path) as archive:
        if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
            raise ValueError("it is compressed")
        if (damaged := archive.testzip()) is not None:
            raise ValueError(f"the content of {damaged} has changed")
