"""Download of a large file: an interrupted one goes on where it was."""

import http.client
import os
import urllib.error
import urllib.request
from pathlib import Path

from elmoc.errors import InputError
from elmoc.files.writing import require_space
from elmoc.progress import progress_bar

_TIMEOUT_SECONDS = 60


def download(address: str, path: Path) -> None:
    """Download `address` to `path`, with progress; nothing happens when `path` exists.

    What arrives is kept in `PATH.partial` until it is whole; a second call asks the server for the rest alone.
    Raises `InputError` when the server cannot be reached, refuses, or breaks off.
    """
    if path.exists():
        print(f"{path} is there already: not downloaded again")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    have = partial.stat().st_size if partial.exists() else 0
    request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as response:
            if response.status != http.client.PARTIAL_CONTENT:
                have = 0  # the server sends the whole file
            length = response.headers.get("Content-Length")
            total = have + int(length) if length else None
            require_space(partial, (total or have) - have)
            with (
                open(partial, "ab" if have else "wb") as file,
                progress_bar(desc=path.name, total=total, initial=have, unit="B", unit_scale=True) as bar,
            ):
                while data := response.read(1 << 20):
                    file.write(data)
                    bar.update(len(data))
    except urllib.error.HTTPError as error:
        hint = f"; remove {partial} and run the command again" if error.code == 416 else ""
        raise InputError(f"{address}: the server answers {error.code} {error.reason}{hint}") from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise InputError(f"{address} cannot be downloaded ({error}): run the command again to go on") from None
    size = partial.stat().st_size
    if total is not None and size != total:
        raise InputError(f"{address} broke off at {size:,} of {total:,} bytes: run the command again to go on")
    os.replace(partial, path)
