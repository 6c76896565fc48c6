"""The table of files in docs/probes.md, made from the formats of the tasks.

python -m downstream.formats_page docs/probes.md
"""

import re
import sys
from pathlib import Path

from downstream.readers.formats import Format
from downstream.tasks import TASKS, load_task

# Lines of an example that the page shows.
SHOWN = 3

HEAD = "| task | file | first three lines (⇥ is a tab) |\n|---|---|---|\n"


def page(text: str) -> str:
    """The page with the table as the tasks have it now."""
    rows = [
        f"| `{name}` | {_named(each)} | {_shown(each.example)} |\n"
        for name in TASKS
        for each in load_task(name).formats
    ]
    old = re.escape(HEAD) + r"(\|.*\n)*"
    table = HEAD + "".join(rows)
    return re.sub(old, lambda _: table, text)


def _named(form: Format) -> str:
    """The name of a format, and the options that it needs."""
    options = [
        f"`--{key.replace('_', '-')} {value}`" for key, value in form.options.items()
    ]
    return ": ".join([form.name, *options])


def _shown(example: str) -> str:
    """The first lines of a file in a cell of Markdown."""
    lines = example.replace("\t", "⇥").replace("|", "\\|").splitlines()[:SHOWN]
    return "<br>".join(f"`{line}`" for line in lines)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
