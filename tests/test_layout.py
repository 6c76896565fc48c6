"""Do imports run one way, does every file open with its question, and does the distribution hold `elmoc` alone?"""

import ast
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("elmoc", "pretrain", "downstream", "data_scripts", "quickstart")
MAY_IMPORT = {room: {room, "elmoc"} for room in ROOMS}
FILES = [file for room in ROOMS for file in sorted((ROOT / room).rglob("*.py"))]


def imported_rooms(file: Path) -> set[str]:
    """The rooms that a file imports from anywhere in it, also inside functions."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module if node.level == 0 else file.relative_to(ROOT).parts[0])
    return {name.split(".")[0] for name in names} & {*ROOMS, "tests"}


def test_every_room_has_files() -> None:
    assert {file.relative_to(ROOT).parts[0] for file in FILES} == set(ROOMS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_run_one_way(file: Path) -> None:
    assert imported_rooms(file) <= MAY_IMPORT[file.relative_to(ROOT).parts[0]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_file_opens_with_a_sentence(file: Path) -> None:
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    assert docstring is not None
    assert docstring.split("\n\n")[0].strip()[-1] in ".?:!)", "a whole sentence"


def test_the_wheel_holds_elmoc_alone(tmp_path: Path) -> None:
    if find_spec("setuptools") is None:
        pytest.skip("setuptools is not installed, and fetching it needs the network")
    source = tmp_path / "source"  # a build writes into its source tree
    for name in (
        "pyproject.toml",
        "setup.cfg",
        "README.md",
        "LICENSE",
        "elmoc/py.typed",
        "elmoc/kernels/cpu.cpp",
        *(str(file.relative_to(ROOT)) for file in FILES),
    ):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", str(tmp_path), str(source)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.split("/")[0] for name in names}
    assert {name for name in packages if not name.endswith(".dist-info")} == {"elmoc"}
    assert {"elmoc/py.typed", "elmoc/kernels/cpu.cpp", "elmoc/__main__.py"} <= set(names)
    ours = {str(file.relative_to(ROOT)) for file in FILES if file.is_relative_to(ROOT / "elmoc")}
    assert {name for name in names if name.endswith(".py")} == ours
