"""Command lines are made from dataclasses, and read into them."""

import json
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import pytest
from elmoc.command_line import new_parser, options_of
from elmoc.errors import InputError
from msgspec import Meta


@dataclass(frozen=True, kw_only=True)
class How:
    """How it is computed."""

    batch_size: Annotated[int, Meta(ge=1, description="sentences at once")] = 8
    fast: Annotated[bool, Meta(description="go fast")] = True
    precision: Annotated[Literal["auto", "bf16"], Meta(description="of products", extra={"rare": True})] = "auto"


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where it is computed."""

    depth: int = 1
    changes: dict[str, bool | int | str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Command:
    """All kinds of fields."""

    model: Annotated[str, Meta(description="the model")]
    files: Annotated[list[Path], Meta(description="the text", extra={"metavar": "FILE"})]
    layout: Annotated[Literal["a", "b"], Meta(description="of the file", extra={"option": "--format"})]
    layers: Annotated[str, Meta(description="which", extra={"flags": {"--top": "top"}})] = "all"
    set: Annotated[list[str], Meta(description="a setting", extra={"repeat": True})] = field(default_factory=list)
    share: Annotated[float, Meta(gt=0, lt=1, description="100 % or less")] | None = None
    output: Annotated[Path | None, Meta(description="where", extra={"option": "-o"})] = None
    how: How = How()


def parse(*argv: str) -> Command:
    return options_of(Command, new_parser(Command, prog="x", description=""), argv)


def test_every_kind_of_field() -> None:
    least = Command(model="m", files=[Path("f")], layout="a")
    assert parse("m", "f", "--format", "a") == least
    most = Command(model="m", files=[Path("f"), Path("g")], layout="b", layers="top", set=["a=1", "b=2"], share=0.5)
    most = replace(most, output=Path("out"), how=How(batch_size=3, fast=False, precision="bf16"))
    given = "m f g --format b --top --set a=1 --set b=2 --share .5 -o out --batch-size 3 --no-fast --precision bf16"
    assert parse(*given.split()) == most


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--batch-size", "0"], "--batch-size is 0: Expected `int` >= 1"),
        (["--batch-size", "x"], "--batch-size is 'x': Expected `int`, got `str`"),
        (["--share", "nan"], "--share is nan: Expected `float` > 0.0"),
        (["--format", "c"], "--format is 'c': Expected one of a, b"),
    ],
)
def test_an_impossible_value_is_told_by_its_option(argv: list[str], said: str) -> None:
    with pytest.raises(InputError) as error:
        parse("m", "f", "--format", "a", *argv)
    assert str(error.value) == said


def test_help_shows_rare_options_where_all_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    for full, option in ((True, "--precision"), (False, "--batch-size")):
        new_parser(Command, prog="x", description="", full=full).print_help()
        shown = capsys.readouterr().out
        assert option in shown
        assert ("--precision" in shown) == full
        assert "sentences at once (default: 8)" in shown


@dataclass(frozen=True, kw_only=True)
class Outer:
    """A command that knows some of its options only when it runs."""

    where: Where = Where()


def test_a_dictionary_gets_what_is_given_of_the_options_inside_it(capsys: pytest.CaptureFixture[str]) -> None:
    parser = new_parser(Outer, prog="x", description="", full=False, inside={"where.changes": How(batch_size=2)})
    assert options_of(Outer, parser, []) == Outer()
    given = ["--batch-size", "3", "--no-fast", "--depth", "2"]
    assert options_of(Outer, parser, given) == Outer(where=Where(depth=2, changes={"batch_size": 3, "fast": False}))
    parser.print_help()
    shown = capsys.readouterr().out
    assert "sentences at once (default: 2)" in shown
    assert "--precision" not in shown
    assert "--changes" not in shown


CHILD = """
import sys
from elmoc.command_line import run_main
from tests.elmoc.test_options import Command
sys.exit(run_main(Command, print, None, prog="x", description=""))
"""


@pytest.mark.parametrize("wrong", [{}, {"sise": 1}, {"how": {"batch_size": "3"}}])
def test_another_process_gets_options_as_json(wrong: dict[str, object]) -> None:
    values = {"model": "m", "files": ["f"], "layout": "a", "how": {"batch_size": 3}} | wrong
    done = subprocess.run(
        [sys.executable, "-c", CHILD, "--json", "-"], input=json.dumps(values), capture_output=True, text=True
    )
    if wrong:
        assert done.returncode == 1
        assert done.stderr.startswith(("error: unknown key sise", "error: how.batch_size is"))
        assert done.stderr.count("\n") == 1
    else:
        assert done.stdout.strip() == str(Command(model="m", files=[Path("f")], layout="a", how=How(batch_size=3)))
