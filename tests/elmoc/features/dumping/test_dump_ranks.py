"""Dumps by several processes: one file that readers cannot tell from that of one; who dies loses his part alone."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmoc import ElmoC, FeatureFile
from elmoc.__main__ import main
from elmoc.features.dumping.ranks import Ranks
from tests.elmoc.features.dumping.test_dump_inputs import jsonlines

Fails = Callable[[int], str]
LINES = [" ".join(f"w{(line * word) % 13}" for word in range(1, 2 + line % 7)) for line in range(40)]
TWO_PROCESSES = """
import json, os, sys
from elmoc.__main__ import main

pids = []
for rank in ("0", "1"):
    pids.append(os.fork())
    if not pids[-1]:
        os.environ.update(RANK=rank, WORLD_SIZE="2")
        sys.exit(main(json.loads(sys.argv[1])))
sys.exit(any([os.waitpid(pid, 0)[1] for pid in pids]))
"""
EXACT = ("--precision", "float32", "--batch-words", "1")
"""One sentence at a time: the numbers are then the same in every share."""


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


@pytest.fixture
def as_rank(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run `elmoc dump-features` as a rank of several processes."""

    def run(rank: int, world_size: int, *arguments: object) -> int:
        with monkeypatch.context() as patch:
            patch.setenv("RANK", str(rank))
            patch.setenv("WORLD_SIZE", str(world_size))
            return main(["dump-features", *map(str, arguments), *EXACT])

    return run


def assert_same(path: Path, expected: Path) -> None:
    """Through our reader, and through plain h5py."""
    with FeatureFile(path) as ours, FeatureFile(expected) as theirs:
        assert len(ours) == len(theirs)
        for array, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(array, other, atol=1e-6)
    with h5py.File(path) as ours, h5py.File(expected) as theirs:
        assert list(ours) == list(theirs)
        for name in theirs:
            if isinstance(theirs[name], h5py.Group):
                assert len(list(ours[name])) == len(list(theirs[name]))
            elif theirs[name].dtype.kind == "f":
                np.testing.assert_allclose(ours[name][()], theirs[name][()], atol=1e-6)
            else:
                np.testing.assert_array_equal(ours[name][()], theirs[name][()])


@pytest.mark.parametrize(
    ("layout", "world_size", "options"),
    [
        ("allennlp", 3, []),
        ("bilm", 2, ["--merge"]),
        ("flat", 2, ["--top"]),
        ("flat", 2, ["--merge"]),
        ("e2e-coref", 2, []),
    ],
)
def test_ranks_make_the_file_of_one_process(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    as_rank: Callable[..., int],
    layout: str,
    world_size: int,
    options: list[str],
) -> None:
    if layout == "e2e-coref":
        documents = {f"a/{start}": [line.split() for line in LINES[start : start + 5]] for start in range(0, 40, 5)}
        sentences = jsonlines(tmp_path / "in.jsonl", documents)
    options = ["--format", layout, *options]
    alone, output = tmp_path / "alone.h5", tmp_path / "f.h5"
    assert as_rank(0, 1, model_path, sentences, alone, *options) == 0
    for rank in reversed(range(world_size)):
        assert not output.exists()
        assert as_rank(rank, world_size, model_path, sentences, output, *options) == 0
    assert_same(output, alone)
    assert (tmp_path / "f.h5.parts").exists() is ("--merge" not in options)


def test_a_finished_dump_with_links_is_merged_when_it_is_removed(
    model_path: Path, sentences: Path, tmp_path: Path, as_rank: Callable[..., int], error_line: Fails
) -> None:
    output = tmp_path / "f.h5"
    for rank in range(2):
        assert as_rank(rank, 2, model_path, sentences, output) == 0
    again = (model_path, sentences, output, "--resume", "--merge")
    assert "is finished, and links to its parts: remove it, but not" in error_line(as_rank(0, 2, *again))
    output.unlink()
    assert as_rank(0, 2, *again) == 0
    assert output.exists()
    assert not (tmp_path / "f.h5.parts").exists()


def test_a_rank_that_dies_loses_its_part_alone(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    as_rank: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error_line: Fails,
) -> None:
    alone, output = tmp_path / "alone.h5", tmp_path / "f.h5"
    assert as_rank(0, 1, model_path, sentences, alone) == 0
    assert as_rank(0, 2, model_path, sentences, output) == 0
    assert "the process that ends last joins the parts" in capsys.readouterr().out
    with monkeypatch.context() as patch:
        patch.setattr(ElmoC, "embed_rows", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
        assert "memory ran out" in error_line(as_rank(1, 2, model_path, sentences, output))
    part = tmp_path / "f.h5.parts/rank-0-of-2.h5"
    kept = part.stat().st_ino, part.stat().st_mtime_ns
    assert "rank-0-of-2.h5 exists already" in error_line(as_rank(0, 2, model_path, sentences, output))
    assert "by another number of processes" in error_line(as_rank(0, 3, model_path, sentences, output, "--resume"))
    assert "of another dump" in error_line(as_rank(0, 2, model_path, sentences, output, "--resume", "--top"))
    for rank in (0, 1):
        assert as_rank(rank, 2, model_path, sentences, output, "--resume") == 0
    assert (part.stat().st_ino, part.stat().st_mtime_ns) == kept
    assert_same(output, alone)
    capsys.readouterr()
    assert as_rank(1, 2, model_path, sentences, output, "--resume") == 0
    assert f"{output} is finished already" in capsys.readouterr().out


def test_what_another_number_of_processes_has_not_finished_is_not_passed_over(
    model_path: Path, sentences: Path, tmp_path: Path, as_rank: Callable[..., int], error_line: Fails
) -> None:
    """To begin anew beside hours of work would lose them without a word."""
    dump = (model_path, sentences, tmp_path / "f.h5", "--resume")
    unfinished = tmp_path / "f.h5.parts/.rank-1-of-2.h5.unfinished"
    unfinished.mkdir(parents=True)
    (unfinished / "progress.json").touch()
    for world_size in (1, 3):
        error = error_line(as_rank(0, world_size, *dump))
        assert "f.h5.parts has parts of a dump by another number of processes (rank-1-of-2.h5): go on with" in error
    (unfinished / "progress.json").unlink()
    unfinished.rename(tmp_path / ".f.h5.unfinished")
    (tmp_path / ".f.h5.unfinished/progress.json").touch()
    assert "f.h5 was begun by a command that did not end: give that command" in error_line(as_rank(0, 2, *dump))
    (tmp_path / ".f.h5.unfinished/progress.json").unlink()
    assert as_rank(0, 2, *dump) == 0, "there is nothing to go on with"


@pytest.mark.parametrize(
    ("rank", "world_size", "message"),
    [
        ("2", "2", "RANK is 2, but must be less than WORLD_SIZE"),
        ("x", "2", "RANK and WORLD_SIZE must be whole numbers"),
    ],
)
def test_ranks_that_cannot_be(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    error_line: Fails,
    monkeypatch: pytest.MonkeyPatch,
    rank: str,
    world_size: str,
    message: str,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", world_size)
    assert Ranks.from_environment() == Ranks(0, 1), "of a launcher that sets one of the two alone"
    monkeypatch.setenv("RANK", rank)
    assert message in error_line(main(["dump-features", str(model_path), str(sentences), str(tmp_path / "f.h5")]))


def test_what_cannot_be_shared(
    model_path: Path, sentences: Path, tmp_path: Path, as_rank: Callable[..., int], error_line: Fails
) -> None:
    error = error_line(as_rank(1, 41, model_path, sentences, tmp_path / "f.h5"))
    assert "cannot be shared among 41 processes" in error
    error = error_line(as_rank(0, 2, model_path, sentences, tmp_path / "f.h5", "--carry-state"))
    assert "cannot be shared among 2 processes, whole documents each" in error
    assert "cannot share standard input" in error_line(as_rank(0, 2, model_path, "-", tmp_path / "f.h5"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "model"]


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)


def test_two_processes_at_once(model_path: Path, sentences: Path, tmp_path: Path, as_rank: Callable[..., int]) -> None:
    alone, output = tmp_path / "alone.h5", tmp_path / "f.h5"
    assert as_rank(0, 1, model_path, sentences, alone) == 0
    line = ["dump-features", str(model_path), str(sentences), str(output), *EXACT]
    done = run_python("-c", TWO_PROCESSES, json.dumps(line))
    assert done.returncode == 0, done.stderr
    assert f"{output} is finished" in done.stdout
    assert_same(output, alone)


@pytest.mark.slow
def test_torchrun(model_path: Path, sentences: Path, tmp_path: Path, as_rank: Callable[..., int]) -> None:
    alone, output = tmp_path / "alone.h5", tmp_path / "f.h5"
    assert as_rank(0, 1, model_path, sentences, alone) == 0
    line = ["-m", "elmoc", "dump-features", str(model_path), str(sentences), str(output), *EXACT]
    done = run_python("-m", "torch.distributed.run", "--nproc-per-node", "2", *line)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("100%") <= 1, "one of them shows its progress"
    assert_same(output, alone)
