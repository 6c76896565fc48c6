"""The fuzzer's command: damages files by the thousand, and prints what became of the readers.

python -m tests.fuzz [--cases 300] [--reader NAME …] [--seed 0]    (or: make fuzz CASES=100000 READER=fastText SEED=1)
python -m tests.fuzz --replay failures.jsonl    run the failed cases of an earlier run again
"""

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

ROOM = 1 << 30
"""Bytes that have to be free where files are damaged."""


def parser(readers: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Damage files and read them.")
    parser.add_argument("--cases", type=int, default=300, metavar="N", help="of each reader, or 0 (%(default)s)")
    parser.add_argument("--reader", action="append", choices=readers, metavar="NAME", help=", ".join(readers))
    parser.add_argument("--seed", type=int, default=0, help="of what is random (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (%(default)s)")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write the failed cases (JSON lines)")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run the cases of such a file again")
    parser.add_argument("--untested", type=Path, metavar="FILE", help="write what no reader damages, a line each")
    parser.add_argument("--outcomes", type=Path, metavar="FILE", help="write all cases (JSON lines)")
    return parser


def folder_in_memory() -> Path | None:
    """Where files are written fastest, if there is room and libraries can be loaded from there."""
    memory = Path("/dev/shm")
    if "TMPDIR" in os.environ or not os.access(memory, os.W_OK | os.X_OK):
        return None
    executable = not os.statvfs(memory).f_flag & os.ST_NOEXEC
    return memory if executable and shutil.disk_usage(memory).free > ROOM else None


@contextlib.contextmanager
def sample() -> Iterator[Path]:
    """A folder with the sample, made now and removed at the end; it is the working directory meanwhile."""
    from tests.fuzz.samples import make_sample

    with tempfile.TemporaryDirectory(prefix="elmoc-fuzz-", dir=folder_in_memory()) as folder:
        pristine = Path(folder).resolve() / "pristine"
        pristine.mkdir()
        with contextlib.chdir(pristine):
            with quiet():
                make_sample(pristine)
            yield pristine


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Throw away what is printed, by libraries in other languages too."""
    before = os.dup(1), os.dup(2)
    sys.stdout.flush()
    with open(os.devnull, "w") as nowhere:
        for number in (1, 2):
            os.dup2(nowhere.fileno(), number)
        try:
            yield
        finally:
            sys.stdout.flush()
            for number, kept in zip((1, 2), before, strict=True):
                os.dup2(kept, number)
                os.close(kept)


def table(kinds: Mapping[tuple[str, str], int], columns: Sequence[str]) -> str:
    """How many cases of each reader had which outcome; `kinds` counts them by reader and outcome."""
    names = list(dict.fromkeys(name for name, _ in kinds))
    width = max(len(name) for name in [*names, "reader"])
    lines = [f"{'reader':{width}}" + "".join(f"{column:>10}" for column in ("cases", *columns))]
    for name, shown in [*((name, [name]) for name in names), ("all", names)]:
        counts = [sum(kinds.get((each, column), 0) for each in shown) for column in columns]
        lines.append(f"{name:{width}}" + "".join(f"{count:10,}" for count in (sum(counts), *counts)))
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its status is 1 when a case has failed."""
    os.environ |= {
        "OMP_NUM_THREADS": "1",
        "TQDM_DISABLE": "1",
        "HF_HUB_OFFLINE": "1",
    }  # read when the libraries are imported
    from tests.fuzz.cases import FAILURES, GOOD
    from tests.fuzz.openings import calls, untested
    from tests.fuzz.readers import READERS
    from tests.fuzz.runner import Chunk, check_valid, chunks, run_cases

    options = parser(list(READERS)).parse_args(argv)
    names = options.reader or list(READERS)
    work = chunks(names, options.cases, options.seed)
    if options.replay:
        lines = map(json.loads, options.replay.read_text(encoding="utf-8").splitlines())
        work = iter([Chunk(each["reader"], range(each["number"], each["number"] + 1), each["seed"]) for each in lines])
    kinds: Counter[tuple[str, str]] = Counter()
    started = time.monotonic()
    with contextlib.ExitStack() as stack:
        failures, outcomes, unknown = (
            stack.enter_context(open(path or os.devnull, "w"))
            for path in (options.failures, options.outcomes, options.untested)
        )
        pristine = stack.enter_context(sample())
        with quiet(), calls() if options.untested else contextlib.nullcontext(set()) as called:
            check_valid(pristine, list(READERS) if options.untested else names)
        if options.untested:
            problems = untested(called, list(READERS.values()), pristine)
            unknown.write("".join(f"{problem}\n" for problem in problems))
        for outcome in run_cases(work, pristine, options.jobs):
            kinds[outcome.reader, outcome.kind] += 1
            line = json.dumps(asdict(outcome)) + "\n"
            outcomes.write(line)
            if outcome.kind in FAILURES:
                failures.write(line)
                print(
                    f"{outcome.reader} {outcome.number}: {outcome.kind}, {outcome.mutation}: {outcome.detail[:300]!r}"
                )
    print(table(kinds, (*GOOD, *FAILURES)))
    print(f"{kinds.total():,} cases in {time.monotonic() - started:.0f} s")
    return int(any(kind in FAILURES for _, kind in kinds))


if __name__ == "__main__":
    sys.exit(main())
