"""The layout of the repository: imports run one way without circles, and importing `elmoc` loads nothing heavy."""

import ast
import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("elmoc", "pretrain", "downstream", "data_scripts", "quickstart")
MAY_IMPORT = {room: {room, "elmoc"} for room in ROOMS}
FILES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]


def imported_names(file: Path) -> set[str]:
    """Names, with their modules, that a file imports anywhere: also in functions and under `if TYPE_CHECKING`."""
    package = file.relative_to(ROOT).parts[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def test_rooms_import_only_themselves_and_elmoc() -> None:
    for file in FILES:
        room = file.relative_to(ROOT).parts[0]
        others = {name.split(".")[0] for name in imported_names(file)} & {*ROOMS, "tests", "experiments"}
        assert others <= MAY_IMPORT[room], file


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_imports_itself_by_way_of_others(room: str) -> None:
    files = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
        for file in (ROOT / room).rglob("*.py")
    }
    graph: dict[str, set[str]] = {module: set() for module in files}
    for module, file in files.items():
        for name in imported_names(file):
            while name and name not in files:
                name = name.rpartition(".")[0]  # the module that a class or a function is from
            if name:
                graph[module].add(name)
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle


def test_examples_of_the_pages_import_what_is_there() -> None:
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in re.findall(r"^from (?:elmoc|pretrain|downstream)\b(?!\.interop\.flair).*", block, re.MULTILINE):
                exec(line, {})  # an ImportError quotes it
