"""The faults of all commands, or of those that are named: `python -m tests.faults [--calls N] [COMMAND…]`."""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.commands import COMMANDS, Command
from tests.faults.faults import Bench, numbers

WRITERS = 6
"""Calls at which a second writer starts."""


def survived(what: str, check: Callable[[Command, int], list[str]], command: Command, calls: list[int]) -> str:
    """Check a command at calls, print what is wrong, and say how many it survived."""
    good = 0
    for at in calls:
        problems = check(command, at)
        good += not problems
        for problem in problems:
            print(f"    {command.name}, {what} at call {at}: {problem}", flush=True)
    return f"{good}/{len(calls)}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("commands", nargs="*", help=f"of {', '.join(command.name for command in COMMANDS)}")
    parser.add_argument("--calls", type=int, default=10_000, help="at most so many calls of each command")
    arguments = parser.parse_args()
    chosen = [command for command in COMMANDS if not arguments.commands or command.name in arguments.commands]
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(Path(temporary))
        for command in chosen:
            started = time.monotonic()
            undisturbed = bench.undisturbed(command)
            kills = list(numbers(undisturbed.changes, arguments.calls, 1))
            interrupts = list(numbers(undisturbed.changes, arguments.calls, 4))
            fillings = list(numbers(undisturbed.growths, arguments.calls, 2))
            pauses = list(numbers(undisturbed.changes, min(WRITERS, arguments.calls), 3)) if command.second else []
            row = [
                command.name,
                str(undisturbed.changes),
                survived("killed", bench.kill, command, kills),
                survived("interrupted", bench.interrupt, command, interrupts),
                survived("full disk", bench.fill_disk, command, fillings),
                survived("read-only", lambda each, _: bench.read_only(each), command, [1]),
                survived("two writers", bench.write_twice, command, pauses),
                f"{time.monotonic() - started:.0f} s",
            ]
            rows.append(row)
            print(" | ".join(row), flush=True)
        bench.close()
    print("\ncommand | calls | kills survived | Ctrl-C | full disks | read-only | two writers | time")
    print("\n".join(" | ".join(row) for row in rows))


if __name__ == "__main__":
    main()
