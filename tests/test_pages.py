"""The pages: what README.md, CONTRIBUTING.md and docs/*.md point at is there, and their examples run."""

import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ROOMS = ("elmoc", "pretrain", "downstream", "data_scripts", "experiments", "quickstart", "tests", "docs")
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


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


# Pages whose examples run, in their order, in one folder and with the same names. The others' are code to adapt.
RUN = ("README.md", "docs/features.md", "docs/integrations.md")
# Blocks that need packages which tests do without: they run where these are installed (`make test-integrations`).
OPTIONAL = ("spacy", "flair", "datasets", "ray")
# Commands of pages that a test can run, by how their line starts. Others take long, need a network or more machines.
COMMANDS = ("elmoc dump-features", "elmoc inspect")
# A block of Python or of commands, and what it prints where a block of text follows it.
EXAMPLE = re.compile(r"^```(python|sh)\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what pages name: the model of the checkout, also as somebody's run, and sentences."""
    (tmp_path / "quickstart").symlink_to(ROOT / "quickstart")
    for name in ("models/english", "models/mine", "runs/mine"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / "models/english")
    (tmp_path / "sentences.txt").write_text("The cat sat .\nIt rained all day .\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [*RUN, pytest.param("docs/python.md", marks=pytest.mark.slow)])
def test_examples_print_what_the_page_shows(name: str, workspace: Path) -> None:
    names: dict[str, object] = {}
    found = EXAMPLE.findall((ROOT / name).read_text(encoding="utf-8"))
    assert found
    for language, code, shown in found:
        if any(f"import {each}" in code and importlib.util.find_spec(each) is None for each in OPTIONAL):
            continue
        printed = io.StringIO()
        if language == "sh":
            for command in filter(lambda line: line.startswith(COMMANDS), code.splitlines()):
                run_command_of_page(command)
        else:
            with contextlib.redirect_stdout(printed):
                exec(compile(code, name, "exec"), names)
        if shown:
            assert printed.getvalue() == shown, code


def run_command_of_page(command: str) -> None:
    words = [sys.executable, "-m", *shlex.split(command, comments=True)]
    done = subprocess.run(words, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.slow
def test_the_notebook_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each cell runs, and prints the same words, and numbers within a few hundredths."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    notebook = json.loads((ROOT / "docs/senses.ipynb").read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), "senses.ipynb", "exec"), names)
            shown = "".join(line for output in cell["outputs"] for line in output.get("text", ()))
            number = r"\d+\.\d+"
            assert re.sub(number, "N", printed.getvalue()) == re.sub(number, "N", shown)
            numbers = [list(map(float, re.findall(number, text))) for text in (printed.getvalue(), shown)]
            assert numbers[0] == pytest.approx(numbers[1], rel=0.03, abs=0.03)
