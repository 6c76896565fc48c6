"""Errors: every command ends with one sentence where something the user can mend is wrong."""

import errno
import io
import os
import subprocess
import sys

import pytest

from elmoc.errors import InputError, run_command


def test_commands_say_what_is_wrong_in_one_line(capsys) -> None:
    def fail(error: BaseException) -> None:
        raise error

    assert run_command(lambda: None) == 0
    assert run_command(lambda: fail(InputError("no such thing"))) == 1
    assert run_command(lambda: fail(OSError(28, "No space left on device", "x.bin"))) == 1
    assert run_command(lambda: fail(FileExistsError(errno.EEXIST, "File exists", "x.h5"))) == 1
    assert run_command(lambda: fail(MemoryError())) == 1
    assert run_command(lambda: fail(RuntimeError("CUDA out of memory"))) == 1
    assert run_command(lambda: fail(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err.splitlines() == [
        "error: no such thing",
        "error: x.bin: No space left on device: free some space and run the command again",
        "error: x.h5: File exists: something else has that name: move it, or choose another name",
        "error: memory ran out: use smaller sizes, or a machine with more of it",
        "error: memory ran out (CUDA out of memory): use smaller sizes, or a machine with more of it",
        "interrupted",
    ]
    with pytest.raises(ZeroDivisionError):
        run_command(lambda: fail(ZeroDivisionError()))


def test_a_sentence_is_one_printable_line_whatever_it_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    error = InputError("a.txt, line 2: 'x\x1b[31m\0\udcff\u2028y' is no label:\nmend it")
    assert str(error) == r"a.txt, line 2: 'x\x1b[31m\x00\udcff y' is no label: mend it"
    long = str(InputError(f"a.txt, line 2: {'[' * 100_000} is no label: mend it"))
    assert len(long) < 1000
    assert long.startswith("a.txt, line 2: [[[")
    assert long.endswith("[[[ is no label: mend it")
    assert str(InputError(long)) == long

    def fail() -> None:
        raise OSError(errno.ENAMETOOLONG, "File name too long", "a" * 5000)

    assert run_command(fail) == 1
    assert len(capsys.readouterr().err) < 1000


def test_a_terminal_that_lacks_a_character_does_not_cost_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert run_command(lambda: print("gain ± → 3")) == 0
    terminal.flush()
    assert terminal.buffer.getvalue() == b"gain \xb1 \\u2192 3\n"  # type: ignore[attr-defined]


def test_names_that_are_not_utf8_are_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["elmoc", "caf\udce9.txt"])
    assert run_command(lambda: pytest.fail("the command was run")) == 1
    assert capsys.readouterr().err == "error: the argument 'caf\\udce9.txt' is not valid UTF-8: rename the file\n"


def test_an_option_with_two_dashes_for_a_value_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["elmoc", "--max-time=--"])
    assert run_command(lambda: pytest.fail("the command was run")) == 1
    assert capsys.readouterr().err.startswith("error: the argument --max-time=-- lacks a value: ")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_an_output_that_is_full_is_one_sentence() -> None:
    code = "import sys; from elmoc.errors import run_command; sys.exit(run_command(lambda: print('x')))"
    with open("/dev/full", "w") as full:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
        ran = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert ran.returncode == 1
    assert ran.stderr == "error: No space left on device: free some space and run the command again\n"
