"""Damage: edits of the bytes of a file, drawn by hypothesis, and a bound on what reading it may take."""

import resource
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import strategies as st

EXTREMES = st.sampled_from([0, 1, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63)])
SIZES = st.sampled_from([4, 8])
TOKENS = st.sampled_from(
    [b"\t", b"\n\n", b"\x00", b"\xff", b"\xe2\x80\xa8", b"9" * 40, b'"', *b"NaN -1 1e999 [] {} null".split()]
)

MOST_BYTES = 2 << 30  # of memory beyond what the process has

Edit = Callable[[bytes], bytes]


def behind(place: float, change: Callable[[bytes], bytes]) -> Edit:
    """What stands behind a place is changed."""

    def edited(content: bytes) -> bytes:
        at = int(place * len(content))
        return content[:at] + change(content[at:])

    return edited


LENGTHS = st.integers(1, 64)
CHANGES = st.one_of(
    # one bit is another
    st.integers(0, 7).map(lambda bit: lambda rest: bytes([rest[0] ^ (1 << bit)]) + rest[1:] if rest else rest),
    # an integer of 4 or 8 bytes is an extreme one
    st.builds(lambda value, size: lambda rest: struct.pack("<q", value)[:size] + rest[size:], EXTREMES, SIZES),
    # the rest is missing, some bytes are missing, there twice, or something else stands between
    st.just(lambda rest: b""),
    LENGTHS.map(lambda length: lambda rest: rest[length:]),
    LENGTHS.map(lambda length: lambda rest: rest[:length] + rest),
    TOKENS.map(lambda token: lambda rest: token + rest),
)
EDITS = st.lists(st.builds(behind, st.floats(0, 1, exclude_max=True) | st.just(0.0), CHANGES), min_size=1, max_size=3)


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
