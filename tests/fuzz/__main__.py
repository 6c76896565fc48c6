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
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

ROOM = 1 << 30
"""Bytes that have to be free where files are damaged."""


def parser(readers: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Damage files and read them.")
    parser.add_argument("--cases", type=int, default=300, metavar="N", help="of each reader (default: %(default)s)")
    parser.add_argument("--reader", action="append", choices=readers, metavar="NAME", help=", ".join(readers))
    parser.add_argument("--seed", type=int, default=0, help="of what is random (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes (%(default)s)")
    parser.add_argument("--failures", type=Path, metavar="FILE", help="write the failed cases (JSON lines)")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run the cases of such a file again")
    parser.add_argument("--untested", action="store_true", help="say what no reader damages, and stop")
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
    """A folder with the sample, made now and removed at the end."""
    from tests.fuzz.samples import make_sample

    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="elmoc-fuzz-", dir=folder_in_memory()) as folder:
        pristine = Path(folder).resolve() / "pristine"
        pristine.mkdir()
        os.chdir(pristine)
        with quiet():
            make_sample(pristine)
        yield pristine
        os.chdir(before)


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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; its status is 1 when a case has failed."""
    os.environ |= {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"}  # read when the libraries are imported
    from tests.fuzz.cases import FAILURES, GOOD
    from tests.fuzz.openings import calls, untested
    from tests.fuzz.readers import READERS
    from tests.fuzz.runner import Chunk, check_valid, chunks, run_cases

    options = parser(list(READERS)).parse_args(argv)
    names = options.reader or list(READERS)
    started = time.monotonic()
    with sample() as pristine, contextlib.ExitStack() as stack:
        if options.untested:
            with quiet(), calls() as called:
                check_valid(pristine, list(READERS))
            problems = untested(called, list(READERS.values()), pristine)
            print(*problems, sep="\n", end="\n" if problems else "")
            return int(bool(problems))
        with quiet():
            check_valid(pristine, names)
        prepared = time.monotonic()
        work = list(chunks(names, options.cases, options.seed))
        if options.replay:
            lines = map(json.loads, options.replay.read_text(encoding="utf-8").splitlines())
            work = [Chunk(line["reader"], range(line["number"], line["number"] + 1), line["seed"]) for line in lines]
        files = [stack.enter_context(open(path or os.devnull, "w")) for path in (options.failures, options.outcomes)]
        kinds: Counter[tuple[str, str]] = Counter()
        for outcome in run_cases(work, pristine, options.jobs):
            kinds[outcome.reader, outcome.kind] += 1
            for file, wanted in zip(files, (outcome.kind in FAILURES, True), strict=True):
                if wanted:
                    file.write(json.dumps(asdict(outcome)) + "\n")
            if outcome.kind in FAILURES:
                print(
                    f"{outcome.reader} {outcome.number}: {outcome.kind}, {outcome.mutation}: {outcome.detail[:300]!r}"
                )
    columns = ("cases", *GOOD, *FAILURES)
    print(f"{'reader':28}" + "".join(f"{column:>10}" for column in columns))
    for name in (*dict.fromkeys(name for name, _ in kinds), None):
        row = Counter(
            {
                kind: sum(n for (one, each), n in kinds.items() if each == kind and name in (one, None))
                for kind in columns
            }
        )
        row["cases"] = row.total()
        print(f"{name or 'all':28}" + "".join(f"{row[column]:10,}" for column in columns))
    print(f"sample made in {prepared - started:.1f} s, cases run in {time.monotonic() - prepared:.1f} s")
    return int(any(kind in FAILURES for _, kind in kinds))


if __name__ == "__main__":
    sys.exit(main())
