"""Inspecting: what a feature file holds, in words."""

from collections.abc import Iterator

from elmoc.errors import one_line
from elmoc.features.reader import FeatureFile
from elmoc.files.writing import human_bytes

_SAID = {"model", "word_vectors", "layers"}


def describe(features: FeatureFile, *, count_words: bool) -> Iterator[tuple[str, str]]:
    """What it is and what it says, in pairs; with `count_words`, every sentence is looked at (but not read)."""
    said = features.attributes
    yield "layout", features.layout + (", packed with " + features.compression if features.compression else "")
    for name in ("model", "word_vectors"):
        yield name.replace("_", " "), one_line(str(said.get(name, "not said")))
    names = one_line(", ".join(features.layer_names))
    yield "layers", f"{names}: {'[n, 2P]' if features.single else f'[{features.layers}, n, 2P]'}, 2P = {features.width}"
    yield "numbers", features.dtype.name
    yield "sentences", f"{len(features):,}, {'also' if features.has_map else 'not'} found by their words"
    if count_words:
        longest = f", at most {features.lengths.max():,} a sentence" if len(features) else ""
        yield "words", f"{features.tokens:,}{longest}"
    if features.documents:
        yield "documents", f"{len(features.documents):,}"
    yield from _sizes(features)
    for name in sorted(said.keys() - _SAID):
        yield one_line(name.replace("_", " ")), one_line(str(said[name]))


def _sizes(features: FeatureFile) -> Iterator[tuple[str, str]]:
    whole, *parts = features.files
    size = sum(path.stat().st_size for path in features.files)
    yield "size", human_bytes(size) + (f", of which {human_bytes(whole.stat().st_size)} links" if parts else "")
    if parts:
        yield "parts", f"{len(parts)}, in {parts[0].parent}: " + ", ".join(path.name for path in parts)
