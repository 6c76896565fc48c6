"""The check of the documentation: every command and Python block of README and docs/, run in order on tiny inputs.

make docs-check        (python -m tests.docs [PAGE…]: those pages alone, and the README before them)

A page's commands are run one after the other in a temporary copy of the checkout, and then its Python. Settings that
take hours are shortened, and a few commands are left out, as `tests/docs/tables.py` says.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.docs.inputs import copy_checkout, environment, write_command_inputs
from tests.docs.pages import README, ROOT, Place, indexed_pages, page_commands, python_code
from tests.docs.tables import FROM_THE_START, NOT_RUN, SHORTENED

TIME_LIMIT = 300  # seconds for one command


def shortened(command: str) -> str:
    """The command as it is run here."""
    for pattern, replacement in SHORTENED.items():
        command = re.sub(pattern, replacement, command)
    return command


def is_run(command: str) -> bool:
    """Whether the command is not one of those that are left out."""
    return not any(command == start or command.startswith(start + " ") for start in NOT_RUN)


def run(place: Place, command: list[str], folder: Path, shown: str) -> None:
    """Run one command of a page in `folder`; exit with its place and what it printed when it fails."""
    started = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment(folder),
            timeout=TIME_LIMIT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired as error:
        status, output = -1, f"{error.output}\n(not finished after {TIME_LIMIT} seconds)"
    print(f"  {time.monotonic() - started:5.1f} s  line {place.line}: {shown}", flush=True)
    if status:
        sys.exit(f"{output}\n{place}\nended with status {status}")


def check_page(page: Path, folder: Path) -> None:
    """Run the commands of a page, and then its Python blocks as one program."""
    for place in page_commands(page):
        if is_run(place.text):
            command = shortened(place.text)
            run(place, ["bash", "-c", command], folder, command)
        else:
            print(f"  not run  line {place.line}: {place.text}")
    code = python_code(page)
    if code:
        run(Place(page, 1, "its Python blocks"), [sys.executable, "-c", code], folder, "(Python)")


def main() -> None:
    """Check the pages that are named, or all."""
    named = [Path(name).resolve() for name in sys.argv[1:]] or indexed_pages()
    with tempfile.TemporaryDirectory() as temporary:
        fresh, after_readme, folder = (Path(temporary) / name for name in ("fresh", "readme", "page"))
        copy_checkout(fresh)
        write_command_inputs(fresh)
        shutil.copytree(fresh, after_readme)
        for page in dict.fromkeys([README, *named]):
            name = str(page.relative_to(ROOT))
            print(name, flush=True)
            if page != README:
                shutil.copytree(fresh if name in FROM_THE_START else after_readme, folder)
            check_page(page, after_readme if page == README else folder)
            shutil.rmtree(folder, ignore_errors=True)
    print("every command ran")


if __name__ == "__main__":
    main()
