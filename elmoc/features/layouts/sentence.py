"""Sentences of feature files: what a writer is told of each one, and the form that all of them share."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """A sentence of a feature file.

    tokens: its words.
    line: its text without white space around it, by which it is found again; by default the words with one blank
        between them.
    document: the key of the document that it is a part of (`doc_key` in jsonlines).
    """

    tokens: Sequence[str]
    line: str = ""
    document: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "line", self.line.strip() or " ".join(self.tokens))

    @property
    def is_divided(self) -> bool:
        """Whether the line has these words with white space between them, and none in them, so that they find it."""
        return self.line.split() == list(self.tokens)


@dataclass(frozen=True, kw_only=True)
class FeatureShape:
    """The form of all sentences of a feature file: `[layers, n, width]`, or `[n, width]`, for n words.

    layers: layers a sentence has in the file.
    width: width of the vectors, 2P.
    dtype: of the numbers, `float32` or `float16`.
    single: whether there is no axis of layers: one layer, the top one or the average.
    words: the words of all sentences together, which the flat layout has to know beforehand.
    """

    layers: int
    width: int
    dtype: str
    single: bool
    words: int | None = None

    def of(self, words: int) -> tuple[int, ...]:
        """The shape of a sentence of that many words."""
        return (words, self.width) if self.single else (self.layers, words, self.width)


@dataclass(frozen=True, kw_only=True)
class FeatureOptions:
    """What a feature file is written with; see `elmoc.features.writer.write_features`."""

    shape: FeatureShape
    compress: bool = False
    sentence_map: bool = True
    sentence_keys: bool = False
