"""Faults: a command is killed, its disk is full or read-only, another process writes the same; what is wrong then."""

import random
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmoc.errors import InputError
from tests.faults.calls import Commands, Mode, Outcome
from tests.faults.commands import Command
from tests.faults.inputs import FileServer, write_inputs
from tests.faults.outputs import Output, contents, differing, is_beginning, same_lines

WHOLE_ALREADY = "exists already|finished corpus already"
NOTHING_TO_RESUME = "no run to resume"
SOMETHING_TO_RESUME = "give that command --resume (in Python resume=True) to go on"
NOT_THE_ONLY_WRITER = f"another process|holds a run already|{WHOLE_ALREADY}"
INTERRUPTED = 130
"""The exit status of a command that was stopped by Ctrl-C."""
WAITING = 0.5
"""Seconds after which a second writer is taken to wait for the first."""


@dataclass(frozen=True)
class Undisturbed:
    """What a command does without a fault: its calls, and the contents of its outputs before and after it."""

    calls: Outcome
    before: dict[str, Any]
    after: dict[str, Any]
    readable_before: frozenset[str]
    names_before: frozenset[str]


class Bench:
    """Where commands are run with faults; each check gives the problems that it found, a sentence each.

    Args:
        root: an empty folder for everything.
    """

    def __init__(self, root: Path) -> None:
        self.inputs, self.folder, self.starts, scratch = (root / name for name in ("inputs", "folder", "starts", "log"))
        for folder in (self.inputs, self.folder, self.starts, scratch):
            folder.mkdir(parents=True)
        self.commands = Commands(self.folder, scratch)
        self._undisturbed: dict[str, Undisturbed] = {}
        self._of_second: dict[str, dict[str, Any]] = {}
        self._server = FileServer(self.inputs)
        write_inputs(self.inputs, self._succeed)

    def close(self) -> None:
        """End the servers."""
        self._server.close()
        self.commands.close()

    def undisturbed(self, command: Command) -> Undisturbed:
        """The command's run without a fault, and the folder that it starts with; made once."""
        if command.name not in self._undisturbed:
            self._make_start(command)
            self._restore(command)
            before, names = self._contents(command), self._names()
            readable = frozenset(output.name for output in command.outputs if not self._refused(output))
            outcome = self._run(command.line)
            assert outcome.status == 0, f"{command.name}: {outcome}"
            assert outcome.growths, "calls are not counted"
            self._undisturbed[command.name] = Undisturbed(
                outcome, before, self._contents(command), readable, frozenset(names)
            )
        return self._undisturbed[command.name]

    def kill(self, command: Command, at: int) -> list[str]:
        """Kill the command at a call, look at what is there, and run it again."""
        self._start_over(command)
        outcome = self._run(command.line, Mode.KILL, at)
        problems = []
        if outcome.left_running:
            problems.append("processes of it went on after it was killed")
        if not outcome.killed and outcome.status != 0:
            problems.append(f"instead of being killed it ended with {described(outcome)}")
        problems += self._not_whole(command)
        return problems + self._again(command)

    def interrupt(self, command: Command, at: int) -> list[str]:
        """Press Ctrl-C at a call, look at what is there, and run the command again."""
        self._start_over(command)
        outcome = self._run(command.line, Mode.INTERRUPT, at)
        problems = []
        if outcome.status not in (0, INTERRUPTED) or "Traceback" in outcome.errors:
            problems.append(f"interrupted, it ended with {described(outcome)}")
        return problems + self._half_written(command, outcome) + self._not_whole(command) + self._again(command)

    def fill_disk(self, command: Command, at: int) -> list[str]:
        """Have no room on the disk from a call on, look at what is there, and run the command again with room."""
        outcome, problems = self._refused_work(command, Mode.FULL, at, rf"{self.folder}.*(full|space)")
        return problems + self._half_written(command, outcome) + self._not_whole(command) + self._again(command)

    def read_only(self, command: Command, at: int = 1) -> list[str]:
        """Have a disk that cannot be written, and look at what is there."""
        _, problems = self._refused_work(command, Mode.READ_ONLY, at, rf"{self.folder}.*read-only")
        if self._names() != self.undisturbed(command).names_before:
            problems.append("it changed a folder that cannot be written")
        return problems + self._not_whole(command)

    def kill_worker(self, command: Command, at: int) -> list[str]:
        """Kill another process that works for the command at one of its calls, and run the command again."""
        _, problems = self._refused_work(command, Mode.KILL_WORKER, at, "memory")
        return problems + self._not_whole(command) + self._again(command)

    def write_twice(self, command: Command, at: int) -> list[str]:
        """Have a second process write the same outputs while the command waits at a call."""
        if command.name not in self._of_second:
            self._start_over(command)
            self._succeed(command.second)
            self._of_second[command.name] = self._contents(command)
        self._start_over(command)
        first = self._start(command.line, Mode.PAUSE, at)
        status = None
        while status is None and not first.counts.waits():
            status = first.wait(0.005)
        second = self._start(command.second)
        second_status = second.wait(WAITING)
        first.counts.release()
        return self._of_two(command, [first.finish(status), second.finish(second_status)])

    def _of_two(self, command: Command, outcomes: list[Outcome]) -> list[str]:
        lost = [outcome for outcome in outcomes if outcome.status != 0]
        problems = [problem for each in lost for problem in self._not_a_sentence(each, NOT_THE_ONLY_WRITER)]
        won = [outcome.status == 0 for outcome in outcomes]
        first, second = self.undisturbed(command).after, self._of_second[command.name]
        found = self._contents(command)
        if not any(won):
            problems.append(f"neither of two writers succeeded: {' / '.join(map(described, outcomes))}")
        if all(won) and not command.adds and not command.replaces:
            problems.append("both of two writers say that they succeeded, and there is one output")
        expected = [after for after, one in zip((first, second), won, strict=True) if one]
        if command.adds and not same_lines(found, first):
            problems.append(f"after two writers the output is another: {differing(found, first)}")
        if not command.adds and any(won) and found not in expected:
            problems.append(f"after two writers ({won}) the output is that of neither: {differing(found, expected[0])}")
        return problems + self._litter(command)

    def _refused_work(self, command: Command, mode: Mode, at: int, words: str) -> tuple[Outcome, list[str]]:
        """Run a command with a fault that it has to tell of (a pattern of the sentence), unless it does its work."""
        self._start_over(command)
        outcome = self._run(command.line, mode, at)
        if outcome.status != 0:
            return outcome, self._not_a_sentence(outcome, words)
        whole = self._contents(command) == self.undisturbed(command).after
        return outcome, [] if whole else ["it says that it succeeded, but its output is not whole"]

    def _half_written(self, command: Command, outcome: Outcome) -> list[str]:
        """What a command that could have tidied up left."""
        new = self._names() - self.undisturbed(command).names_before - {*command.keeps}
        partial = [name for name in new if ".partial" in name]
        problems = [f"it left {', '.join(partial)}"] if partial else []
        return problems + ["processes of it went on after it ended"] * outcome.left_running

    def _not_whole(self, command: Command) -> list[str]:
        """What was whole and is no more, and what is read although it is not whole."""
        undisturbed, problems = self.undisturbed(command), []
        for output in command.outputs:
            known = (undisturbed.before[output.name], undisturbed.after[output.name])
            try:
                refused = self._refused(output)
            except Exception as error:
                problems.append(f"a traceback when {output.name} is read: {error!r}")
                continue
            if refused:
                if output.name in undisturbed.readable_before:
                    problems.append(f"{output.name} was whole before it, and is not read after it: {refused}")
                continue
            found = contents(self.folder / output.name)
            if not output.in_steps and found not in known and not is_beginning(found, known[1]):
                problems.append(f"{output.name} is read, but is neither the old nor the new")
        return problems

    def _again(self, command: Command) -> list[str]:
        """Run the command once more without a fault: everything has to be as if there had been none."""
        outcome = self._run(command.again or command.line)
        if command.again and any(NOTHING_TO_RESUME in line for line in outcome.error_lines):
            outcome = self._run(command.line)
        if any(SOMETHING_TO_RESUME in line for line in outcome.error_lines):
            outcome = self._run(f"{command.line} --resume")
        refused = outcome.status == 1 and bool(re.search(WHOLE_ALREADY, outcome.errors))
        if outcome.status != 0 and not refused:
            return [f"it cannot be run again: {described(outcome)}"]
        expected, found = self.undisturbed(command).after, self._contents(command)
        problems = []
        if found != expected and not (command.adds and same_lines(found, expected)):
            problems.append(f"run again, it makes something else: {differing(found, expected)}")
        return problems + self._litter(command)

    def _not_a_sentence(self, outcome: Outcome, words: str) -> list[str]:
        """What is wrong with how a command said that it cannot do its work; `words` are a pattern of what to say."""
        if outcome.status is None:
            return ["it hangs"]
        if outcome.status < 0:
            return [f"it was killed by signal {-outcome.status}"]
        if "Traceback" in outcome.errors:
            return [f"a traceback: {described(outcome)}"]
        if outcome.status != 1 or len(outcome.error_lines) != 1:
            return [f"not one sentence: {described(outcome)}"]
        (line,) = outcome.error_lines
        if not re.search(words, line, re.IGNORECASE):
            return [f"the sentence does not say what is wrong, and with which file ({words}): {line}"]
        return []

    def _litter(self, command: Command) -> list[str]:
        left = [name for name in self._names() - self.undisturbed(command).names_before if is_litter(name)]
        return [f"left over: {', '.join(sorted(left))}"] if left else []

    def _make_start(self, command: Command) -> None:
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        for name in command.copies:
            shutil.copytree(self.inputs / name, self.folder / name)
        for line in command.before:
            outcome = self._run(line)
            assert outcome.status == 0, outcome
        if command.interrupted is not None:
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            killed = self._run(command.before[-1], Mode.KILL, int(command.interrupted * outcome.changes))
            assert killed.killed, killed
        shutil.copytree(self.folder, self._start_of(command), symlinks=True)

    def _start_over(self, command: Command) -> None:
        """Have in the folder what the command starts with, and know what it does without a fault."""
        self.undisturbed(command)
        self._restore(command)

    def _restore(self, command: Command) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._start_of(command), self.folder, symlinks=True)

    def _start_of(self, command: Command) -> Path:
        return self.starts / command.name

    def _start(self, line: str, mode: Mode = Mode.COUNT, at: int = 0) -> Any:
        places = {"{inputs}": str(self.inputs), "{folder}": str(self.folder), "{address}": self._server.address}
        for name, place in places.items():
            line = line.replace(name, place)
        module, *arguments = line.split()
        return self.commands.start(module, arguments, mode, at)

    def _run(self, line: str, mode: Mode = Mode.COUNT, at: int = 0) -> Outcome:
        return self._start(line, mode, at).finish()

    def _succeed(self, line: str) -> None:
        outcome = self._run(line)
        assert outcome.status == 0, outcome

    def _refused(self, output: Output) -> str:
        """Why the readers do not take an output; empty when they do."""
        path = self.folder / output.name
        try:
            if not path.exists():
                return "it is not there"
            output.read(path)
        except InputError as error:
            return str(error)
        return ""

    def _contents(self, command: Command) -> dict[str, Any]:
        return {output.name: contents(self.folder / output.name) for output in command.outputs}

    def _names(self) -> set[str]:
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}


def numbers(total: int, most: int, seed: int) -> list[int]:
    """The calls at which a fault is tried: all of them, or `most` that are drawn."""
    return sorted(random.Random(seed).sample(range(1, total + 1), min(total, most)))


def is_litter(name: str) -> bool:
    """Whether a file or folder is not one for the user."""
    return any(part.startswith(".") or ".partial" in part for part in Path(name).parts)


def described(outcome: Outcome) -> str:
    """The end of a command in short."""
    lines = outcome.errors.strip().splitlines()
    return f"status {outcome.status}: {lines[-1] if lines else 'no word'}"
