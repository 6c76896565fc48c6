"""Errors: every command ends with one line where something is wrong."""

import errno

import pytest
from elmoc.errors import InputError, reading, run_command


def test_commands_say_what_is_wrong_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(error: BaseException) -> None:
        raise error

    assert run_command(lambda: None) == 0
    for error in (
        InputError("no such thing"),
        OSError(errno.ENOSPC, "No space left on device", "x.bin"),
        FileExistsError(errno.EEXIST, "File exists", "x.h5"),
        MemoryError(),
        RuntimeError("CUDA out of memory"),
        ZeroDivisionError("division\nby zero"),
    ):
        assert run_command(lambda error=error: fail(error)) == 1  # type: ignore[misc]
    assert run_command(lambda: fail(KeyboardInterrupt())) == 130
    starts = ["error: no such thing", "error: x.bin: No space", "error: x.h5: File exists", "error: memory ran out"]
    starts += ["error: memory ran out (CUDA", "error: unexpected: ZeroDivisionError: division by zero"]
    starts += ["interrupted: give the same command again"]
    for line, start in zip(capsys.readouterr().err.splitlines(), starts, strict=True):
        assert line.startswith(start)
    monkeypatch.setenv("ELMOC_TRACEBACK", "1")
    assert run_command(lambda: fail(ZeroDivisionError())) == 1
    assert capsys.readouterr().err.startswith("Traceback")


def test_what_goes_wrong_while_a_file_is_read_names_it() -> None:
    def fail(error: Exception) -> None:
        with reading("a.bin"):
            raise error

    missing = FileNotFoundError(errno.ENOENT, "No such file", "b.bin")
    for error in (InputError("a.bin is of itself"), MemoryError(), missing):
        with pytest.raises(type(error)) as passed:
            fail(error)
        assert passed.value is error
    for error in (ValueError("bad\nheader"), OSError("truncated"), RecursionError(), KeyError("x")):
        with pytest.raises(InputError, match=r"^a\.bin cannot be read") as named:
            fail(error)
        assert named.value.__cause__ is error
    with pytest.raises(InputError, match=r"^a\.bin: no weights$"):
        fail(InputError("no weights"))


def test_a_message_is_one_printable_line_whatever_it_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    error = InputError("a.txt, line 2: 'x\x1b[31m\0\udcff\u2028y' is no label:\nmend it")
    assert str(error) == r"a.txt, line 2: 'x\x1b[31m\x00\udcff y' is no label: mend it"
    long = str(InputError(f"a.txt, line 2: {'[' * 100_000} is no label: mend it"))
    assert len(long) < 1000
    assert long.startswith("a.txt, line 2: [[[")
    assert long.endswith("[[[ is no label: mend it")

    def fail() -> None:
        raise OSError(errno.ENAMETOOLONG, "File name too long", "a" * 5000)

    assert run_command(fail) == 1
    assert len(capsys.readouterr().err) < 1000
