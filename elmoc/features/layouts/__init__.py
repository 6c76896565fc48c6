"""Layouts of feature files: the reader and the writer of one form on disk each, and the table of them.

    interface   what a reader and a writer give
    allennlp, bilm, e2e_coref, flat   the layouts
    sentence    what a writer is told of a sentence, and the form that all share
    datasets    how the dataset of a sentence is made
    keys        sentences as names of datasets

`FeatureFile` and `write_features` open the HDF5 file, keep its attributes, and see to atomic writing; a layout finds or
puts sentences in the open file.
"""

from typing import Any

import h5py

from elmoc.errors import InputError, shortened
from elmoc.features.layouts.allennlp import AllennlpReader, AllennlpWriter
from elmoc.features.layouts.bilm import BilmReader, BilmWriter
from elmoc.features.layouts.e2e_coref import E2eCorefReader, E2eCorefWriter
from elmoc.features.layouts.flat import OFFSETS, STATES, FlatReader, FlatWriter
from elmoc.features.layouts.interface import Layout
from elmoc.files.hdf5 import CheckedFile

FORMAT_VERSION = 1
# Attributes of the root that say how the file is read, beside those that say what it was made from.
FORM_ATTRIBUTES = ("layout", "format_version", "single", "sentence_keys")
# By the names of `LAYOUT_NAMES`.
LAYOUTS = {
    "allennlp": Layout(AllennlpReader, AllennlpWriter),
    "bilm": Layout(BilmReader, BilmWriter),
    "e2e-coref": Layout(E2eCorefReader, E2eCorefWriter),
    "flat": Layout(FlatReader, FlatWriter),
}


def layout_of(file: CheckedFile, attributes: dict[str, Any]) -> str:
    """The name of a file's layout: by its attribute `layout`, or, of a foreign file, by what is in it.

    Raises `InputError` for a layout or version that is not known here.
    """
    version, name = attributes.get("format_version", FORMAT_VERSION), attributes.get("layout")
    if name is None:
        if STATES in file and OFFSETS in file:
            return "flat"
        first = file.names()[0].encode()  # no name at all is an error
        is_own = file.group("").links.get_info(first).type == h5py.h5l.TYPE_HARD
        has_groups = is_own and h5py.h5o.get_info(file.group(""), first).type == h5py.h5o.TYPE_GROUP
        return "e2e-coref" if has_groups else "allennlp"
    if isinstance(name, str) and name in LAYOUTS and str(version) == str(FORMAT_VERSION):
        return name
    raise InputError(
        f"{file.path} has the layout {shortened(str(name))} in version {shortened(str(version))}, this elmoc reads "
        f"{', '.join(LAYOUTS)} in version {FORMAT_VERSION}: use the elmoc that wrote it"
    )
