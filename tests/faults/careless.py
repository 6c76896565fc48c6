"""Careless: a command that does everything wrong, by which the fault tests are tested."""

import time
from pathlib import Path

WRITES = 3


def main(arguments: list[str]) -> int:
    """Write to a file under its final name, without a lock, in several writes; what is already there is replaced."""
    with open(Path(arguments[0]), "w", encoding="utf-8") as file:
        for _ in range(WRITES):
            file.write(f"{arguments[1]}\n")
            file.flush()
            time.sleep(0.01)
    return 0
