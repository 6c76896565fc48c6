"""The layout of the repository: imports run one way, folders are small, files say what they are; and the wheel."""

import ast
import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from elmoc import ElmoC, FeatureFile
from elmoc.version import VERSION

ROOT = Path(__file__).parent.parent
ROOMS = ("elmoc", "pretrain", "downstream", "data_scripts", "quickstart")
FILES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]
OF_ALL_ROOMS = ("faults", "fuzz")
"""Folders of tests that look at all rooms."""
FIXTURES = ("elmoc/interop/data",)
"""Folders of files that tests read, made by other tools."""
MOST_ENTRIES = 14
"""The most files (beside `__init__.py`) and the most folders that a folder may hold."""
OFFLINE = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")
"""Options with which pip needs no network."""

Graph = dict[str, set[str]]


def imported_names(file: Path, root: Path) -> set[str]:
    """Names with their modules that a file imports anywhere, also in functions, but not under `if TYPE_CHECKING`."""
    package = file.relative_to(root).parts[:-1]
    names: set[str] = set()
    nodes: list[ast.AST] = [ast.parse(file.read_text(encoding="utf-8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).split(".")[-1] == "TYPE_CHECKING":
            nodes += node.orelse
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            module = ".".join([*above, *([node.module] if node.module else [])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
        nodes += ast.iter_child_nodes(node)
    return names


def imported_rooms(file: Path, root: Path, rooms: Iterable[str]) -> set[str]:
    """The rooms, or `tests`, that a file imports from."""
    return {name.split(".")[0] for name in imported_names(file, root)} & {*rooms, "tests"}


def module_graph(room: str, root: Path) -> Graph:
    """Module → the modules of the room that it imports; a package stands for its `__init__.py`."""
    files = {
        ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file
        for file in (root / room).rglob("*.py")
    }
    graph: Graph = {module: set() for module in files}
    for module, file in files.items():
        for name in imported_names(file, root):
            while name and name not in files:
                name = name.rpartition(".")[0]  # the module that a class or a function is from
            if name:
                graph[module].add(name)
    return graph


def folder_graph(graph: Graph) -> Graph:
    """Folder → the folders that its files import from; files at the top of a room stand for themselves."""
    packages = {module.rpartition(".")[0] for module in graph}

    def place(module: str) -> str:
        return module if module in packages or module.count(".") == 1 else module.rpartition(".")[0]

    folders: Graph = {}
    for module, imported in graph.items():
        folders.setdefault(place(module), set()).update(map(place, imported))
    return {folder: imported - {folder} for folder, imported in folders.items()}


def circle(graph: Graph) -> str | None:
    """One circle of imports, as `a → b → a` where a imports b; None where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " → ".join(reversed(error.args[1]))
    return None


def docstring(file: Path) -> str:
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""


def folders(room: Path) -> list[Path]:
    """The folders of a room that hold files, the room itself included."""
    return sorted({file.parent for file in room.rglob("*") if file.is_file() and "__pycache__" not in file.parts})


def test_every_room_has_files() -> None:
    assert {file.relative_to(ROOT).parts[0] for file in FILES} == set(ROOMS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_rooms_import_only_themselves_and_elmoc(file: Path) -> None:
    room = file.relative_to(ROOT).parts[0]
    others = imported_rooms(file, ROOT, ROOMS) - {room, "elmoc"}
    assert not others, f"{file.relative_to(ROOT)} imports from {', '.join(others)}: {room} may import elmoc and itself"


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_imports_itself_by_way_of_others(room: str) -> None:
    found = circle(module_graph(room, ROOT))
    assert found is None, f"modules of {room} import each other in a circle: {found}"


@pytest.mark.parametrize("room", ROOMS)
def test_no_folder_imports_itself_by_way_of_others(room: str) -> None:
    found = circle(folder_graph(module_graph(room, ROOT)))
    assert found is None, f"folders of {room} import each other in a circle: {found}"


def made_up(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_a_circle_of_modules_is_found_also_in_functions_and_relative_imports(tmp_path: Path) -> None:
    files = {
        "house/__init__.py": "",
        "house/top.py": "from house.cellar.wine import RED",
        "house/cellar/__init__.py": "",
        "house/cellar/wine.py": "def pour():\n    from . import glass",
        "house/cellar/glass.py": "from ..attic import light, window",
        "house/attic/__init__.py": "light = 1",
        "house/attic/window.py": "import house.cellar.wine as wine",
    }
    graph = module_graph("house", made_up(tmp_path, files))
    assert graph["house.cellar.glass"] == {"house.attic", "house.attic.window"}
    assert set((circle(graph) or "").split(" → ")) == {"house.cellar.wine", "house.cellar.glass", "house.attic.window"}
    only_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import house.cellar.wine\n"
    made_up(tmp_path, {"house/attic/window.py": only_types})
    assert circle(module_graph("house", tmp_path)) is None
    made_up(tmp_path, {"house/attic/window.py": only_types + "else:\n    import house.cellar.wine\n"})
    assert circle(module_graph("house", tmp_path)) is not None


def test_a_circle_of_folders_is_found_where_no_modules_make_one(tmp_path: Path) -> None:
    files = {
        "house/__init__.py": "",
        "house/top.py": "from house.attic import window",
        "house/other.py": "import house.top",
        "house/cellar/wine.py": "import house.attic.light",
        "house/attic/window.py": "import house.cellar.wine",
        "house/attic/light.py": "",
    }
    graph = module_graph("house", made_up(tmp_path, files))
    assert circle(graph) is None
    assert circle(folder_graph(graph)) in (
        "house.cellar → house.attic → house.cellar",
        "house.attic → house.cellar → house.attic",
    )
    made_up(tmp_path, {"house/cellar/wine.py": ""})
    graph = folder_graph(module_graph("house", tmp_path))
    assert circle(graph) is None
    assert graph["house.other"] == {"house.top"}, "each file at the top is a place of its own"


def test_imports_of_other_rooms_and_of_tests_are_found(tmp_path: Path) -> None:
    made_up(tmp_path, {"house/a.py": "def f():\n    import garden.tree\n    from tests import tiny\nimport os"})
    assert imported_rooms(tmp_path / "house/a.py", tmp_path, ["house", "garden"]) == {"garden", "tests"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_file_opens_with_a_sentence(file: Path) -> None:
    assert docstring(file).split("\n\n")[0].strip()[-1:] in list(".?:!)"), "a whole sentence"


@pytest.mark.parametrize("room", [*ROOMS, "tests"])
def test_folders_are_small(room: str) -> None:
    held = folders(ROOT / room)
    for folder in held:
        files = sum(path.is_file() and path.name != "__init__.py" for path in folder.iterdir())
        inner = sum(other.parent == folder for other in held)
        said = f"{folder.relative_to(ROOT)} holds {files} files and {inner} folders"
        assert max(files, inner) <= MOST_ENTRIES, f"{said}: more than {MOST_ENTRIES} of a kind, divide it"


def test_tests_mirror_the_tree() -> None:
    of_tests = [folder.relative_to(ROOT / "tests") for folder in folders(ROOT / "tests")]
    of_rooms = [folder for folder in of_tests if folder.parts[:1] not in [(name,) for name in OF_ALL_ROOMS]]
    of_code = [folder for folder in of_rooms if not folder.as_posix().startswith(FIXTURES)]
    lonely = [str(folder) for folder in of_code if not (ROOT / folder).is_dir()]
    assert not lonely, f"folders of tests without a counterpart: {', '.join(lonely)}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the project, built from a copy of the sources."""
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed, and fetching it needs the network")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a build writes into its source tree
    for room in ROOMS:
        shutil.copytree(ROOT / room, source / room, ignore=shutil.ignore_patterns("__pycache__", "*.gz"))
    for name in ("pyproject.toml", "setup.cfg", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, source / name)
    run_outside(folder, sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation", source)
    (built,) = folder.glob("*.whl")
    return built


def run_outside(folder: Path, *command: object) -> str:
    """What a command prints that is run in a folder outside the checkout, without variables that lead back to it."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    line = list(map(str, command))
    return subprocess.run(line, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True, check=True).stdout


def test_the_wheel_holds_elmoc_alone(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = {file for folder in folders(ROOT / "elmoc") for file in folder.iterdir() if file.is_file()}
    assert names == {file.relative_to(ROOT).as_posix() for file in files}
    assert {"elmoc/py.typed", "elmoc/kernels/cpu.cpp", "elmoc/__main__.py"} <= names
    assert {"elmoc/kernels/inference.cpp", "elmoc/kernels/inference_products.h"} <= names


def test_the_wheel_dumps_features_in_an_environment_without_the_checkout(
    wheel: Path, model_path: Path, tmp_path: Path
) -> None:
    environment, empty = tmp_path / "environment", tmp_path / "empty"
    empty.mkdir()
    venv.create(environment, symlinks=True)
    run_outside(empty, sys.executable, "-m", "pip", "--python", environment / "bin/python", "install", *OFFLINE, wheel)
    # the dependencies are those of these tests; hooks in their folders (of an editable install) are not run from here
    (packages,) = environment.rglob("site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")

    def run(command: str, *arguments: object) -> str:
        return run_outside(empty, environment / "bin" / command, *arguments)

    assert run("elmoc", "--version") == f"elmoc {VERSION}\n"
    found = (
        "import elmoc; from elmoc.kernels.cpu import SOURCE; print(elmoc.__file__, SOURCE, SOURCE.exists(), sep='|')"
    )
    package, source, exists = run("python", "-c", found).strip().split("|")
    assert Path(package).is_relative_to(environment)
    assert Path(source).is_relative_to(environment)
    assert exists == "True"
    assert (packages / "elmoc/py.typed").exists()
    sentences = [["The", "cat", "sat", "."], ["w3"]]
    text = "\n".join(" ".join(words) for words in sentences)
    (empty / "sentences.txt").write_text(text + "\n", encoding="utf-8")
    run("elmoc", "dump-features", model_path, "sentences.txt", "features.h5", "--precision", "float32")
    with FeatureFile(empty / "features.h5") as features:
        assert len(features) == 2
        for index, states in enumerate(ElmoC.from_pretrained(model_path).embed_batch(sentences)):
            np.testing.assert_allclose(features[index], states.numpy(), atol=1e-6)
