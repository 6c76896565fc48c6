"""Names of layouts of feature files, and what each can and needs: all that it takes to parse a command line.

Readers and writers, which load HDF5's library, are in `elmoc.features.layouts.LAYOUTS`, by the same names.
"""

from typing import NamedTuple

from elmoc.errors import InputError


class LayoutTraits(NamedTuple):
    """What is known of a layout by its name."""

    needs_documents: bool = False  # every sentence has to be part of a document
    found_by_words: bool = False  # by a map (`sentence_map`), or as keys (`sentence_keys`)


LAYOUT_NAMES = {
    "allennlp": LayoutTraits(found_by_words=True),
    "bilm": LayoutTraits(),
    "e2e-coref": LayoutTraits(needs_documents=True),
    "flat": LayoutTraits(),
}


def require_layout_of_keys(layout: str, *, sentence_keys: bool) -> None:
    """Raise an `InputError` when sentences are to be keys in a layout that has none of them."""
    if sentence_keys and not LAYOUT_NAMES[layout].found_by_words:
        raise InputError(f"sentences cannot be keys in the {layout} layout: leave sentence keys out")
