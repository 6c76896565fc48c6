"""Settings page: docs/settings.md, made from the dataclasses of a run's config.

python -m pretrain.settings_page > docs/settings.md
"""

import inspect
import typing

from elmoc.settings import settings_of
from pretrain.config import KINDS, RunConfig, toml_value

HEAD = """# Settings of a training run

`python -m pretrain CONFIG.toml RUN` reads them from the file; `--set section.key=value` overrides one. What neither
names has its default, which is the paper's. `parent = "other.toml"` in a file begins with the settings of another one.
In `input_layer`, `encoder` and `output_layer`, `kind` chooses which other keys there are.
"""


def page() -> str:
    """The page: a table for each section and kind; what an earlier kind has with the
    same default is only named.
    """
    parts = [HEAD]
    for section, kind in typing.get_type_hints(RunConfig).items():
        before: set[str] = set()
        for name, settings in KINDS.get(section, {"": kind}).items():
            doc, rows = described(settings)
            parts += [
                f"## {section}.kind = {name}\n" if name else f"## {section}\n",
                f"{doc}\n",
            ]
            if new := [row for row in rows if row not in before]:
                parts += ["| key | default | meaning |", "|---|---|---|", *new, ""]
            if same := [
                row.split(" | ")[0].removeprefix("| ") for row in rows if row in before
            ]:
                parts += [f"As above: {', '.join(same)}.\n"]
            before |= set(rows)
    return "\n".join(parts)


def described(kind: type) -> tuple[str, list[str]]:
    """What a dataclass of settings is, and a row for each key with its default and its
    meaning.
    """
    rows = []
    for each in settings_of(kind):
        meaning = each.help
        if not all(choice in meaning for choice in each.choices):
            choices = ", ".join(f"`{choice}`" for choice in each.choices)
            meaning = f"{meaning} ({choices})" if meaning else choices
        rows.append(f"| `{each.name}` | `{toml_value(each.default)}` | {meaning} |")
    doc = inspect.cleandoc(kind.__doc__ or "")
    return doc.split("\n\n")[0].replace("\n", " "), rows


if __name__ == "__main__":
    print(page(), end="")
