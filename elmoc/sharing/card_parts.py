"""Parts of a card: which of an older card's text is replaced when a model is exported again, and which its user's.

Every generated part stands between two comments, which Markdown does not show; the first has the fingerprint of what
follows. A part that is as it was generated is replaced; one that somebody changed, and all text outside of parts,
stays. The block at the top (YAML), where there are no such comments, has the fingerprint in its last line.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from elmoc.files.checksums import fingerprint

MOST_BYTES = 1 << 20
"""Of a card that parts are replaced in; a larger file is the user's."""
FRONT = "front"
"""The name of the block at the top."""
_PART = re.compile(r"<!-- elmoc: ([\w ]+) ([0-9a-f]{16}) -->\n(.*?)<!-- elmoc: end -->(?:\n|\Z)", re.DOTALL)
_FRONT = re.compile(r"\A---\n(.*?)# elmoc: ([0-9a-f]{16})\n---\n", re.DOTALL)


def joined_parts(parts: Mapping[str, str]) -> str:
    """A whole card of generated parts by name; the first of them is `FRONT`, the lines of YAML."""
    return "\n".join(_marked(name, body) for name, body in parts.items())


def updated_card(old: Path, parts: Mapping[str, str]) -> str | None:
    """The text of an older card with its unchanged parts generated anew.

    None where the file has no generated part, or cannot be read as text: it is the user's and stays as it is.
    """
    if old.stat().st_size > MOST_BYTES:
        return None
    try:
        text = old.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not _PART.search(text):
        return None

    def renewed(match: re.Match[str]) -> str:
        name, written, body = match.groups()
        if fingerprint(body.encode()) != written:
            return match[0]
        return _marked(name, parts[name]) if name in parts else ""  # it was said of another model

    def renewed_front(match: re.Match[str]) -> str:
        unchanged = fingerprint(match[1].encode()) == match[2]
        return _marked(FRONT, parts[FRONT]) if unchanged else match[0]

    return _PART.sub(renewed, _FRONT.sub(renewed_front, text))


def _marked(name: str, body: str) -> str:
    content = body.replace("<!-- elmoc:", "<!-- elmoc :")  # no part ends within another
    written = fingerprint(content.encode())
    if name == FRONT:
        return f"---\n{content}# elmoc: {written}\n---\n"
    return f"<!-- elmoc: {name} {written} -->\n{content}<!-- elmoc: end -->\n"
