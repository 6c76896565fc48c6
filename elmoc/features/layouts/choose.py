"""Choose: which layout has a name, and which layout a file has."""

from elmoc.errors import InputError, shortened
from elmoc.features.layouts import FORMAT_VERSION, FeatureRecord, LayoutWriter
from elmoc.features.layouts.allennlp import AllennlpWriter, BilmWriter, is_group
from elmoc.features.layouts.e2e_coref import E2eCorefWriter
from elmoc.features.layouts.flat import OFFSETS, STATES, FlatWriter
from elmoc.files.hdf5 import CheckedFile

# By the names of `LayoutName`; each writer has its reader.
LAYOUTS: dict[str, type[LayoutWriter]] = {
    writer.layout: writer
    for writer in (AllennlpWriter, BilmWriter, E2eCorefWriter, FlatWriter)
}


def choose_layout(file: CheckedFile, record: FeatureRecord) -> type[LayoutWriter]:
    """The layout of a file, as it says itself; that of a file of another tool is known
    by its members.

    Raises:
        InputError: the layout or its version is not known here.
    """
    name = record.layout or _foreign_layout(file)
    if name not in LAYOUTS or record.format_version != FORMAT_VERSION:
        raise InputError(
            f"it has the layout {shortened(name)} in version {record.format_version}, "
            f"this elmoc reads {', '.join(LAYOUTS)} in version {FORMAT_VERSION}: use "
            "the elmoc that wrote it"
        )
    return LAYOUTS[name]


def _foreign_layout(file: CheckedFile) -> str:
    if STATES in file and OFFSETS in file:
        return "flat"
    # Lazily: a file of sentences is known by its first member.
    are_documents = (
        is_group(file, name) and f"{name}/0" in file for name in file.names()
    )
    return "e2e-coref" if all(are_documents) else "allennlp"
