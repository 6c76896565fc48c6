"""Layouts of feature files: the reader and the writer of one form on disk each, and the
table of them.

    interface   what a reader and a writer give, and how a file is written
    allennlp, e2e_coref, flat   the layouts; `bilm` is allennlp's without a map

`FeatureFile` opens a file, and its layout finds the sentences in it;
`LAYOUTS[name].open(…)` writes one.
"""

from typing import Any

from elmoc.errors import InputError, shortened
from elmoc.features.layouts.allennlp import AllennlpWriter, BilmWriter, is_group
from elmoc.features.layouts.e2e_coref import E2eCorefWriter
from elmoc.features.layouts.flat import OFFSETS, STATES, FlatWriter
from elmoc.features.layouts.interface import FORMAT_VERSION, LayoutWriter
from elmoc.files.hdf5 import CheckedFile

# Attributes of the root that say how the file is read, beside those that say what it
# was made from.
FORM_ATTRIBUTES = ("layout", "format_version", "single", "sentence_keys")


# By the names of `LayoutName`; each writer has its reader.
LAYOUTS: dict[str, type[LayoutWriter]] = {
    writer.layout: writer
    for writer in (AllennlpWriter, BilmWriter, E2eCorefWriter, FlatWriter)
}


def layout_of(file: CheckedFile, attributes: dict[str, Any]) -> str:
    """The name of a file's layout: by its attribute `layout`, or, of a foreign file, by
    what is in it.

    Raises `InputError` for a layout or version that is not known here.
    """
    version = attributes.get("format_version", FORMAT_VERSION)
    name = attributes.get("layout")
    if name is None:
        if STATES in file and OFFSETS in file:
            return "flat"
        names = file.names()
        has_documents = is_group(file, names[0]) and all(
            is_group(file, name) and f"{name}/0" in file for name in names
        )
        return (
            "e2e-coref" if has_documents else "allennlp"
        )  # no name at all is an error
    if (
        isinstance(name, str)
        and name in LAYOUTS
        and str(version) == str(FORMAT_VERSION)
    ):
        return name
    raise InputError(
        f"it has the layout {shortened(str(name))} in version {shortened(str(version))}, this elmoc reads "
        f"{', '.join(LAYOUTS)} in version {FORMAT_VERSION}: use the elmoc that wrote it"
    )
