"""Unfinished feature files: gone on with after a kill at any moment, they become what they would have been."""

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import h5py
import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.features import writer as writer_module
from elmoc.features.layouts import flat
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import write_features

LAYOUTS: dict[str, dict[str, Any]] = {
    "allennlp": {"layout": "allennlp"},
    "sentence keys": {"layout": "allennlp", "sentence_keys": True},
    "bilm": {"layout": "bilm"},
    "e2e-coref": {"layout": "e2e-coref"},
    "flat": {"layout": "flat"},
    "flat, words known": {"layout": "flat"},
    "flat, compressed": {"layout": "flat", "compress": True},
    "compressed": {"layout": "allennlp", "compress": True},
}
SENTENCES = [
    Sentence([f"w{word}" for word in range(1 + index % 7)], document=f"bc/{index // 6}") for index in range(40)
]
ATTRIBUTES = {"model": "m", "layers": ["0", "1"], "width": np.arange(3), "command_line": "elmoc dump-features"}


def options_of(name: str) -> dict[str, Any]:
    words = sum(len(sentence.tokens) for sentence in SENTENCES) if name.endswith("known") else None
    return {**LAYOUTS[name], "shape": FeatureShape(layers=2, width=4, dtype="float32", single=False, words=words)}


def states_of(index: int) -> np.ndarray:
    words = len(SENTENCES[index].tokens)
    return np.random.default_rng(index).standard_normal((2, words, 4)).astype(np.float32)


def write(path: Path, every: int = 7, **options: Any) -> int:
    """Write all sentences, one of them in pieces, with a checkpoint every few; how many of them were there already."""
    with write_features(path, ATTRIBUTES, **options) as writer:
        left = writer.sentences
        for index in range(left, len(SENTENCES)):
            states = states_of(index)
            if index % 5 == 0:
                slab = writer.start(SENTENCES[index])
                slab.put(0, states.shape[1], slice(2, 4), states[..., 2:])
                slab.put(0, states.shape[1], slice(0, 2), states[..., :2])
            else:
                writer.add(SENTENCES[index], states)
            if index % every == every - 1:
                writer.checkpoint()
    return left


def contents(path: Path) -> dict[str, Any]:
    """All that is in an HDF5 file."""
    found: dict[str, Any] = {}
    with h5py.File(path) as file:
        found["attributes"] = {name: np.asarray(value).tolist() for name, value in file.attrs.items()}
        found["names"] = list(file)

        def visit(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                values = item[0] if item.dtype == "O" else item[()].tobytes()
                found[name] = (item.shape, str(item.dtype), item.chunks, values)

        file.visititems(visit)
    return found


class Kill:
    """Ends the process at the n-th call that changes anything on the disk: before it, or after a part of it."""

    def __init__(self, at: int) -> None:
        self.calls, self.at = 0, at

    def __call__(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                os._exit(9)
            return original(*arguments, **named)

        return call

    def patches(self) -> Iterator[Any]:
        for name in ("pwrite", "fsync", "replace", "truncate", "mkdir", "unlink", "rmdir"):
            yield patch.object(os, name, self(getattr(os, name)))

        class Killed(io.FileIO):
            write = self(io.FileIO.write)  # type: ignore[assignment]
            truncate = self(io.FileIO.truncate)  # type: ignore[assignment]

        from elmoc.features.writer import DiskFile

        yield patch("elmoc.features.writer.DiskFile", type("DiskFile", (DiskFile, Killed), {}))


def write_killed(path: Path, at: int, **options: Any) -> bool:
    """Write in a process of its own, that is killed at a call; whether it was."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            kill = Kill(at)
            for each in kill.patches():
                each.start()
            write(path, **options)
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status in (0, 9)
    return status == 9


@pytest.fixture(autouse=True)
def small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks are small; waiting for the disk is left out, which changes nothing for a process that is killed."""
    monkeypatch.setattr(flat, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(flat, "CHUNK_BYTES", 1 << 9)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def check_kills(folder: Path, name: str, calls: Iterator[int]) -> set[int]:
    """Kill a writer at some of its calls, and go on; how many sentences were left each time."""
    options = options_of(name)
    assert write(folder / "whole.h5", every=1000, **options) == 0
    expected = contents(folder / "whole.h5")
    left = set()
    for at in calls:
        path = folder / f"{at}.h5"
        if not write_killed(path, at, **options):
            break
        if not path.exists():
            left.add(write(path, resume=True, **options))
        assert contents(path) == expected, at
        path.unlink()
    return left


@pytest.mark.parametrize("name", LAYOUTS)
def test_killed_at_some_moments(tmp_path: Path, name: str) -> None:
    left = check_kills(tmp_path, name, iter(range(5, 1000, 53)))
    assert 0 in left
    assert len(left) > 2


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_killed_at_any_moment(tmp_path: Path, name: str) -> None:
    assert check_kills(tmp_path, name, count(1)) == {0, 7, 14, 21, 28, 35, 40}


def test_killed_with_the_signal(tmp_path: Path) -> None:
    path = tmp_path / "killed.h5"
    code = """
import sys, time
from pathlib import Path
from elmoc.features.writer import write_features
from tests.elmoc.features.unfinished import test_resume as test
path, options = Path(sys.argv[1]), test.options_of("allennlp")
with write_features(path, test.ATTRIBUTES, **options) as writer:
    for index in range(20):
        writer.add(test.SENTENCES[index], test.states_of(index))
        if index == 11:
            writer.checkpoint()
    print("written", flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not path.exists()
    assert write(path, resume=True, **options_of("allennlp")) == 12
    write(tmp_path / "whole.h5", **options_of("allennlp"))
    assert contents(path) == contents(tmp_path / "whole.h5")
    assert {each.name for each in tmp_path.iterdir()} == {"killed.h5", "whole.h5"}


def left_unfinished(path: Path, **options: Any) -> None:
    """What a writer leaves that stops after a checkpoint."""
    with suppress(RuntimeError), write_features(path, ATTRIBUTES, **options) as writer:
        for index in range(10):
            writer.add(SENTENCES[index], states_of(index))
            if index in (3, 7):
                writer.checkpoint()
        raise RuntimeError("stop")


def test_a_failure_leaves_what_a_kill_leaves(tmp_path: Path) -> None:
    path, options = tmp_path / "f.h5", options_of("flat")
    left_unfinished(path, **options)
    assert [each.name for each in tmp_path.iterdir()] == [".f.h5.unfinished"]
    assert write(path, resume=True, **options) == 8
    write(tmp_path / "whole.h5", **options)
    assert contents(path) == contents(tmp_path / "whole.h5")


def test_without_resume_what_is_left_stays(tmp_path: Path) -> None:
    path, options = tmp_path / "f.h5", options_of("bilm")
    left_unfinished(path, **options)
    folder = tmp_path / ".f.h5.unfinished"
    with pytest.raises(
        InputError,
        match=rf"f.h5 was begun .* --resume \(in Python resume=True\) to go on, or remove {folder} to begin anew",
    ):
        write(path, **options)
    assert write(path, resume=True, **options) == 8, "it is still there"
    path.unlink()
    left_unfinished(path, **options)
    shutil.rmtree(folder)
    assert write(path, **options) == 0
    assert [each.name for each in tmp_path.iterdir()] == ["f.h5"]


def test_where_nothing_is_left_it_begins(tmp_path: Path) -> None:
    assert write(tmp_path / "f.h5", resume=True, **options_of("bilm")) == 0


def test_a_finished_file_is_not_resumed(tmp_path: Path) -> None:
    write(tmp_path / "f.h5", **options_of("bilm"))
    with pytest.raises(InputError, match=r"f\.h5 is finished already: there is nothing to resume"):
        write(tmp_path / "f.h5", resume=True, **options_of("bilm"))


SHAPE = FeatureShape(layers=2, width=4, dtype="float16", single=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"attributes": {**ATTRIBUTES, "model": "other"}}, 'begun with model "m", and .* with model "other"'),
        ({"attributes": {**ATTRIBUTES, "more": 1}}, "begun with more nothing, and .* with more 1"),
        ({"layout": "flat"}, 'begun with layout "bilm", and .* with layout "flat"'),
        ({"compress": True}, "begun with compress false, and .* with compress true"),
        ({"shape": SHAPE}, 'begun with dtype "float32", and .* with dtype "float16"'),
    ],
)
def test_what_was_begun_otherwise_is_not_gone_on_with(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "f.h5"
    left_unfinished(path, **options_of("bilm"))
    given = {"attributes": ATTRIBUTES, **options_of("bilm"), **change}
    with pytest.raises(InputError, match=message), write_features(path, given.pop("attributes"), resume=True, **given):
        pass
    assert write(path, resume=True, **options_of("bilm")) == 8, "it is still there"


def test_a_file_that_an_older_version_has_begun_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = tmp_path / "f.h5", options_of("bilm")
    with monkeypatch.context() as older:
        begun = writer_module._begun
        older.setattr(writer_module, "_begun", lambda *given: {**begun(*given), "source": '""'})
        left_unfinished(path, **options)
    assert '"source"' in (tmp_path / ".f.h5.unfinished/progress.json").read_text()
    assert write(path, resume=True, **options) == 8


def test_another_command_line_is_no_other_dump(tmp_path: Path) -> None:
    path = tmp_path / "f.h5"
    left_unfinished(path, **options_of("bilm"))
    attributes = {**ATTRIBUTES, "command_line": "elmoc dump-features --resume"}
    with write_features(path, attributes, resume=True, **options_of("bilm")) as writer:
        assert writer.sentences == 8
    with FeatureFile(path) as features:
        assert features.attributes["command_line"] == "elmoc dump-features"


@pytest.mark.parametrize("name", ["features.h5", "notes.jsonl", "changes.0", "progress.json"])
@pytest.mark.parametrize("damage", ["missing", "truncated", "changed"])
def test_damage_to_what_is_left_is_named(tmp_path: Path, name: str, damage: str) -> None:
    path = tmp_path / "f.h5"
    left_unfinished(path, **options_of("allennlp"))
    damaged = tmp_path / ".f.h5.unfinished" / name
    content = damaged.read_bytes()
    if damage == "missing":
        damaged.unlink()
    elif damage == "truncated":
        damaged.write_bytes(content[:9])
    elif name == "features.h5":
        return  # its size alone is looked at
    else:
        damaged.write_bytes(content.replace(b"w0", b"w1").replace(b"8", b"7"))
    if (name, damage) == ("progress.json", "missing"):
        assert write(path, resume=True, **options_of("allennlp")) == 0
        return
    with pytest.raises(InputError, match=f"{name}.*: remove the folder that it is in to begin anew"):
        write(path, resume=True, **options_of("allennlp"))
    assert not path.exists()
