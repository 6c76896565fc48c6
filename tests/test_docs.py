"""The documentation: its links, paths, names, command lines and Python examples; `make docs-check` runs the rest."""

import argparse
import re
import shlex
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_type_hints
from unittest import mock

import pytest

from downstream.__main__ import TASKS
from downstream.probe.task import Task
from elmoc.encoders.bidirectional import ENCODERS
from elmoc.features.layout_names import LAYOUT_NAMES
from elmoc.features.layouts import LAYOUTS
from pretrain.config import KINDS, OUTPUT_LAYERS, RunConfig
from tests.docs.__main__ import is_run, shortened
from tests.docs.inputs import write_python_inputs
from tests.docs.pages import (
    INDEX,
    README,
    ROOMS,
    ROOT,
    Place,
    all_pages,
    blocks,
    code_spans,
    indexed_pages,
    inline_commands,
    links,
    page_commands,
    python_code,
)
from tests.docs.tables import FROM_THE_START, NOT_RUN, SHORTENED

PAGES = all_pages()
COMMANDS = [command for page in indexed_pages() for command in page_commands(page)]
INLINE = [command for page in PAGES for command in inline_commands(page)]
PYTHON_PAGES = [page for page in PAGES if python_code(page)]
WITH_SUBCOMMANDS = ("elmoc", "downstream")
PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(ROOMS)})/[\w./*-]*|\b[A-Z]{{4,}}\.md\b")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def own_words(command: str) -> list[str] | None:
    """The arguments of a command of this project, the module first; None for a command of the system."""
    words = shlex.split(re.sub(r"\s[|>].*", "", command))
    if "-m" in words and words[0] in ("python", "torchrun"):
        return words[words.index("-m") + 1 :]
    return words if words[0] == "elmoc" else None


def is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def is_name(name: str) -> bool:
    """Whether it is a module, or something in one."""
    module, _, last = name.rpartition(".")
    return is_module(name) or (is_module(module) and hasattr(import_module(module), last))


def main_of(module: str) -> Callable[[list[str]], int]:
    """The function that runs a command, given its arguments."""
    return import_module(f"{module}.__main__" if is_module(f"{module}.__main__") else module).main


class Parsed(BaseException):
    """Raised when the last argument of a command line has been parsed."""


def command_line_problem(words: Sequence[str], monkeypatch: pytest.MonkeyPatch, capsys: Any) -> str | None:
    """What the command's own parsers say against its arguments; nothing is run."""
    module, *arguments = words
    if not is_module(module):
        return f"there is no module {module}"
    parse = argparse.ArgumentParser.parse_args

    def parse_and_stop(parser: argparse.ArgumentParser, given: Any = None, namespace: Any = None) -> Any:
        options = parse(parser, given, namespace)
        if given and list(given)[-1] == arguments[-1]:
            raise Parsed
        return options

    with monkeypatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)
        try:
            main_of(module)(arguments)
        except Parsed:
            return None
        except SystemExit as end:
            return None if end.code in (0, None) else capsys.readouterr().err.strip()
    return f"the command did not parse its arguments: {capsys.readouterr().err.strip()}"


def test_the_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 130


def test_every_page_is_in_the_index() -> None:
    assert {README, INDEX, *indexed_pages()} | {ROOT / "CONTRIBUTING.md"} == {INDEX, *PAGES}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    relative = [link for link in links(page) if not re.match(r"https?:|#", link.text)]
    assert [str(link) for link in relative if not (page.parent / link.text.partition("#")[0]).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_exist(page: Path) -> None:
    places = code_spans(page) + [block for block in blocks(page) if block.language in ("text", "sh")]
    missing = [f"{place}: {path}" for place in places for path in PATH.findall(place.text) if not exists(path)]
    assert missing == []


def exists(path: str) -> bool:
    path = path.partition("NAME")[0]  # the folder of a name to choose
    return any(ROOT.glob(path.rstrip("/"))) and (not path.endswith("/") or (ROOT / path).is_dir())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules_and_settings_exist(page: Path) -> None:
    sections = {name: set(get_type_hints(section)) for name, section in get_type_hints(RunConfig).items()}
    for name, kinds in KINDS.items():
        sections[name] |= {each for kind in kinds.values() for each in get_type_hints(kind)}
    problems = []
    for place in code_spans(page) + page_commands(page):
        names = re.findall(r"--set '?(\w+\.\w+)=", place.text)
        for name in [*names, *re.findall(r"^\w+(?:\.\w+)+$", place.text)]:
            first, rest = name.split(".", 1)
            if first in sections and rest not in sections[first]:
                problems.append(f"{place}: there is no setting {name}")
            elif first in ROOMS and not name.endswith(".toml") and not is_name(name):
                problems.append(f"{place}: there is no module or name {name}")
    assert problems == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_fenced_and_of_a_kind_that_is_checked(page: Path) -> None:
    assert {block.language for block in blocks(page)} <= {"sh", "text", "python"}
    assert [line for line in page.read_text(encoding="utf-8").split("\n") if re.match(r" {4,}\$? ?python", line)] == []


def test_the_page_on_tasks_names_what_a_task_gives() -> None:
    page = next(page for page in PAGES if name_of(page) == "docs/extending/task.md")
    table = " ".join(line for line in page.read_text(encoding="utf-8").split("\n") if line.startswith("|"))
    assert [name for name in Task.__abstractmethods__ if f"`{name}`" not in table] == []


def test_the_tree_names_every_folder() -> None:
    (tree,) = [block.text for block in blocks(README) if block.text.startswith("elmoc/")]
    packages = {file.parent.relative_to(ROOT) for room in ROOMS[:5] for file in (ROOT / room).rglob("__init__.py")}
    named = {Path(path) for path in PATH.findall(tree)}
    assert {path for path in packages if path.parts[:2] != ("downstream", "tasks") or len(path.parts) == 2} <= named


def test_the_tables_hold_nothing_that_is_gone() -> None:
    texts = [command.text for command in COMMANDS]
    assert [pattern for pattern in SHORTENED if not any(re.search(pattern, text) for text in texts)] == []
    known = [*texts, *(command.text for command in INLINE)]
    assert [start for start in NOT_RUN if not any(text.startswith(start) for text in known)] == []
    assert all((ROOT / page).exists() for page in FROM_THE_START)


@pytest.mark.parametrize("place", COMMANDS, ids=str)
def test_command_lines_are_understood(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for command in {place.text, shortened(place.text)}:
        words = own_words(command)
        problem = command_line_problem(words, monkeypatch, capsys) if words else None
        assert problem is None, f"{place}\n{problem}"


@pytest.mark.parametrize("place", INLINE, ids=str)
def test_commands_in_the_text_are_understood(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is not the beginning of a command of a block has to be understood as it stands, or to be listed."""
    if place.text.startswith("make "):
        assert re.search(rf"^{place.text[5:]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), str(place)
    elif is_run(place.text) and not any(command.text.startswith(place.text) for command in COMMANDS):
        words = own_words(place.text)
        assert words is not None, f"{place} is neither run nor listed in tests/docs/tables.py"
        problem = command_line_problem(words, monkeypatch, capsys)
        assert problem is None, f"{place}\n{problem}"


MADE = {
    """model TEXT='talk=a.txt b.txt' OUT=models/x CONFIG=c.toml TIME=3h VECTORS=v.bin BUNDLE=1 LICENCE='CC BY 4.0'
    NAME="Ada's" LEAVE_OUT='dev.txt test.txt' MODEL_OPTIONS='--set data.sources={a=2}'""": ["pretrain.recipe"],
    """tables CORPUS=c VECTORS=v.bin SUITE=s.toml TIME=15m QUICK=1 ROWS=elmo,elmo_c OUT=runs/t
    TABLES_OPTIONS='--set evaluation.words=9'""": ["pretrain.recipe.tables"],
    """peers TEXT='a.txt b.txt' TIME=100m SUITE=s.toml SUITE_OPTIONS='--corpus c' PEER_NAMES=masked_lm
    PEER_OPTIONS='--seed 2' PEERS_OUT=runs/p""": [
        "downstream",
        "downstream.peers.masked_lm",
        "downstream.peers.masked_lm",
        "downstream",
    ],
}
"""Targets of the Makefile with all of their variables, and the commands that they run."""


@pytest.mark.parametrize("target", MADE, ids=lambda target: target.split()[0])
def test_what_make_runs_is_understood(
    target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = commands_of_make(target)
    assert [words[1] for words in found] == MADE[target]
    for words in found:
        assert command_line_problem(words[1:], monkeypatch, capsys) is None, words


def commands_of_make(target: str) -> list[list[str]]:
    """The words of each command of Python that a target runs, with its variables, behind the interpreter."""
    ready = [word for each in (".venv", ".venv-peers") for word in ("-o", f"{each}/installed")]
    make = ["make", "-n", *ready, *shlex.split(target)]
    printed = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = printed.replace("\\\n", " ").replace("$peer", "masked_lm").splitlines()
    commands = [part for line in lines for part in re.split(r"&&|\|\||;|\{\s|\bdo\s", line) if " -m " in part]
    return [shlex.split(command)[1:] for command in commands]


@pytest.mark.parametrize(
    "target",
    [
        "model TEXT=a.txt OUT='1 ü' CONFIG='2 ü' VECTORS='3 ü'",
        "tables TIME=15m CORPUS='1 ü' VECTORS='2 ü' SUITE='3 ü' OUT='4 ü'",
        "peers TEXT=a.txt TIME=15m PEER_NAMES=masked_lm SUITE='1 ü' PEERS_OUT='2 ü'",
    ],
    ids=lambda target: target.split()[0],
)
def test_paths_that_make_is_given_may_have_spaces(target: str) -> None:
    of_paths = {word[:3] for words in commands_of_make(target) for word in words if "ü" in word}
    assert of_paths == set(re.findall("[0-9] ü", target))


def test_make_is_given_a_path_in_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada l")
    ((*_, out),) = commands_of_make("model TEXT=a.txt OUT='~/my model'")
    assert out == "/home/ada l/my model"


def test_options_in_the_text_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """An option that a page names is one of the commands that the pages use."""
    words = [own_words(place.text) or [""] for place in COMMANDS]
    used = {tuple(one[: 1 + (one[0] in WITH_SUBCOMMANDS)]) for one in words if one[0]}
    used |= {("downstream", task) for task in TASKS}
    for module, *subcommand in used:
        with pytest.raises(SystemExit):
            main_of(module)([*subcommand, "--help"])
    known = set(re.findall(r"--[a-z][a-z-]*", capsys.readouterr().out))
    spans = [span for page in PAGES for span in code_spans(page) if not span.text.startswith(("torchrun", "pip"))]
    unknown = [
        str(span) for span in spans for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", span.text) if option not in known
    ]
    assert unknown == []


@pytest.mark.parametrize("page", PYTHON_PAGES, ids=name_of)
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page, one after the other, in a folder with two tiny models and a feature file."""
    write_python_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        for table in (LAYOUTS, LAYOUT_NAMES, ENCODERS, OUTPUT_LAYERS):  # pages add to them
            stack.enter_context(mock.patch.dict(table))
        exec(compile(python_code(page), page, "exec"), {"__name__": "__main__"})
