"""Choose: which layout has a name, and which layout a file has."""

from elmoc.errors import InputError, shortened
from elmoc.features.layouts import FORMAT_VERSION, LayoutWriter
from elmoc.features.layouts.allennlp import AllennlpWriter, BilmWriter, is_group
from elmoc.features.layouts.e2e_coref import E2eCorefWriter
from elmoc.features.layouts.flat import OFFSETS, STATES, FlatWriter
from elmoc.files.hdf5 import CheckedFile

# By the names of `LayoutName`; each writer has its reader.
LAYOUTS: dict[str, type[LayoutWriter]] = {
    writer.layout: writer
    for writer in (AllennlpWriter, BilmWriter, E2eCorefWriter, FlatWriter)
}


def choose_layout(
    file: CheckedFile, name: str | None, version: int
) -> type[LayoutWriter]:
    """The layout of a file.

    Args:
        file: the file.
        name: of the layout, as the file says; None in a file of another tool, whose
            layout is known by its members.
        version: of the layout.

    Raises:
        InputError: the layout or its version is not known here.
    """
    if name is None:
        return LAYOUTS[_foreign_layout(file)]
    if name not in LAYOUTS or version != FORMAT_VERSION:
        raise InputError(
            f"it has the layout {shortened(name)} in version {version}, this elmoc "
            f"reads {', '.join(LAYOUTS)} in version {FORMAT_VERSION}: use the elmoc "
            "that wrote it"
        )
    return LAYOUTS[name]


def _foreign_layout(file: CheckedFile) -> str:
    if STATES in file and OFFSETS in file:
        return "flat"
    names = file.names()
    # A file without any member raises an error here.
    if not is_group(file, names[0]):
        return "allennlp"
    for name in names:
        if not is_group(file, name) or f"{name}/0" not in file:
            return "allennlp"
    return "e2e-coref"
