"""Command lines: how the options of a command, or of a process that another one
starts, become its frozen dataclass.

Each field of the dataclass is an option, by the rules of `add_options`. A dataclass
inside it is a group of options. `--json -` reads the same dataclass as one JSON object
from standard input, which is how one process of the project starts another.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from elmoc.errors import reading, run_command
from elmoc.process import follow_parent, wait_without_spinning
from elmoc.settings import Setting, convert, option_name, settings_of

Options = TypeVar("Options")

# Between the names of a dataclass and of a field inside it, as argparse keeps a value.
_INSIDE = "."


def run_main(
    kind: type[Options],
    run: Callable[[Options], object],
    argv: Sequence[str] | None,
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
        inside: see `add_options`.
    """
    given = sys.argv[1:] if argv is None else argv
    full = "--help-all" in given
    parser = new_parser(
        kind, prog=prog, description=description, full=full, inside=inside
    )
    wait_without_spinning()
    if list(given) == ["--json", "-"]:
        return run_command(lambda: run(read_json_options(kind)))
    namespace = parser.parse_args(given)
    return run_command(lambda: run(options_of(kind, namespace)))


def read_json_options(kind: type[Options]) -> Options:
    """The options of a process that was started with `--json -`; see `convert`."""
    follow_parent()
    with reading("the options on standard input"):
        values = msgspec.json.decode(sys.stdin.buffer.read())
    return convert(values, kind, where="")


def new_parser(
    kind: type,
    *,
    prog: str,
    description: str,
    full: bool = True,
    inside: Mapping[str, Any] | None = None,
) -> argparse.ArgumentParser:
    """A parser with the options of a dataclass.

    Args:
        kind: the dataclass.
        prog: what users type to run the command.
        description: what it does, in a sentence.
        full: whether its help has the options that few people need (`rare`), too.
        inside: see `add_options`.
    """
    parser = argparse.ArgumentParser(prog=prog, description=description)
    add_options(parser, kind, full=full, inside=inside)
    return parser


def add_options(
    parser: argparse.ArgumentParser,
    kind: type,
    *,
    full: bool = True,
    defaults: Any = None,
    inside: Mapping[str, Any] | None = None,
) -> None:
    """Add an option for each field of a dataclass.

    A field without a default is a positional argument; a list takes one or more values.
    A truth value is `--name` and `--no-name`. A dictionary is an option where its text
    is parsed (`parse`), or what it may hold is a group of options (`inside`). What the
    `extra` of a field's `Meta` says goes before that:

        option     its name in a command, such as `--format`; also of a required option
        short      a second name, such as `-o`
        metavar    what stands for its value in the help
        flags      options that stand for a value: `{"--top": "top"}`
        repeat     a list is given one value at a time: `--set A=1 --set B=2`
        parse      makes the value of the text; what it raises is a `ValueError`
        rare       only `--help-all` shows it

    Args:
        parser: gets the options. Their values are None where they are not given.
        kind: the dataclass.
        full: whether the help shows options that are `rare`.
        defaults: an instance with the defaults that the help shows, if they are not the
            dataclass's own.
        inside: for a field that holds a dictionary, by its name (with a path, such as
            `how.settings`): an instance of a dataclass, whose fields are options. The
            dictionary gets only what the command line gives.
    """
    if any(each.extra.get("rare") for each in settings_of(kind)):
        text = "show all options, also those that few people need"
        parser.add_argument("--help-all", action="help", help=text)
    _add_fields(parser, parser, kind, "", full, defaults, inside or {})


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
            place = f"{path}{_INSIDE}"
            _add_fields(parser, new_group, inner, place, full, own, inside, hidden)
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
    options: dict[str, Any] = {"help": _help_of(setting, default, hidden)}
    metavar = extra.get("metavar", setting.name.upper())
    if required and "option" not in extra:
        if is_list:
            options["nargs"] = "+"
        group.add_argument(f"{prefix}{setting.name}", metavar=metavar, **options)
        return
    options["dest"] = f"{prefix}{setting.name}"
    options["default"] = None
    names = [extra.get("option", option_name(setting.name))]
    if "short" in extra:
        names.insert(0, extra["short"])
    for flag, value in extra.get("flags", {}).items():
        same = f"{names[-1]} {value}"
        if setting.type is bool:
            same = names[-1] if value else f"--no-{names[-1].removeprefix('--')}"
        text = argparse.SUPPRESS if hidden else f"the same as {same}"
        group.add_argument(
            flag, dest=options["dest"], action="store_const", const=value, help=text
        )
    if setting.type is bool:
        group.add_argument(*names, action=argparse.BooleanOptionalAction, **options)
        return
    options["type"] = extra.get(
        "parse", partial(_number_or_text, _item_type(setting.type))
    )
    if is_list:
        options["action"] = "append" if extra.get("repeat") else "extend"
        if not extra.get("repeat"):
            options["nargs"] = "+"
    if "metavar" not in extra:
        metavar = "|".join(map(str, setting.choices)) or _METAVARS.get(
            setting.type, metavar
        )
    group.add_argument(*names, metavar=metavar, required=required, **options)


def _item_type(kind: Any) -> Any:
    """The type of one value of an option: of the items, where it takes a list."""
    return kind if get_origin(kind) not in (list, tuple) else get_args(kind)[0]


def _number_or_text(kind: Any, text: str) -> Any:
    """A number as Python reads it. Other text stays as it is, for `convert` to refuse."""
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


# What stands for a value of a type in the help.
_METAVARS = {int: "N", float: "X", Path: "PATH"}


def _help_of(setting: Setting, default: Any, hidden: bool) -> str:
    """The help of an option, with its default where that says something."""
    if hidden:
        return argparse.SUPPRESS
    text = setting.help
    if default is not MISSING and default not in (None, False, "", (), []):
        shown = default
        if isinstance(default, list | tuple):
            shown = " ".join(map(str, default))
        text = f"{text} (default: {shown})"
    return text.replace("%", "%%")


def options_of(kind: type[Options], namespace: argparse.Namespace) -> Options:
    """The dataclass that a parsed command line gives.

    Args:
        kind: the dataclass.
        namespace: of a parser that `add_options` has filled.

    Raises:
        InputError: an impossible value; it names the option.
    """
    names = _option_names(kind)

    def name(path: str) -> str:
        field = path.partition("[")[0]
        return names.get(field, path)

    return convert(given_values(namespace), kind, where="", name=name)


def given_values(namespace: argparse.Namespace) -> dict[str, Any]:
    """The values that a command line gives, nested as the dataclass is."""
    values: dict[str, Any] = {}
    for name, value in vars(namespace).items():
        if value is None:
            continue
        place = values
        *outer, field = name.split(_INSIDE)
        for each in outer:
            place = place.setdefault(each, {})
        place[field] = value
    return values


def chosen(namespace: argparse.Namespace, defaults: Any) -> Any:
    """`defaults` with what a command line gives of their fields."""
    own = {each.name for each in fields(defaults)}
    given = {name: each for name, each in vars(namespace).items() if name in own}
    given = {name: each for name, each in given.items() if each is not None}
    values = asdict(defaults) | given
    return convert(values, type(defaults), where="", name=option_name)


def _option_names(kind: type, prefix: str = "") -> dict[str, str]:
    """What a user calls each field of a dataclass, by the field's path."""
    names: dict[str, str] = {}
    for each in settings_of(kind):
        path = f"{prefix}{each.name}"
        if isinstance(each.type, type) and is_dataclass(each.type):
            names |= _option_names(each.type, f"{path}{_INSIDE}")
        if each.default is MISSING and "option" not in each.extra:
            names[path] = each.extra.get("metavar", each.name.upper())
        else:
            names[path] = each.extra.get("option", option_name(each.name))
    return names
