"""Settings page: docs/settings.md, made from the dataclasses of a run's config.

python -m docs.settings > docs/settings.md
"""

import inspect
import json
import typing

from elmoc.settings import settings_of
from pretrain.config import KINDS, RunConfig

HEAD = """# Settings of a training run

`python -m pretrain CONFIG.toml RUN` reads them from the file, and
`--set section.key=value` overrides one of them. In Python they are the fields of
`pretrain.RunConfig`. A setting that is not given has its default.
`parent = "other.toml"` in a file begins with the settings of another file. In
`input_layer`, `encoder`, `output_layer` and `optimiser`, `kind` chooses which other
keys there are.
"""


def page() -> str:
    """The page: a table for each section and kind. Keys that an earlier kind of the
    section has with the same default are only named.
    """
    parts = [HEAD]
    for section, kind in typing.get_type_hints(RunConfig).items():
        before: set[str] = set()
        for name, settings in KINDS.get(section, {"": kind}).items():
            title = f"{section}.kind = {name}" if name else section
            doc = inspect.cleandoc(settings.__doc__ or "").partition("\n\n")[0]
            parts += [f"## {title}\n", doc.replace("\n", " ") + "\n"]
            rows = rows_of(settings)
            new = [row for key, row in rows.items() if row not in before]
            # Kinds of a section share many keys, which would be repeated.
            same = [f"`{key}`" for key, row in rows.items() if row in before]
            if new:
                parts += ["| key | default | meaning |", "|---|---|---|", *new, ""]
            if same:
                parts.append(f"As above: {', '.join(same)}.\n")
            before.update(rows.values())
    return "\n".join(parts)


def rows_of(kind: type) -> dict[str, str]:
    """A row of the table for each key of a dataclass: its default and its meaning."""
    rows = {}
    for each in settings_of(kind):
        default = json.dumps(each.default)
        rows[each.name] = f"| `{each.name}` | `{default}` | {each.help} |"
    return rows


if __name__ == "__main__":
    print(page(), end="")
