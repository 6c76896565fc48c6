"""Command lines: how the options of a command, or of a process that another one
starts, become its frozen dataclass.

Each field of the dataclass is an option, by the rules of `new_parser`. A dataclass
inside it is a group of options. `--json -` reads the same dataclass as one JSON object
from standard input, which is how one process of the project starts another.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from elmoc.errors import AGAIN, RESUME, describe_error, reading, run_command
from elmoc.process import ERROR_VARIABLE, follow_parent, wait_without_spinning
from elmoc.settings import Setting, convert, option_name, settings_of
from elmoc.version import VERSION

Options = TypeVar("Options")

# Between the names of a dataclass and of a field inside it, as argparse keeps a value.
_INSIDE = "."


def run_main(
    kind: type[Options],
    run: Callable[[Options], object],
    argv: Sequence[str] | None = None,
    *,
    prog: str,
    description: str,
    inside: Mapping[str, Any] | None = None,
) -> int:
    """The `main` of a command: read its options, run it, and return the exit status.

    Args:
        kind: the dataclass of the options.
        run: does the job; what it raises becomes one line (`run_command`).
        argv: the command line, by default that of this process.
        prog: what users type to run the command.
        description: what it does, in a sentence.
        inside: see `new_parser`.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    parser = new_parser(
        kind,
        prog=prog,
        description=description,
        full="--help-all" in given,
        inside=inside,
    )
    wait_without_spinning()
    is_child = given == ["--json", "-"]
    go_on = RESUME if "--resume" in parser._option_string_actions else AGAIN
    told = os.environ.pop(ERROR_VARIABLE, None)
    if is_child:
        follow_parent()
        go_on = ""

    def job() -> None:
        if is_child:
            with reading("the options on standard input"):
                values = json.loads(sys.stdin.buffer.read())
            run(convert(values, kind))
        else:
            run(options_of(kind, parser, given))

    return run_command(job, go_on=go_on, told=told)


def import_command(module: str) -> Any:
    """The module of a command. Where a package is missing, the process ends with a line
    that names the extra.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise SystemExit(f"error: {describe_error(error)}") from None


def chosen_command(
    given: Sequence[str], commands: Mapping[str, str], *, prog: str, description: str
) -> str:
    """The command that a command line names first. Help, the version, or a name that is
    no command are argparse's business, which ends the process.

    Args:
        given: the command line.
        commands: what each command does, in a line.
        prog: what users type before the command.
        description: what the commands are for.
    """
    prog = _typed(prog)
    parser = argparse.ArgumentParser(
        prog=prog,
        description=description,
        epilog=f"{prog} COMMAND --help says more.",
    )
    parser.add_argument("--version", action="version", version=f"elmoc {VERSION}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in commands.items():
        subparsers.add_parser(name, help=summary)
    return str(parser.parse_args(given[:1]).command)


def _typed(prog: str) -> str:
    """What users typed: `elmoc` runs commands of other rooms under its own names."""
    program, *words = sys.argv
    if Path(program).name == "elmoc" and words and prog.startswith("python"):
        return f"elmoc {words[0]}"
    return prog


def new_parser(
    kind: type,
    *,
    prog: str,
    description: str,
    full: bool = True,
    inside: Mapping[str, Any] | None = None,
) -> argparse.ArgumentParser:
    """A parser with an option for each field of a dataclass.

    A field without a default is a positional argument; a list takes one or more values.
    A truth value is `--name` and `--no-name`. A dictionary is an option where its text
    is parsed (`parse`), or what it may hold is a group of options (`inside`). What the
    `extra` of a field's `Meta` says goes before that:

        option     its name in a command, such as `--format`, or two names and a blank
                   between them; also of a required option
        metavar    what stands for its value in the help
        flags      options that stand for a value: `{"--top": "top"}`
        repeat     a list is given one value at a time: `--set A=1 --set B=2`
        parse      makes the value of the text; what it raises is a `ValueError`
        rare       only `--help-all` shows it

    Args:
        kind: the dataclass.
        prog: what users type to run the command.
        description: what it does, in a sentence.
        full: whether the help shows options that are `rare`.
        inside: for a field that holds a dictionary, by its name (with a path, such as
            `how.settings`): an instance of a dataclass, whose fields are options. The
            dictionary gets only what the command line gives.
    """
    # What is not given is left out, and the dataclass has its default.
    parser = argparse.ArgumentParser(
        prog=_typed(prog), description=description, argument_default=argparse.SUPPRESS
    )
    _add_fields(parser, parser, kind, "", full, None, inside or {})
    if full or any(each.help == argparse.SUPPRESS for each in parser._actions):
        parser.add_argument(
            "--help-all",
            action="help",
            help="show all options, also those that few people need",
        )
    return parser


def _add_fields(
    parser: argparse.ArgumentParser,
    group: argparse._ActionsContainer,
    kind: type,
    prefix: str,
    full: bool,
    defaults: Any,
    inside: Mapping[str, Any],
    hidden_group: bool = False,
) -> None:
    for each in settings_of(kind):
        path = f"{prefix}{each.name}"
        hidden = hidden_group or (bool(each.extra.get("rare")) and not full)
        own = inside.get(path, getattr(defaults, each.name, None))
        inner = type(own) if path in inside else each.type
        if is_dataclass(inner):
            title = each.help or (inner.__doc__ or "").splitlines()[0].rstrip(".")
            new_group = parser.add_argument_group(None if hidden else title)
            within = f"{path}{_INSIDE}"
            _add_fields(parser, new_group, inner, within, full, own, inside, hidden)
        elif get_origin(each.type) is not dict or "parse" in each.extra:
            _add_option(group, each, prefix, hidden, defaults)


def _add_option(
    group: argparse._ActionsContainer,
    setting: Setting,
    prefix: str,
    hidden: bool,
    defaults: Any,
) -> None:
    extra = setting.extra
    is_list = get_origin(setting.type) in (list, tuple)
    default = getattr(defaults, setting.name, setting.default)
    required = default is MISSING
    text = setting.help.replace("%", "%%")
    if default not in (MISSING, None, False, "", (), []):
        text = f"{text} (default: {default})"
    options: dict[str, Any] = {"help": argparse.SUPPRESS if hidden else text}
    options["metavar"] = extra.get("metavar", setting.name.upper())
    if is_list and not extra.get("repeat"):
        options["nargs"] = "+"
    if required and "option" not in extra:
        group.add_argument(f"{prefix}{setting.name}", **options)
        return
    of_types = {int: "N", float: "X", Path: "PATH"}
    if "metavar" not in extra:
        options["metavar"] = "|".join(map(str, setting.choices)) or of_types.get(
            setting.type, setting.name.upper()
        )
    options["dest"] = f"{prefix}{setting.name}"
    name = extra.get("option", option_name(setting.name))
    for flag, value in extra.get("flags", {}).items():
        text = argparse.SUPPRESS if hidden else f"sets {name} to {value}"
        group.add_argument(
            flag, dest=options["dest"], action="store_const", const=value, help=text
        )
    if setting.type is bool:
        options["action"] = argparse.BooleanOptionalAction
    else:
        options |= {
            "type": extra.get("parse", partial(_number_or_text, setting.type)),
            "required": required,
        }
    if is_list:
        options["action"] = "append" if extra.get("repeat") else "extend"
    group.add_argument(*name.split(), **options)


def _number_or_text(kind: Any, text: str) -> Any:
    """A number as Python reads it, or one of a list of numbers. Other text stays as it
    is, for `convert` to refuse.
    """
    item = kind if get_origin(kind) not in (list, tuple) else get_args(kind)[0]
    try:
        return item(text) if item in (int, float) else text
    except ValueError:
        return text


def options_of(
    kind: type[Options], parser: argparse.ArgumentParser, argv: Sequence[str]
) -> Options:
    """The dataclass that a command line gives.

    Args:
        kind: the dataclass.
        parser: its `new_parser`.
        argv: the command line.

    Raises:
        InputError: an impossible value; it names the option.
    """
    values: dict[str, Any] = {}
    for path, value in vars(parser.parse_args(argv)).items():
        place = values
        *outer, field = path.split(_INSIDE)
        for each in outer:
            place = place.setdefault(each, {})
        place[field] = value
    # A flag of an option stands before it, and has the same path.
    names = {
        each.dest: each.option_strings[0] if each.option_strings else each.metavar
        for each in parser._actions
    }

    def name(path: str) -> str:
        return str(names.get(path.partition("[")[0], path))

    return convert(values, kind, name=name)
