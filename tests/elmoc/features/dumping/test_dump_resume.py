"""`elmoc dump-features --resume`: the same file as without the interruption or kill; what is done is kept."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest

from elmoc import ElmoC
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.features.dumping import dump
from elmoc.features.dumping.options import DumpOptions
from elmoc.features.dumping.ranks import Ranks
from tests.elmoc.features.dumping.test_dump_inputs import jsonlines

Fails = Callable[[int], str]
LINES = [" ".join(f"w{(line * word) % 13}" for word in range(1, 2 + line % 7)) for line in range(60)]
KILLS = """
import json, os, signal, sys
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.features.dumping import dump
from elmoc.features.dumping.options import DumpOptions
from elmoc.features.dumping.ranks import Ranks
from elmoc.features.writer import FeatureWriter

dump.CHECKPOINT_SECONDS = 0.0
dump.buffer_words = lambda *_: 40
add, added = FeatureWriter.add, []


def killing(self, sentence, states):
    added.append(1)
    if len(added) == count:
        os.kill(os.getpid(), signal.SIGKILL)
    add(self, sentence, states)


FeatureWriter.add = killing
for command in json.loads(sys.argv[1]):
    added.clear()
    for count in json.loads(sys.argv[2]):
        pid = os.fork()
        if not pid:
            sys.exit(main(command))
        status = os.waitpid(pid, 0)[1]
        assert os.WIFSIGNALED(status), status
        assert not os.path.exists(command[3])
    count = -1
    assert main(command) == 0
"""


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


@pytest.fixture(autouse=True)
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump, "buffer_words", lambda *_: 40)
    monkeypatch.setattr(dump, "CHECKPOINT_SECONDS", 0.0)


def command(*arguments: object) -> list[str]:
    return ["dump-features", *map(str, arguments)]


def content(path: Path) -> dict[str, np.ndarray]:
    """All datasets of a file, in its order."""
    found: dict[str, np.ndarray] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def assert_same(path: Path, expected: Path) -> None:
    ours, theirs = content(path), content(expected)
    assert list(ours) == list(theirs)
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array)


@pytest.fixture
def interrupted_after(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[int]]]:
    """Given a number of buffers: a signal comes when so many are encoded. Gives the sentences of each, as they come."""
    encode = ElmoC.embed_rows

    def interrupt(buffers: int, number: int = signal.SIGINT) -> list[int]:
        encoded: list[int] = []

        def counting(self: ElmoC, rows: object, **options: object) -> object:
            if len(encoded) == buffers:
                signal.raise_signal(number)
            encoded.append(len(rows.ids))
            return encode(self, rows, **options)

        monkeypatch.setattr(ElmoC, "embed_rows", counting)
        return encoded

    return interrupt


def test_an_interrupted_dump_of_which_nothing_is_kept_does_not_say_so(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    interrupted_after: Callable[..., list[int]],
) -> None:
    interrupted_after(0)
    assert main(command(model_path, sentences, tmp_path / "f.h5")) == 130
    assert "is kept" not in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--format", "flat", "--dtype", "float16", "--top"]])
def test_an_interrupted_dump_goes_on_where_it_was(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    interrupted_after: Callable[..., list[int]],
    options: list[str],
) -> None:
    expected, output = tmp_path / "whole.h5", tmp_path / "f.h5"
    all_of_it = interrupted_after(-1)
    assert main(command(model_path, sentences, expected, *options)) == 0
    first = interrupted_after(3, signal.SIGTERM if options else signal.SIGINT)
    assert main(command(model_path, sentences, output, *options)) == 130
    assert "the same command with --resume goes on" in capsys.readouterr().err
    assert not output.exists()
    rest = interrupted_after(-1)
    assert main(command(model_path, sentences, output, *options, "--resume")) == 0
    assert "going on after " in capsys.readouterr().out
    assert first == all_of_it[:3]
    assert 0 < len(rest) < len(all_of_it)
    assert rest == all_of_it[-len(rest) :], "buffers are those of a dump in one go"
    assert_same(output, expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.h5", "in.txt", "model", "whole.h5"]


def test_killed_dumps_go_on_to_the_same_files(model_path: Path, sentences: Path, tmp_path: Path) -> None:
    documents = {f"d{start}": [line.split() for line in LINES[start : start + 10]] for start in range(0, 60, 10)}
    commands = [
        command(model_path, sentences, tmp_path / "flat.h5", "--format", "flat"),
        command(model_path, jsonlines(tmp_path / "in.jsonl", documents), tmp_path / "carried.h5", "--carry-state"),
    ]
    for name, line in zip(("flat", "carried"), commands, strict=True):
        assert main([*line[:3], str(tmp_path / f"{name}-whole.h5"), *line[4:]]) == 0
    done = subprocess.run(
        [sys.executable, "-c", KILLS, json.dumps([[*line, "--resume"] for line in commands]), "[17, 25, 3]"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("going on after ") > 2
    for name in ("flat", "carried"):
        assert_same(tmp_path / f"{name}.h5", tmp_path / f"{name}-whole.h5")


def test_resume_starts_where_there_is_nothing_and_is_content_with_what_is_finished(
    model_path: Path, sentences: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "f.h5"
    for _ in range(2):
        assert main(command(model_path, sentences, output, "--resume")) == 0
    assert f"{output} is finished already" in capsys.readouterr().out


@pytest.mark.parametrize(
    "options", [["--top"], ["--carry-state"], ["--dtype", "float16"], ["--format", "flat"], ["--compress"]]
)
def test_another_dump_is_not_gone_on_with(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    error_line: Fails,
    interrupted_after: Callable[..., list[int]],
    options: list[str],
) -> None:
    output = tmp_path / "f.h5"
    interrupted_after(2)
    assert main(command(model_path, sentences, output)) == 130
    interrupted_after(-1)
    assert str(output) in error_line(main(command(model_path, sentences, output, "--resume", *options)))
    assert main(command(model_path, sentences, output, "--resume")) == 0, "it can still be gone on with"
    error = error_line(main(command(model_path, sentences, output, "--resume", *options)))
    assert "f.h5 exists already, of another dump" in error


def test_an_encoder_of_the_same_weights_and_other_settings_is_another(
    model_path: Path, sentences: Path, tmp_path: Path, error_line: Fails
) -> None:
    other = tmp_path / "other"
    shutil.copytree(model_path, other)
    record = json.loads((other / "config.json").read_text())
    record["encoder"]["residual"] = not record["encoder"]["residual"]
    (other / "config.json").write_text(json.dumps(record))
    assert main(command(model_path, sentences, tmp_path / "f.h5")) == 0
    assert "of another dump" in error_line(main(command(other, sentences, tmp_path / "f.h5", "--resume")))
    record["encoder"] |= {"residual": not record["encoder"]["residual"], "dropout": 0.25}
    (other / "config.json").write_text(json.dumps(record))
    assert main(command(other, sentences, tmp_path / "f.h5", "--resume")) == 0, "no features depend on dropout"


def test_another_input_is_not_gone_on_with(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    error_line: Fails,
    interrupted_after: Callable[..., list[int]],
) -> None:
    interrupted_after(2)
    assert main(command(model_path, sentences, tmp_path / "f.h5")) == 130
    interrupted_after(-1)
    sentences.write_text("\n".join(LINES).replace("w5", "w6"))
    error = error_line(main(command(model_path, sentences, tmp_path / "f.h5", "--resume")))
    assert "f.h5 was begun with input" in error
    assert error.endswith(f"or remove {tmp_path / '.f.h5.unfinished'} to begin anew")
    shutil.rmtree(tmp_path / ".f.h5.unfinished")
    assert main(command(model_path, sentences, tmp_path / "f.h5", "--resume")) == 0


def test_without_resume_an_unfinished_dump_stays(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    error_line: Fails,
    interrupted_after: Callable[..., list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    interrupted_after(2)
    assert main(command(model_path, sentences, tmp_path / "f.h5")) == 130
    with monkeypatch.context() as patch:
        patch.setattr(ElmoC, "from_pretrained", None)
        error = error_line(main(command(model_path, sentences, tmp_path / "f.h5", "--top")))
    assert "f.h5 was begun by a command that did not end: give that command --resume (in Python resume=True) " in error
    assert " to go on, or remove" in error
    rest = interrupted_after(-1)
    assert main(command(model_path, sentences, tmp_path / "f.h5", "--resume")) == 0
    assert sum(rest) < len(LINES), "what was done is kept"


@pytest.mark.parametrize(("output", "ranks"), [("/", "1"), (".", "1"), (".", "2"), ("..", "2")])
def test_a_directory_is_no_output(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error_line: Fails,
    output: str,
    ranks: str,
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", ranks)
    (tmp_path / "inside" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "inside" / "here")
    assert " directory" in error_line(main(command(model_path, sentences, output, "--resume")))
    with pytest.raises(InputError, match="director"):
        dump.dump_features(
            ElmoC.from_pretrained(model_path),
            sentences,
            output,
            DumpOptions(resume=True),
            ranks=Ranks.from_environment(),
        )
    assert os.listdir(tmp_path / "inside") == ["here"]
    assert not os.listdir()
