"""Tags of entities: how does each kind of tags become BIO, and BIO become BIOUL?"""

from seqeval.metrics.sequence_labeling import get_entities

from downstream.readers.columns import Span, bio_tags

# Letters of BIOLU, BMES and BMEWO → letters of BIOES.
_AS_BIOES = {"L": "E", "U": "S", "M": "I", "W": "S"}
# The type of entities whose tags name none.
UNTYPED = "-ENTITY"


def bio_to_bioul(tags: list[str]) -> list[str]:
    """BIO → BIOUL: the last word of an entity is L, an entity of one word is U."""
    coded = ["O"] * len(tags)
    for name, begin, end in get_entities(tags):
        places = "U" if begin == end else f"B{'I' * (end - begin - 1)}L"
        coded[begin : end + 1] = [f"{place}-{name}" for place in places]
    return coded


def iob_to_bio(tags: list[str]) -> list[str]:
    """BIO tags of the entities that conlleval sees in BIO, IOB1, BIOES, BIOLU or BMES
    tags, which may be without types.

    An `I-X` that does not follow an entity word of type X begins an entity.
    """
    typed = [tag if tag == "O" or "-" in tag else tag + UNTYPED for tag in tags]
    known = [_AS_BIOES.get(tag[0], tag[0]) + tag[1:] for tag in typed]
    return bio_tags([Span(*entity) for entity in get_entities(known)], len(tags))
