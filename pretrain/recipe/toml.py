"""TOML: settings written as a config file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmoc.files.writing import atomic_path


def write_toml(path: Path, sections: Mapping[str, Mapping[str, Any]]) -> None:
    """Write settings by section; a value that is a dictionary is a section of its own."""
    lines: list[str] = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        lines += [f"{name} = {_shown(each)}" for name, each in values.items() if not isinstance(each, Mapping)]
        for name, inner in values.items():
            if isinstance(inner, Mapping) and inner:
                lines += [f"\n[{section}.{name}]", *(f"{key} = {_shown(each)}" for key, each in inner.items())]
        lines.append("")
    with atomic_path(path) as partial:
        partial.write_text("\n".join(lines), encoding="utf-8")


def _shown(value: Any) -> str:
    """A value as TOML has it, which is as JSON has it but for one control character in strings."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
