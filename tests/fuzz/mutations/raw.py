"""Mutations of bytes, whatever they mean: flips, boundary values, and blocks that are cut, doubled or moved."""

from collections.abc import Callable, Sequence
from random import Random

Mutation = Callable[[bytes, Random], bytes]
"""The content of a file → damaged content; all that is random comes from the generator."""

INTEGERS = (-1, 0, 1, 2, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63))
"""Values at which sizes and counts go wrong."""
NUMBERS = (b"\x00\x00\xc0\x7f", b"\x00\x00\x80\xff", b"\xff\xff\x7f\x7f", b"\x01\x00\x00\x00", b"\x00\x00\x00\x80")
"""As float32: NaN, minus infinity, the largest, the smallest, minus zero."""


def flip_bit(data: bytes, random: Random) -> bytes:
    place = _place(data, random)
    return data[:place] + bytes([data[place] ^ 1 << random.randrange(8)]) + data[place + 1 :]


def set_byte(data: bytes, random: Random) -> bytes:
    place = _place(data, random)
    return data[:place] + bytes([random.choice((0, 255, 127, 128, 10, 34, random.randrange(256)))]) + data[place + 1 :]


def set_integer(data: bytes, random: Random) -> bytes:
    """Overwrite 1, 2, 4 or 8 bytes with a boundary value, little-endian."""
    size = random.choice((1, 2, 4, 4, 8, 8))
    place = _place(data, random) // size * size
    value = random.choice(INTEGERS) % (1 << 8 * size)
    return data[:place] + value.to_bytes(size, "little") + data[place + size :]


def set_number(data: bytes, random: Random) -> bytes:
    """Overwrite a float32 near the end, where most formats have their numbers."""
    place = max(0, len(data) - 4 - 4 * random.randrange(max(1, len(data) // 8)))
    return data[:place] + random.choice(NUMBERS) + data[place + 4 :]


def truncate(data: bytes, random: Random) -> bytes:
    return data[: random.choice((_place(data, random), max(0, len(data) - 1), len(data) // 2))]


def cut_block(data: bytes, random: Random) -> bytes:
    start, end = _block(data, random)
    return data[:start] + data[end:]


def repeat_block(data: bytes, random: Random) -> bytes:
    start, end = _block(data, random)
    return data[:end] + data[start:end] * random.choice((1, 1, 2, 50)) + data[end:]


def fill_block(data: bytes, random: Random) -> bytes:
    start, end = _block(data, random)
    return data[:start] + random.choice((b"\0", b"\xff")) * (end - start) + data[end:]


def swap_blocks(data: bytes, random: Random) -> bytes:
    one, two, three, four = sorted(_place(data, random) for _ in range(4))
    return data[:one] + data[three:four] + data[two:three] + data[one:two] + data[four:]


def insert_bytes(data: bytes, random: Random) -> bytes:
    place = _place(data, random)
    return data[:place] + random.randbytes(random.choice((1, 2, 7, 64, 5000))) + data[place:]


def append_bytes(data: bytes, random: Random) -> bytes:
    return data + random.choice((b"\0", b"\n", b"x", bytes(4096), data))


def several(data: bytes, random: Random) -> bytes:
    for _ in range(random.randint(2, 5)):
        data = random.choice(RAW[:-1])(data, random) or b"x"
    return data


RAW: tuple[Mutation, ...] = (
    *(flip_bit, set_byte, set_integer, set_number, truncate, cut_block, repeat_block),
    *(fill_block, swap_blocks, insert_bytes, append_bytes, several),
)


def header_integers(*places: int, size: int = 4) -> Mutation:
    """A mutation that sets one of the integers that stand at these places."""

    def set_header_integer(data: bytes, random: Random) -> bytes:
        place, value = random.choice(places), random.choice(INTEGERS) % (1 << 8 * size)
        return data[:place] + value.to_bytes(size, "little") + data[place + size :]

    return set_header_integer


def _place(data: Sequence[int], random: Random) -> int:
    """A position, as often in the first 200 bytes, where headers are, as anywhere."""
    return random.randrange(min(len(data), 200) if random.random() < 0.5 else len(data))


def _block(data: Sequence[int], random: Random) -> tuple[int, int]:
    start = _place(data, random)
    return start, min(len(data), start + random.choice((1, 4, 16, 100, 1 + len(data) // 2)))
