"""Settings page: docs/settings.md, made from the dataclasses of a run's config.

python -m pretrain.settings_page > docs/settings.md
"""

import inspect
import re
import typing
from dataclasses import MISSING, fields
from typing import Any

from pretrain.config import KINDS, RunConfig, toml_value

HEAD = """# Settings of a training run

`python -m pretrain CONFIG.toml RUN` reads them from the file; `--set section.key=value` overrides one. What neither
names has its default, which is the paper's. `parent = "other.toml"` in a file begins with the settings of another one.
In `input_layer`, `encoder` and `output_layer`, `kind` chooses which other keys there are.
"""


# "key: meaning" or "key, key: meaning" in a docstring, up to the next one or an empty line
MEANING = re.compile(r"^(\w+(?:, \w+)*): ((?:.+\n?)+?)(?=^\w+(?:, \w+)*: |^$|\Z)", re.MULTILINE)


def page() -> str:
    """The page: a table for each section and kind; what an earlier kind has with the same default is only named."""
    parts = [HEAD]
    for section, kind in typing.get_type_hints(RunConfig).items():
        before: set[str] = set()
        for name, settings in KINDS.get(section, {"": kind}).items():
            doc, rows = described(settings)
            parts += [f"## {section}.kind = {name}\n" if name else f"## {section}\n", f"{doc}\n"]
            if new := [row for row in rows if row not in before]:
                parts += ["| key | default | meaning |", "|---|---|---|", *new, ""]
            if same := [row.split(" | ")[0].removeprefix("| ") for row in rows if row in before]:
                parts += [f"As above: {', '.join(same)}.\n"]
            before |= set(rows)
    return "\n".join(parts)


def described(settings: Any) -> tuple[str, list[str]]:
    """What a dataclass of settings is, and a row for each key with its default and its meaning."""
    said: dict[str, str] = {}
    for each in reversed(settings.__mro__):
        doc = inspect.cleandoc(each.__doc__ or "")
        for keys, meaning in MEANING.findall(doc):
            said |= dict.fromkeys(keys.split(", "), " ".join(meaning.split()))
    rows = []
    for key in fields(settings):
        default = key.default if key.default is not MISSING else key.default_factory()  # type: ignore[operator]
        rows.append(f"| `{key.name}` | `{toml_value(default)}` | {said.get(key.name, '')} |")
    return doc.split("\n\n")[0].replace("\n", " "), rows


if __name__ == "__main__":
    print(page(), end="")
