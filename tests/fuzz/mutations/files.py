"""Mutations of the file itself: it is missing, empty, no file at all, or one that never ends."""

import os
from collections.abc import Callable
from pathlib import Path


def missing(path: Path) -> None:
    """Nothing is there."""


def empty(path: Path) -> None:
    path.touch()


def folder(path: Path) -> None:
    path.mkdir()


def named_pipe(path: Path) -> None:
    """Opening it waits until someone writes."""
    os.mkfifo(path)


def dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def endless_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


FILES: tuple[Callable[[Path], None], ...] = (
    *(missing, empty, folder, named_pipe, dangling_link, link_to_itself, endless_device),
)
