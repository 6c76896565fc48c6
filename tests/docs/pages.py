"""Pages: the blocks, commands, links and names in code of README.md, CONTRIBUTING.md and docs/."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
README, INDEX = ROOT / "README.md", ROOT / "docs/README.md"
ROOMS = ("elmoc", "pretrain", "downstream", "data_scripts", "quickstart", "tests", "docs")

_FENCE = re.compile(r"```(\w*)\s*")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Place:
    """Some text of a page, and the line where it begins."""

    page: Path
    line: int
    text: str

    def __str__(self) -> str:
        first = self.text.partition("\n")[0]
        return f"{self.page.relative_to(ROOT)}, line {self.line}: {first}"


@dataclass(frozen=True)
class Block(Place):
    """A fenced block; `line` is its first line after the fence."""

    language: str


def indexed_pages() -> list[Path]:
    """The README, and the pages of docs/ in the order of their index."""
    named = [link.text for link in links(INDEX) if link.text.endswith(".md") and not link.text.startswith("..")]
    return [README, *dict.fromkeys(ROOT / "docs" / name for name in named)]


def all_pages() -> list[Path]:
    """Every page that the tests read; NOTES.md is a log of what was, so its names may be old."""
    return [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page; raises `ValueError` for a fence that does not end or names no language."""
    found, lines, begin, language = [], page.read_text(encoding="utf-8").split("\n"), 0, None
    for number, line in enumerate(lines, 1):
        if language is None and (match := _FENCE.fullmatch(line)):
            begin, language = number + 1, match[1]
            if not language:
                raise ValueError(f"{page}, line {number}: the fence names no language")
        elif line.strip() == "```":
            found.append(Block(page, begin, "\n".join(lines[begin - 1 : number - 1]), language or ""))
            language = None
    if language is not None:
        raise ValueError(f"{page}, line {begin - 1}: the fence does not end")
    return found


def commands(block: Block) -> list[Place]:
    """The commands of a `sh` block, continued lines joined."""
    found, pending, begin = [], "", 0
    for number, line in enumerate(block.text.split("\n"), block.line):
        begin = begin if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        pending = re.sub(r"\s+#\s.*", "", re.sub(r"\s+", " ", pending))
        if pending:
            found.append(Place(block.page, begin, pending))
        pending = ""
    return found


def page_commands(page: Path) -> list[Place]:
    """The commands of all `sh` blocks of a page."""
    return [command for block in blocks(page) if block.language == "sh" for command in commands(block)]


def python_code(page: Path) -> str:
    """The `python` blocks of a page as one program, its lines numbered as the page's."""
    code = ""
    for block in blocks(page):
        if block.language == "python":
            code += "\n" * (block.line - 1 - code.count("\n")) + block.text + "\n"
    return code


def _prose(page: Path) -> Iterator[tuple[int, str]]:
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def links(page: Path) -> list[Place]:
    """The targets of links."""
    return [Place(page, number, target) for number, line in _prose(page) for target in _LINK.findall(line)]


def code_spans(page: Path) -> list[Place]:
    """What stands in backticks in the text."""
    return [Place(page, number, span) for number, line in _prose(page) for span in _CODE.findall(line)]


def inline_commands(page: Path) -> list[Place]:
    """Commands in backticks in the text: a program and what it is given."""
    return [span for span in code_spans(page) if re.match(r"(python -m|elmoc|make|pip|torchrun) [^/]", span.text)]
