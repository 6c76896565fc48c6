"""The pages as programs: their blocks of code, and what these define."""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def example(page: str, name: str) -> dict[str, Any]:
    """What the one block of Python of a page defines that defines the class `name`."""
    [block] = [each for each in blocks(ROOT / page, "python") if f"class {name}(" in each]
    defined: dict[str, Any] = {"__name__": "example"}
    exec(compile(block, page, "exec"), defined)
    return defined
