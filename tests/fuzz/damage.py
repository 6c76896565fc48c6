"""Damage: edits of the bytes of a file, drawn by hypothesis, and a bound on what reading it may take."""

import resource
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

EXTREMES = [0, 1, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63)]
TOKENS = [
    b"NaN",
    b"-1",
    b"1e999",
    b"[]",
    b"{}",
    b'"',
    b"\t",
    b"\n\n",
    b"\x00",
    b"\xff",
    b"\xe2\x80\xa8",
    b"null",
    b"9" * 40,
]

MOST_BYTES = 2 << 30  # of memory beyond what the process has

Edit = Callable[[bytes], bytes]


def _at(content: bytes, place: float) -> int:
    return int(place * len(content))


def flip(place: float, bit: int) -> Edit:
    """One bit is another."""

    def edit(content: bytes) -> bytes:
        at = min(_at(content, place), len(content) - 1)
        return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :] if content else content

    return edit


def number(place: float, value: int, size: int) -> Edit:
    """The bytes of a little-endian integer of 4 or 8 bytes are those of an extreme one."""
    raw = struct.pack("<q", value)[:size]
    return lambda content: content[: _at(content, place)] + raw + content[_at(content, place) + size :]


def cut(place: float) -> Edit:
    """The rest is missing."""
    return lambda content: content[: _at(content, place)]


def without(place: float, length: int) -> Edit:
    """Some bytes are missing."""
    return lambda content: content[: _at(content, place)] + content[_at(content, place) + length :]


def twice(place: float, length: int) -> Edit:
    """Some bytes are there twice."""

    def edit(content: bytes) -> bytes:
        at = _at(content, place)
        return content[: at + length] + content[at:]

    return edit


def inserted(place: float, token: bytes) -> Edit:
    """Something else stands between."""
    return lambda content: content[: _at(content, place)] + token + content[_at(content, place) :]


PLACES = st.floats(0, 1, exclude_max=True)
EDITS = st.lists(
    st.one_of(
        st.builds(flip, PLACES, st.integers(0, 7)),
        st.builds(number, PLACES | st.just(0.0), st.sampled_from(EXTREMES), st.sampled_from([4, 8])),
        st.builds(cut, PLACES),
        st.builds(without, PLACES, st.integers(1, 64)),
        st.builds(twice, PLACES, st.integers(1, 64)),
        st.builds(inserted, PLACES, st.sampled_from(TOKENS)),
    ),
    min_size=1,
    max_size=3,
)


def damaged(content: bytes, edits: list[Edit]) -> bytes:
    """The content after all edits."""
    for edit in edits:
        content = edit(content)
    return content


@contextmanager
def bounded() -> Iterator[None]:
    """No more than MOST_BYTES of memory beyond what the process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
