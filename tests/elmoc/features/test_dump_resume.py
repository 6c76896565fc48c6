"""Dumps that are killed and gone on with, or shared by two processes: one file, of the same content."""

import json
import os
import random
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest
from elmoc.__main__ import main
from elmoc.encoding import SentenceEncoder
from elmoc.files.hdf5 import DiskFile
from tests.elmoc.features.sentences import stored
from tests.tiny import edit_json

from elmoc.features import dump
from elmoc.features.layouts import LayoutWriter

Fails = Callable[[int], str]
Interrupt = Callable[..., list[int]]
LINES = [" ".join(f"w{(line * word) % 13}" for word in range(1, 2 + line % 7)) for line in range(60)]
FORK = get_context("fork")


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("\n".join(LINES) + "\n")
    return path


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    for start in range(0, 60, 10):
        record = {"doc_key": f"a/{start}", "sentences": [line.split() for line in LINES[start : start + 10]]}
        with open(path, "a") as file:
            file.write(f"{json.dumps(record)}\n")
    return path


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump, "words_of_a_part", lambda *_: 40)


def command(*arguments: object) -> list[str]:
    return ["dump-features", *map(str, arguments)]


def assert_same(path: Path, expected: Path) -> None:
    assert stored(path) == stored(expected)


def kill_when_added(sentences: int, arguments: list[str]) -> None:
    """Run a dump in a process that is killed when it has added a number of sentences to its parts or its output."""

    def dump_and_die() -> None:
        added = []

        def counted(function: Callable[..., object]) -> Callable[..., object]:
            def count_or_kill(*arguments: object) -> object:
                added.append(1)
                if len(added) == sentences:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments)

            return count_or_kill

        dump.converted, LayoutWriter.add = counted(dump.converted), counted(LayoutWriter.add)
        main(arguments)

    process = FORK.Process(target=dump_and_die)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def run_together(*commands: list[str]) -> None:
    """Run each command as one of several processes of a dump."""

    def run(rank: int) -> None:
        found = {"RANK": str(rank), "WORLD_SIZE": str(len(commands)), "MASTER_ADDR": "localhost", "MASTER_PORT": port}
        os.environ.update(found)
        sys.exit(main(commands[rank]))

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    processes = [FORK.Process(target=run, args=(rank,)) for rank in range(len(commands))]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(commands)


@pytest.fixture
def interrupted_after(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Given a number of parts: a signal comes when so many are encoded. Gives the sentences of each, as they come."""
    encode = SentenceEncoder.encode

    def interrupt(parts: int, number: int = signal.SIGINT) -> list[int]:
        encoded: list[int] = []

        def counting(self: SentenceEncoder, rows: object, **options: object) -> object:
            if len(encoded) == parts:
                signal.raise_signal(number)
            encoded.append(len(rows.ids))
            return encode(self, rows, **options)

        monkeypatch.setattr(SentenceEncoder, "encode", counting)
        return encoded

    return interrupt


@pytest.mark.parametrize("options", [[], ["--format", "flat", "--dtype", "float16", "--top"]])
def test_an_interrupted_dump_goes_on_where_it_was(
    model_path: Path, sentences: Path, tmp_path: Path, interrupted_after: Interrupt, options: list[str]
) -> None:
    expected, output = tmp_path / "whole.h5", tmp_path / "f.h5"
    all_of_it = interrupted_after(-1)
    assert main(command(model_path, sentences, expected, *options)) == 0
    number = signal.SIGTERM if options else signal.SIGINT
    first = interrupted_after(3, number)
    assert main(command(model_path, sentences, output, *options)) == 128 + number
    assert not output.exists()
    rest = interrupted_after(-1)
    assert main(command(model_path, sentences, output, *options, "--resume")) == 0
    assert first + rest == all_of_it, "parts are those of a dump in one go"
    assert_same(output, expected)
    assert not list(tmp_path.glob(".*")), "nothing is left over"


def test_words_are_looked_up_as_in_a_dump_in_one_go(
    tmp_path: Path, interrupted_after: Interrupt, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last bits of a character CNN's vectors depend on the words that it makes together."""
    data = Path(__file__).parent.parent / "interop" / "data" / "allennlp"
    assert main(["import-elmo", f"{data}/options.json", f"{data}/lm_weights.hdf5", f"{tmp_path}/elmo"]) == 0
    sentences, output = tmp_path / "in.txt", tmp_path / "f.h5"
    # Every part has one word that is new.
    sentences.write_text("".join(" ".join(f"w{word}" for word in (*range(39), line)) + "\n" for line in range(50, 62)))
    interrupted_after(-1)
    assert main(command(tmp_path / "elmo", sentences, tmp_path / "whole.h5")) == 0
    interrupted_after(4)
    assert main(command(tmp_path / "elmo", sentences, output)) == 130
    interrupted_after(-1)
    write = DiskFile.write

    def interrupted(file: DiskFile, content: object) -> int:
        signal.raise_signal(signal.SIGHUP)
        return write(file, content)

    with monkeypatch.context() as patch:  # inside of HDF5's library
        patch.setattr(DiskFile, "write", interrupted)
        assert main(command(tmp_path / "elmo", sentences, output, "--resume")) == 129
    assert not output.exists()
    assert main(command(tmp_path / "elmo", sentences, output, "--resume")) == 0
    assert_same(output, tmp_path / "whole.h5")


def test_damaged_parts_are_made_again(
    model_path: Path, sentences: Path, tmp_path: Path, interrupted_after: Interrupt
) -> None:
    expected, output = tmp_path / "whole.h5", tmp_path / "f.h5"
    interrupted_after(-1)
    assert main(command(model_path, sentences, expected)) == 0
    generator = random.Random(4)
    for trial in range(40):
        interrupted_after(4)
        assert main(command(model_path, sentences, output)) == 130
        parts = sorted((tmp_path / ".f.h5.parts").glob("*.part"))
        damaged, other = generator.sample(parts, 2)
        content = bytearray(damaged.read_bytes())
        place = generator.randrange(len(content))
        if trial % 4 == 0:
            content[place] ^= 1 << generator.randrange(8)
        elif trial % 4 == 1:
            del content[place:]
        elif trial % 4 == 2:
            content += content[:place] + b"\0"
        else:  # the content of another part
            content = bytearray(other.read_bytes())
        damaged.write_bytes(content)
        interrupted_after(-1)
        assert main(command(model_path, sentences, output, "--resume")) == 0
        assert_same(output, expected)
        output.unlink()


def test_killed_dumps_go_on_to_the_same(model_path: Path, sentences: Path, documents: Path, tmp_path: Path) -> None:
    commands = [
        command(model_path, sentences, tmp_path / "flat.h5", "--format", "flat"),
        command(model_path, sentences, tmp_path / "allennlp.h5"),
        command(model_path, documents, tmp_path / "e2e.h5", "--format", "e2e-coref"),
    ]
    for line in commands:
        assert main([*line[:3], f"{line[3]}.whole", *line[4:]]) == 0
        for sentences_added in (17, 25, 3, 70):  # the last one while the parts are copied
            kill_when_added(sentences_added, [*line, "--resume"])
            assert not Path(line[3]).exists()
        assert main([*line, "--resume"]) == 0
        assert_same(Path(line[3]), Path(f"{line[3]}.whole"))
    assert not list(tmp_path.glob(".*"))


def test_two_processes_make_one_file(model_path: Path, sentences: Path, documents: Path, tmp_path: Path) -> None:
    commands = [
        command(model_path, sentences, tmp_path / "two" / "top.h5", "--top"),
        command(model_path, documents, tmp_path / "two" / "e2e.h5", "--format", "e2e-coref"),
    ]
    for line in commands:
        assert main([*line[:3], line[3].replace("/two/", "/one/"), *line[4:]]) == 0
        run_together(line, line)
        assert_same(Path(line[3]), Path(line[3].replace("/two/", "/one/")))
    assert sorted(os.listdir(tmp_path / "two")) == ["e2e.h5", "e2e.h5.xxh3", "top.h5", "top.h5.xxh3"]


def test_resume_of_nothing_and_of_what_is_finished(model_path: Path, sentences: Path, tmp_path: Path) -> None:
    output = tmp_path / "f.h5"
    assert main(command(model_path, sentences, output, "--resume")) == 0
    made = output.stat().st_mtime_ns
    (tmp_path / ".f.h5.parts").mkdir()  # of a process that was killed when all was done
    assert main(command(model_path, sentences, output, "--resume")) == 0
    assert output.stat().st_mtime_ns == made
    assert not (tmp_path / ".f.h5.parts").exists()


@pytest.mark.parametrize("options", [["--top"], ["--boundaries"], ["--dtype", "float16"], ["--format", "flat"]])
def test_another_dump_is_not_gone_on_with(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    error_line: Fails,
    interrupted_after: Interrupt,
    options: list[str],
) -> None:
    output = tmp_path / "f.h5"
    interrupted_after(2)
    assert main(command(model_path, sentences, output)) == 130
    interrupted_after(-1)
    other = [*command(model_path, sentences, output, "--resume"), *options]
    assert str(output) in error_line(main(other))
    assert "--resume" in error_line(main(command(model_path, sentences, output))), "and not begun anew"
    assert main(command(model_path, sentences, output, "--resume")) == 0, "it can still be gone on with"
    assert str(output) in error_line(main(other))


@pytest.mark.parametrize("options", [[], ["--format", "flat"]], ids=["allennlp", "flat"])
@pytest.mark.parametrize("when", ["while it is dumped", "between two commands"])
def test_of_a_text_that_was_edited_what_is_the_same_is_kept(
    model_path: Path,
    sentences: Path,
    tmp_path: Path,
    error_line: Fails,
    interrupted_after: Interrupt,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    when: str,
) -> None:
    output = tmp_path / "f.h5"
    edited = "\n".join([*LINES[:45], "an edited line", *LINES[46:]]) + "\n"
    interrupted_after(-1)
    if when == "while it is dumped":
        write_parts = dump.Dump._write_parts

        def edit_first(self: dump.Dump) -> object:
            sentences.write_text(edited)
            return write_parts(self)

        with monkeypatch.context() as patch:
            patch.setattr(dump.Dump, "_write_parts", edit_first)
            advice = error_line(main(command(model_path, sentences, output, *options)))
        assert "in.txt has changed while it was dumped" in advice
        assert "--resume" in advice
        assert not output.exists()
    else:
        interrupted_after(5)
        assert main(command(model_path, sentences, output, *options)) == 130
        sentences.write_text(edited)
    encoded = interrupted_after(-1)
    assert main(command(model_path, sentences, output, *options, "--resume")) == 0
    resumed = len(encoded)
    assert main(command(model_path, sentences, tmp_path / "whole.h5", *options)) == 0
    assert_same(output, tmp_path / "whole.h5")
    assert resumed < len(encoded) - resumed, "parts before the edited line are not made again"
    assert not list(tmp_path.glob(".*")), "nothing is left over"


def test_other_settings_of_an_encoder(model_path: Path, sentences: Path, tmp_path: Path, error_line: Fails) -> None:
    other = tmp_path / "other"
    shutil.copytree(model_path, other)
    edit_json(other / "config.json", lambda record: record["encoder"].update(residual=False))
    assert main(command(model_path, sentences, tmp_path / "f.h5")) == 0
    assert "f.h5" in error_line(main(command(other, sentences, tmp_path / "f.h5", "--resume")))
