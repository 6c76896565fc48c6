"""Download of a large file: an interrupted one goes on where it was."""

import http.client
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path

from elmoc.errors import InputError, reason, shortened
from elmoc.files.locks import locked
from elmoc.files.writing import require_space
from elmoc.progress import progress_bar

_TIMEOUT_SECONDS = 60
_READ_BYTES = 1 << 20
_PASSING = (429, 500, 502, 503, 504)
"""Answers by which a server says that it cannot serve a file now, though the address may be right."""
_HANDLERS = (  # urllib's own, without those of other schemes, to which a server could redirect
    urllib.request.ProxyHandler,
    urllib.request.UnknownHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPRedirectHandler,
    urllib.request.HTTPErrorProcessor,
)


def is_address(text: str) -> bool:
    """Whether the text is the address of a file on a server, rather than a path."""
    return text.lower().startswith(("http://", "https://"))


def file_name(address: str) -> str:
    """The name of the file at `address`; raises `InputError` when it has none."""
    try:
        name = urllib.parse.urlsplit(address).path.rstrip("/").rsplit("/", 1)[-1]
    except ValueError as error:
        raise _bad_address(address, error) from None
    if name in ("", ".", ".."):
        raise InputError(f"{address} names no file: give the whole address of the archive")
    return name


def download(address: str, path: Path) -> None:
    """Download `address` to `path`, with progress; nothing happens when `path` exists.

    What arrives is kept in `PATH.partial` until it is whole; a second call asks the server for the rest alone.
    Raises `InputError` when the server cannot be reached, refuses, breaks off, or does not say how long the file is.
    """
    with locked(path):
        if path.exists():
            print(f"{path} is there already: not downloaded again")
            return
        partial = path.with_name(f"{path.name}.partial")
        have = partial.stat().st_size if partial.exists() else 0
        response = _open(address, have, partial)
        if response is not None:
            with response:
                _receive(response, address, have, partial)
        os.replace(partial, path)


def _open(address: str, have: int, partial: Path) -> HTTPResponse | None:
    """The server's answer to a request for what comes after `have` bytes; None where nothing does."""
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    try:
        request = urllib.request.Request(address, headers={"Range": f"bytes={have}-"} if have else {})
        return opener.open(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
            if error.headers.get("Content-Range") == f"bytes */{have}":
                return None
            hint = f"remove {partial} and run the command again"
        else:
            hint = "run the command again later to go on" if error.code in _PASSING else "check the address"
        raise InputError(f"{address}: the server answers {reason(error)}: {hint}") from None
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, http.client.InvalidURL):
            raise _bad_address(address, error) from None
        raise InputError(f"{address} cannot be downloaded ({reason(error)}): run the command again to go on") from None
    except ValueError as error:  # also characters that are not ASCII
        raise _bad_address(address, error) from None


def _receive(response: HTTPResponse, address: str, have: int, partial: Path) -> None:
    """Write the answer to `partial`, after the `have` bytes of it that are there if that is what it holds."""
    if response.status == http.client.PARTIAL_CONTENT:
        asked = f"bytes {have}-"
        if not response.headers.get("Content-Range", asked).startswith(asked):
            raise InputError(
                f"{address}: the server sends another part than was asked for: remove {partial} and run the command "
                "again"
            )
    else:
        have = 0  # the server sends the whole file
    length = response.headers.get("Content-Length", "")
    chunked = response.headers.get("Transfer-Encoding", "").lower() == "chunked"  # of which the last says that it is
    if not chunked and not re.fullmatch("[0-9]{1,18}", length):
        raise InputError(
            f"{address}: the server does not say how long the file is (Content-Length: {shortened(length) or 'none'}), "
            "so that a download that breaks off would not be noticed: download it by other means and give the file"
        )
    total = None if chunked else have + int(length)
    if total is not None:
        require_space(partial, total - have)
    with (
        open(partial, "ab" if have else "wb") as file,
        progress_bar(desc=partial.stem, total=total, initial=have, unit="B", unit_scale=True) as bar,
    ):
        for data in _blocks(response, address):
            file.write(data)
            bar.update(len(data))
    size = partial.stat().st_size
    if total is not None and size != total:
        raise InputError(f"{address} broke off at {size:,} of {total:,} bytes: run the command again to go on")


def _blocks(response: HTTPResponse, address: str) -> Iterator[bytes]:
    try:
        while data := response.read(_READ_BYTES):
            yield data
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise InputError(f"{address} broke off ({reason(error)}): run the command again to go on") from None


def _bad_address(address: str, error: Exception) -> InputError:
    return InputError(
        f"{address!r} is not an address ({reason(error)}): correct it, with other characters than ASCII as %XX"
    )
