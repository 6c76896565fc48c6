"""`--help` of every script in experiments/ prints its docstring, without what it imports."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [path.relative_to(ROOT) for path in sorted(ROOT.glob("experiments/**/*.py"))]


@pytest.mark.parametrize("script", SCRIPTS, ids=str)
def test_help_is_the_docstring(script: Path) -> None:
    module = ".".join(script.with_suffix("").parts)
    # -S: without the packages that are installed.
    command = [sys.executable, "-S", "-m", module, "--help"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    assert printed.strip() == ast.get_docstring(ast.parse((ROOT / script).read_text()))
