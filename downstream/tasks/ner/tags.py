"""Tags of entities: which BIO tags does a column of tags mean?

A file has one spelling of tags: place and type of an entity (`B-PER`, `B_PER`,
`PER-B`), types alone (`PERSON`), or brackets (`(PERSON*`). Where tags leave open which
words are one entity, a note or a warning says how they are read.
"""

import re
import reprlib
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path

from downstream.printing import counted
from downstream.readers.columns import (
    ColumnSentence,
    bio_spans,
    bio_tags,
    outermost,
)
from elmoc.errors import note, warn

OUTSIDE = "O"
# The type of entities whose tags name none.
UNTYPED = "-ENTITY"

# O, the place of a word in its entity and the entity's type where there are several, or
# a bracket: (GPE*, *, *), (GPE).
TAG = re.compile(r"O|[BIELSUMW](-\S{1,100})?|[(*].{0,100}")
_PLACES = "BIELSUMW"
_PLACE = f"(?P<place>[{_PLACES}])"
_TYPE = r"(?P<type>\S{1,100})"
# Other spellings, of which the first that fits all tags of a file is the file's.
_SPELLINGS = {
    "B_TYPE": re.compile(f"{_PLACE}_{_TYPE}"),
    "TYPE-B": re.compile(f"{_TYPE}[-_]{_PLACE}"),
    "b-type": re.compile(f"{_PLACE}-{_TYPE}", re.IGNORECASE),
    # A letter before or behind the hyphen is a place, in a file of several spellings.
    "TYPE": re.compile(
        r"(?P<place>)(?P<type>(?!\w[-_])[^\W\d_][^\s()*]{1,99}(?<![-_][BIELSUMW]))"
    ),
}
# Letters of BIOLU, BMES and BMEWO → letters of BIOES.
_AS_BIOES = {"L": "E", "U": "S", "M": "I", "W": "S"}


def bio_to_bioul(tags: Sequence[str]) -> list[str]:
    """BIO → BIOUL: the last word of an entity is L, an entity of one word is U."""
    coded = [OUTSIDE] * len(tags)
    for name, first, last in bio_spans(tags):
        places = "U" if first == last else f"B{'I' * (last - first - 1)}L"
        coded[first : last + 1] = [f"{place}-{name}" for place in places]
    return coded


def to_bio(tags: Sequence[str]) -> list[str]:
    """BIO tags of the entities that conlleval sees in BIO, IOB1, BIOES, BIOLU or BMES
    tags, which may be without types.

    An `I-X` that does not follow an entity word of type X begins an entity.
    """
    typed = [tag if tag == OUTSIDE or "-" in tag else tag + UNTYPED for tag in tags]
    known = [_AS_BIOES.get(tag[0], tag[0]) + tag[1:] for tag in typed]
    return bio_tags(bio_spans(known), len(tags))


def read_tags(sentences: Sequence[ColumnSentence], column: int) -> list[list[str]]:
    """The BIO tags of each sentence of a file.

    Raises:
        InputError: a tag that is none in the file's spelling; it names the line.
    """
    path = sentences[0].file
    found = chain.from_iterable(each.column(column) for each in sentences)
    standard = _standard_tags(path, set(found))
    inner = 0
    places: set[str] = set()
    tags: list[list[str]] = []
    for each in sentences:
        cells = [standard.get(tag, tag) for tag in each.column(column)]
        for place, tag in enumerate(cells):
            if not TAG.fullmatch(tag):
                raise each.error(
                    place,
                    f"{reprlib.repr(tag)} is no tag like O, B-TYPE, I-TYPE (nor E-, "
                    "S-, L-, U-, M- or W-TYPE), and no bracket like (TYPE*: mend it, "
                    "or give the column of the tags by --column",
                )
            places.add(tag[0])
        # OntoNotes nests entities; a tagger gives a word one tag.
        if any(tag[0] in "(*" for tag in cells):
            spans = each.bracketed(column)
            outer = outermost(spans)
            inner += len(spans) - len(outer)
            cells = bio_tags(outer, len(cells))
        tags.append(to_bio(cells))
    if inner:
        note(
            f"{path}: {counted(inner, 'entity', 'entities')} inside others are left out"
        )
    entities = list(map(bio_spans, tags))
    places &= set(_PLACES)
    count = sum(map(len, entities))
    several = sum(span.first < span.last for span in chain.from_iterable(entities))
    if places and not places & set("BSUW") and several:
        note(
            f"{path}: no tag begins an entity (B-): words of one type side by side are "
            f"read as one, as in {several:,} of {count:,} entities"
        )
    beside = sum(
        (one.label, one.last + 1) == (other.label, other.first)
        for one, other in chain.from_iterable(map(pairwise, entities))
    )
    if places == {"B"} and beside:
        warn(
            f"{path}: no tag continues an entity (I-): each word is read as one, "
            f"though {beside:,} of {count:,} stand behind one of their type"
        )
    return tags


def _standard_tags(path: Path, found: set[str]) -> dict[str, str]:
    """The form of `TAG` for each tag of a file in another spelling; empty for a file
    that has no spelling, or needs none.
    """
    types = {tag for tag in found if tag.upper() != OUTSIDE}
    if not types or all(map(TAG.fullmatch, found)):
        return {}
    for name, form in _SPELLINGS.items():
        matches = [match for tag in types if (match := form.fullmatch(tag))]
        # A column of parts of speech has types alone, and no O.
        if len(matches) == len(types) and (name != "TYPE" or types != found):
            some = ", ".join(sorted(types)[:5])
            note(f"{path}: tags are spelled {name}, as in {some}, and read as B-TYPE")
            standard = dict.fromkeys(found, OUTSIDE)
            for match in matches:
                standard[match[0]] = f"{match['place'].upper() or 'I'}-{match['type']}"
            return standard
    return {}
