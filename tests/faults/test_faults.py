"""Faults: whatever happens to a command that writes, nothing is lost, nothing half-written, and it can be run again.

A few calls of every command are tried here, all of them in the slow tests and by `python -m tests.faults`.
"""

import re
from collections.abc import Iterator

import pytest

from tests.faults.calls import ROOT, compiler
from tests.faults.careless import WRITES
from tests.faults.commands import COMMANDS, Command
from tests.faults.faults import Bench, numbers
from tests.faults.outputs import Output
from tests.faults.server import ROOMS

FEW = 2
"""The calls that are tried of each command and fault: each takes a third of a second."""

LEFT_OUT = (
    "pretrain.speed.__main__",
    "elmoc.benchmark.__main__",
    "pretrain.adapt.__main__",
    "pretrain.recipe.__main__",
    "pretrain.recipe.tables",
    "downstream.peers.masked_lm",
    "downstream.peers.character_lm",
)
"""The first two measure for minutes, and write one JSON file, as `downstream table` does. The next three run commands
that are here one after the other; their own tests interrupt them, and begin with a step that failed. The last two need
packages that are not in this environment; the one peer that does not writes as they do."""

every_command = pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
with_workers = pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command.workers], ids=lambda command: command.name
)
with_a_second_writer = pytest.mark.parametrize(
    "command", [command for command in COMMANDS if command.second], ids=lambda command: command.name
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    if compiler() is None:
        pytest.skip("there is no C++ compiler for the library that counts file-system calls")
    made = Bench(tmp_path_factory.mktemp("faults"))
    yield made
    made.close()


@every_command
def test_a_killed_command_loses_nothing_and_goes_on(bench: Bench, command: Command) -> None:
    for at in numbers(bench.undisturbed(command).calls.changes, FEW, seed=1):
        assert bench.kill(command, at) == [], f"killed at call {at}"


@with_workers
def test_a_killed_worker_is_one_sentence(bench: Bench, command: Command) -> None:
    calls = bench.undisturbed(command).calls
    assert calls.of_workers
    for at in numbers(calls.of_workers, FEW, seed=5):
        assert bench.kill_worker(command, at) == [], f"worker killed at call {at}"


@every_command
def test_an_interrupted_command_tidies_up_and_goes_on(bench: Bench, command: Command) -> None:
    (at,) = numbers(bench.undisturbed(command).calls.changes, 1, seed=4)
    assert bench.interrupt(command, at) == [], f"interrupted at call {at}"


@every_command
def test_a_full_disk_is_one_sentence(bench: Bench, command: Command) -> None:
    for at in numbers(bench.undisturbed(command).calls.growths, FEW, seed=2):
        assert bench.fill_disk(command, at) == [], f"full at call {at}"


@every_command
def test_a_disk_that_cannot_be_written_is_one_sentence(bench: Bench, command: Command) -> None:
    assert bench.read_only(command) == []


@with_a_second_writer
def test_of_two_writers_one_is_told_that_there_is_another(bench: Bench, command: Command) -> None:
    (at,) = numbers(bench.undisturbed(command).calls.changes, 1, seed=3)
    assert bench.write_twice(command, at) == [], f"second writer at call {at}"


def test_faults_of_a_careless_command_are_found(bench: Bench) -> None:
    line = "tests.faults.careless {folder}/out.txt "
    careless = Command("careless", f"{line} old", (Output("out.txt"),), f"{line} new", before=(f"{line} older",))
    opened, first_write = 1, 2
    assert bench.undisturbed(careless).calls.changes == opened + WRITES
    for problems, what in (
        (bench.kill(careless, first_write), "out.txt is read, but is neither the old nor the new"),
        (bench.fill_disk(careless, first_write), "a traceback: .*No space left on device"),
        (bench.interrupt(careless, first_write), "interrupted, it ended with .*KeyboardInterrupt"),
        (bench.read_only(careless), "a traceback: .*Read-only file system"),
        (bench.write_twice(careless, first_write), "both of two writers say that they succeeded"),
    ):
        assert any(re.match(what, problem) for problem in problems), problems


def test_every_command_is_here() -> None:
    modules = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for room in ROOMS
        for file in (ROOT / room).rglob("*.py")
        if '__name__ == "__main__"' in file.read_text(encoding="utf-8")
    }
    assert modules - set(LEFT_OUT) == {command.line.split()[0] for command in COMMANDS}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@every_command
def test_every_call(bench: Bench, command: Command) -> None:
    calls = bench.undisturbed(command).calls
    writers = numbers(calls.changes if command.second else 0, 20, seed=6)
    problems = {f"killed at call {at}": bench.kill(command, at) for at in range(1, calls.changes + 1)}
    problems |= {f"second writer at call {at}": bench.write_twice(command, at) for at in writers}
    problems |= {f"full at call {at}": bench.fill_disk(command, at) for at in range(1, calls.growths + 1)}
    assert {where: what for where, what in problems.items() if what} == {}
