"""Mutations of tar archives: names, sizes, times and kinds of members, and what is compressed."""

import gzip
import io
import tarfile
from random import Random

from tests.fuzz.mutations.raw import RAW, Mutation

KINDS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"S", b"x", b"\0", b"7")
PAX = (
    *({"mtime": value} for value in ("1e20", "nan", "-1", "1e400", "x", "-1e18")),
    *({"size": value} for value in ("-1", "0", "9" * 20, "x")),
    *({"path": value} for value in ("", "/", "x" * 5000, "a\0b", "../x")),
    *({"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}, {"GNU.sparse.map": "0,1,x"}, {"hdrcharset": "BINARY"}),
)


def change_tar(data: bytes, random: Random) -> bytes:
    """Change one member, or drop or double it."""
    members = _read(data)
    at = random.randrange(len(members))
    info, content = members[at]
    changed = random.randrange(7)
    if changed == 0:
        del members[at]
    elif changed == 1:
        members.insert(at, random.choice(members))
    elif changed == 2:
        root = info.name.rpartition("/")[0]
        names = (f"/{info.name}", f"../../{info.name}", f"{info.name}/x", f"{root}/news.en-00100-of-00100", "x")
        info.name = random.choice((*names, info.name.replace("0", "٠"), f"{root}/news.en-0\0-of-00100"))
    elif changed == 3:
        info.type, info.linkname = random.choice(KINDS), random.choice((info.name, "/etc/passwd", "", "x"))
    elif changed == 4:
        info.mtime = random.choice((-1, 2**40, 2**62, 0))
    elif changed == 5:
        info.pax_headers = random.choice(PAX)
    else:
        content = random.choice((b"", b"\0" * 2000, b"\xff\xfe\n", b"<s>\n", b"\n\n", b"x"))
        info.size = len(content)
        members[at] = info, content
    return _write(members)


def change_unpacked(data: bytes, random: Random) -> bytes:
    """Damage the archive inside its compression: headers and their checksums."""
    return gzip.compress(random.choice(RAW)(gzip.decompress(data), random), 1, mtime=0)


def _read(data: bytes) -> list[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return [(member, archive.extractfile(member).read()) for member in archive]  # type: ignore[union-attr]


def _write(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1, format=tarfile.PAX_FORMAT) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


TAR: tuple[Mutation, ...] = (*[change_tar] * 2 * len(RAW), *[change_unpacked] * len(RAW), *RAW)
