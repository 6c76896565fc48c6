"""How do the hyper-parameters of a task become options of its command?"""

import argparse
from dataclasses import fields, replace
from typing import Any, TypeVar

from downstream.training import TrainingSettings

Settings = TypeVar("Settings", bound=TrainingSettings)


def add_settings(parser: argparse.ArgumentParser, *, published: TrainingSettings, small: TrainingSettings) -> None:
    """Add `--small` and one option for each field of the settings."""
    group = parser.add_argument_group("hyper-parameters", "by default those published for ELMo")
    changed = [
        f"{one.name.replace('_', ' ')} {getattr(small, one.name)}"
        for one in fields(small)
        if getattr(small, one.name) != getattr(published, one.name)
    ]
    group.add_argument("--small", action="store_true", help=f"a preset for a CPU: {', '.join(changed)}")
    for one in fields(published):
        group.add_argument(
            f"--{one.name.replace('_', '-')}",
            type=type(getattr(published, one.name)),
            metavar="N",
            help=f"{one.metadata['help']} (default: {getattr(published, one.name)})",
        )


def chosen_settings(options: argparse.Namespace, *, published: Settings, small: Settings) -> Settings:
    """The settings that the command line asks for: an option goes before the preset."""
    given: dict[str, Any] = {
        one.name: getattr(options, one.name) for one in fields(published) if getattr(options, one.name) is not None
    }
    return replace(small if options.small else published, **given)
