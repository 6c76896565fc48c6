"""The pages: what README.md, CONTRIBUTING.md and docs/*.md point at is there, and their Python parses."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ROOMS = ("elmoc", "pretrain", "downstream", "data_scripts", "experiments", "quickstart", "tests", "docs")
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not re.match(r"https?://", link):
            name, _, anchor = link.partition("#")
            target = page.parent / name if name else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@each_page
def test_paths_are_there(page: Path) -> None:
    """Paths inside the rooms of the repository; those with a NAME in capitals are examples, and {…} is anything."""
    text = re.sub(r"\{\w+\}", "*", page.read_text(encoding="utf-8"))
    for path in re.findall(rf"(?<![\w./-])(?:{'|'.join(ROOMS)})/[\w./*-]*\w", text):
        if not re.search(r"(^|/)[A-Z]+(/|$)", path):
            assert list(ROOT.glob(path)), path


@each_page
def test_commands_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for module in re.findall(rf"-m ((?:{'|'.join(ROOMS)})[\w.]*)", text):
        file = ROOT / module.replace(".", "/")
        assert file.with_suffix(".py").exists() or (file / "__main__.py").exists(), module
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@each_page
def test_python_parses(page: Path) -> None:
    for block in blocks(page, "python"):
        compile(block, page.name, "exec")
