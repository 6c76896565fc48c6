"""`elmoc import-elmo`: the command that makes a model directory of an original ELMo or
an ELMoForManyLangs model.
"""

import os
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from elmoc.errors import InputError, say


@dataclass(frozen=True, kw_only=True)
class Options:
    """The files of the model, and the directory to write."""

    paths: Annotated[
        list[str],
        Meta(
            description="options.json and weights.hdf5 of bilm-tf or AllenNLP, or a "
            "directory with these or with an ELMoForManyLangs model; and last the "
            "model directory to write",
            extra={"metavar": "PATH"},
        ),
    ]


def run(options: Options) -> None:
    """Import a model."""
    *sources, output = options.paths
    is_directory = len(sources) == 1 and not os.path.isfile(sources[0])
    if not is_directory and len(sources) != 2:
        raise InputError(
            "import-elmo takes OPTIONS.json WEIGHTS.hdf5 MODEL, or the DIRECTORY of "
            "these or of an ELMoForManyLangs model and MODEL, not "
            f"{' '.join(options.paths)}"
        )
    from elmoc.files.writing import locked

    with locked(output, new=True):
        # Imported late: an output that is there is told at once.
        from elmoc.interop.many_langs import read_many_langs
        from elmoc.interop.original_elmo import find_original_elmo, read_original_elmo
        from elmoc.model_directory import write_model_directory

        files = find_original_elmo(sources[0]) if is_directory else tuple(sources)
        model = read_original_elmo(*files) if files else read_many_langs(sources[0])
        write_model_directory(output, model)
    encoder = model.encoder.config.sizes.description
    say(
        f"{output}: {encoder}, forward and backward, with its character CNN as word "
        "vectors"
    )
