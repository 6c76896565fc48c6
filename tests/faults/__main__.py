"""The faults of all commands, or of those that are named: `python -m tests.faults [--calls N] [COMMAND…]`."""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.commands import COMMANDS, Command
from tests.faults.faults import Bench, numbers

WRITERS = 6
"""Calls at most at which a second writer starts: each takes long."""


def survived(what: str, check: Callable[[Command, int], list[str]], command: Command, calls: list[int]) -> str:
    """Check a command at calls, print what is wrong, and say how many it survived."""
    good = 0
    for at in calls:
        problems = check(command, at)
        good += not problems
        for problem in problems:
            print(f"    {command.name}, {what} at call {at}: {problem}", flush=True)
    return f"{good}/{len(calls)}"


def check(bench: Bench, command: Command, most: int) -> list[str]:
    """The row of the table of a command; at most so many calls are tried."""
    started = time.monotonic()
    calls = bench.undisturbed(command).calls
    checks = (
        ("killed", bench.kill, calls.changes, most),
        ("worker killed", bench.kill_worker, calls.of_workers, most),
        ("interrupted", bench.interrupt, calls.changes, most),
        ("full disk", bench.fill_disk, calls.growths, most),
        ("read-only", bench.read_only, 1, 1),
        ("two writers", bench.write_twice, calls.changes if command.second else 0, min(most, WRITERS)),
    )
    row = [command.name, str(calls.changes)]
    for seed, (what, fault, total, tried) in enumerate(checks):
        row.append(survived(what, fault, command, numbers(total, tried, seed)))
    return [*row, f"{time.monotonic() - started:.0f} s"]


def main() -> None:
    """Check the commands that are named, or all, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=", ".join(each.name for each in COMMANDS))
    parser.add_argument("--calls", type=int, default=10_000, metavar="N", help="at most so many calls of each command")
    arguments = parser.parse_args()
    chosen = [command for command in COMMANDS if not arguments.commands or command.name in arguments.commands]
    rows = [["command", "calls", "killed", "worker killed", "Ctrl-C", "full disk", "read-only", "two writers", "time"]]
    with tempfile.TemporaryDirectory() as temporary:
        bench = Bench(Path(temporary))
        for command in chosen:
            rows.append(check(bench, command, arguments.calls))
            print(" | ".join(rows[-1]), flush=True)
        bench.close()
    print("\nsurvived / tried:")
    for row in rows:
        print(" | ".join(row))


if __name__ == "__main__":
    main()
