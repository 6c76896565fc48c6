"""`elmoc package`: the command that makes the source of a Python package of a model."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from elmoc.commands import ModelOptions
from elmoc.errors import say


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """The package."""

    output: Annotated[
        Path, Meta(description="the folder to write", extra={"metavar": "OUT"})
    ]
    name: Annotated[
        str,
        Meta(
            pattern="^[a-z][a-z0-9_]{0,40}$",
            description="the model's name, which `ElmoC.from_pretrained` takes",
            extra={"option": "--name"},
        ),
    ]


def run(options: Options) -> None:
    """Write the folder."""
    from elmoc.files.writing import atomic_directory, locked
    from elmoc.model import ElmoC
    from elmoc.model_directory import CARD
    from elmoc.sharing.installed import package_name, write_package_files

    elmo = ElmoC.from_pretrained(options.model, vectors=options.vectors)
    with locked(options.output, new=True), atomic_directory(options.output) as folder:
        package = folder / package_name(options.name)
        elmo.save_pretrained(package, bundle_vectors=True)
        # A card that was written by hand, and the licence.
        for pattern in (CARD, "LICEN[CS]E*"):
            for file in Path(str(elmo.directory.path)).glob(pattern):
                shutil.copyfile(file, package / file.name)
        write_package_files(
            folder,
            options.name,
            elmo.full_fingerprint.replace(" ", ".").replace(":", "."),
        )
    say(
        f"{options.output}: `pip install {options.output.resolve()}` has "
        f'ElmoC.from_pretrained("{options.name}") find it'
    )
