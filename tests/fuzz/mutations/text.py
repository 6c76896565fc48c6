"""Mutations of text: odd characters and encodings, lines that are cut, joined or endless, and numbers out of range."""

import gzip
import re
from random import Random

from tests.fuzz.mutations.raw import RAW, Mutation

ODD = (
    *(b"\0", b"\r", b"\x1b[31m", b"\t", b" ", b'"', b"'", b"\\", b"(", b")", b"[", b"{", b"#", b"*", b"-", b"="),
    *(b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xe2\x80", b"\xef\xbb\xbf", b"\xfe\xff", b"\xf4\x90\x80\x80"),
    *(each.encode() for each in ("\x0b", "\x0c", "\x1c", "\x85", "\xa0", "\u2028", "\u3000", "\ufffd", "\ue000")),
    *(each.encode() for each in ("e\u0301", "\u202e", "\U0001f600", "²", "١", "<s>", "</s>", "<unk>", "…", "“")),
)
"""Characters, and bytes that are none, at which readers of text go wrong."""
VALUES = (b"-1", b"0", b"1", b"2", b"1e999", b"nan", b"-inf", b"9" * 30, b"9" * 5000, b"2147483648", b"", b"1.5", b"x")
"""What a number is replaced by."""
OVERLONG = 70_000_000
"""Bytes of a line that is refused for its length."""
PATTERNS = (b"a.", b'""', b'" ', b"(", b"(3 ", b")", b"a@", b"http://", b"a-", b"[", b"x", b"\t", b". ", b"''", b"0")
"""What, repeated, costs a reader time that grows faster than the text."""


def insert_odd(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data) + 1)
    return data[:place] + random.choice(ODD) * random.choice((1, 1, 2)) + data[place:]


def insert_pattern(data: bytes, random: Random) -> bytes:
    """Insert something that is repeated, seldom until a line is longer than any reader takes."""
    if random.random() < 0.02:
        return bytes(OVERLONG)
    place = random.randrange(len(data) + 1)
    pattern = random.choice(PATTERNS)
    return data[:place] + pattern * (random.choice((3, 300, 300, 300, 40_000)) // len(pattern)) + data[place:]


def set_number(data: bytes, random: Random) -> bytes:
    found = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    if not found:
        return data
    match = random.choice(found)
    return data[: match.start()] + random.choice(VALUES) + data[match.end() :]


def change_lines(data: bytes, random: Random) -> bytes:
    """Drop, double, swap, cut, join or empty lines."""
    lines = data.split(b"\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    changed = random.randrange(6)
    if changed == 0:
        del lines[at]
    elif changed == 1:
        lines.insert(at, lines[other])
    elif changed == 2:
        lines[at], lines[other] = lines[other], lines[at]
    elif changed == 3:
        lines[at] = lines[at][: random.randrange(len(lines[at]) + 1)]
    elif changed == 4:
        lines[at : at + 2] = [b" ".join(lines[at : at + 2])]
    else:
        lines[at] = random.choice((b"", b" ", b"\t\t\t"))
    return b"\n".join(lines)


def change_fields(data: bytes, random: Random) -> bytes:
    """Drop, double or swap fields of one line."""
    lines = data.split(b"\n")
    at = random.randrange(len(lines))
    separator = b"\t" if b"\t" in lines[at] else b" "
    fields = lines[at].split(separator)
    one, other = random.randrange(len(fields)), random.randrange(len(fields))
    changed = random.randrange(4)
    if changed == 0:
        del fields[one]
    elif changed == 1:
        fields.insert(one, fields[other])
    elif changed == 2:
        fields[one], fields[other] = fields[other], fields[one]
    else:
        fields[one] = random.choice((b"", b"_", b"*", b"-", *VALUES))
    lines[at] = separator.join(fields)
    return b"\n".join(lines)


def change_ends(data: bytes, random: Random) -> bytes:
    """Other line ends, none at the end, or a byte order mark."""
    changed = random.randrange(5)
    if changed == 0:
        return data.replace(b"\n", b"\r\n")
    if changed == 1:
        return data.replace(b"\n", b"\r")
    if changed == 2:
        return data.rstrip(b"\n")
    if changed == 3:
        return b"\xef\xbb\xbf" + data
    return data + b"\n" * random.choice((1, 5, 1000))


def recode(data: bytes, random: Random) -> bytes:
    """The same text in an encoding that is not UTF-8, or compressed under a name that does not say so."""
    encoding = random.choice(("utf-16", "utf-32-be", "utf-7", "gzip"))
    return gzip.compress(data, 1, mtime=0) if encoding == "gzip" else data.decode("utf-8", "replace").encode(encoding)


TEXT: tuple[Mutation, ...] = (
    *(insert_odd, insert_odd, insert_pattern, set_number, set_number, change_lines, change_lines),
    *(change_fields, change_fields, change_ends, recode, *RAW),
)


def compressed(data: bytes, random: Random) -> bytes:
    """For a `.gz` file: damaged text compressed, or damaged compressed text, or a line of 70 MB in 70 KB."""
    chosen = random.random()
    if chosen < 0.002:
        return gzip.compress(bytes(OVERLONG), 1, mtime=0)
    if chosen < 0.5:
        return random.choice(RAW)(data, random)
    return gzip.compress(random.choice(TEXT)(gzip.decompress(data), random), 1, mtime=0)
