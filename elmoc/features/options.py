"""Dump options: what a feature file gets of the sentences' layer states, in which form and type of numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

from elmoc.errors import InputError, shortened
from elmoc.features.layout_names import LAYOUT_NAMES, require_layout_of_keys
from elmoc.model import BATCH_SIZE, BATCH_WORDS


@dataclass(frozen=True, kw_only=True)
class DumpOptions:
    """What is dumped of the sentences, and how.

    layers: `all`, `top`, `average`, or indices such as `0,2`.
    dtype: of the numbers in the file, `float32` or `float16`.
    layout, compress, sentence_map, sentence_keys: see `write_features`.
    batch_size, batch_words: sentences and words a batch at most.
    allow_empty: write `[L + 1, 0, 2P]` for an empty line instead of refusing it.
    carry_state: carry the state from each sentence of a document to the next. Blank lines of a text end a document.
    unknown: `zero`, or `error` to refuse words without a vector.
    resume: go on with a dump that was killed.
    command_line: recorded in the file.
    """

    layers: str = "all"
    dtype: str = "float32"
    layout: str = "allennlp"
    compress: bool = False
    sentence_map: bool = True
    sentence_keys: bool = False
    batch_size: int = BATCH_SIZE
    batch_words: int = BATCH_WORDS
    allow_empty: bool = False
    carry_state: bool = False
    unknown: str = "zero"
    resume: bool = False
    command_line: str = ""

    def __post_init__(self) -> None:
        require_layout_of_keys(self.layout, sentence_keys=self.sentence_keys)

    @property
    def found_by_words(self) -> bool:
        """Whether the sentences of the file can be found by their words."""
        return LAYOUT_NAMES[self.layout].found_by_words and (self.sentence_map or self.sentence_keys)


class LayerSelection(NamedTuple):
    """The layers that a feature file gets.

    select: takes them from layer states [L + 1, n, columns]; [n, columns] when it is a single one.
    names: those of the layers that it gives.
    single: whether there is no axis of layers.
    """

    select: Callable[[Tensor], Tensor]
    names: list[str]
    single: bool


def layer_selection(layers: str, count: int) -> LayerSelection:
    """The selection that `layers` names: `all`, `top`, `average`, or indices below `count` such as `0,2`."""
    if layers == "all":
        return LayerSelection(lambda states: states, [str(layer) for layer in range(count)], False)
    if layers == "top":
        return LayerSelection(lambda states: states[-1], ["top"], True)
    if layers == "average":
        return LayerSelection(lambda states: states.mean(dim=0), ["average"], True)
    indices = {str(layer): layer for layer in range(count)}
    names = layers.split(",")
    if not set(names) <= indices.keys():
        raise InputError(f"--layers takes indices from 0 to {count - 1}, such as 0,1; not {shortened(layers)!r}")
    chosen = [indices[name] for name in names]
    return LayerSelection(lambda states: states[chosen], names, False)
