"""Sources of inputs: the word vectors and layer states that all probes of a command share.

Another way to get layer states is another `LayerStates`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from downstream.inputs.feature_states import FeatureStates
from downstream.inputs.kinds import InputKind
from downstream.inputs.model_states import ModelStates
from downstream.inputs.sentence import Sentence
from downstream.inputs.word_table import WordTable


class LayerStates(Protocol):
    """Layer states of the sentences of a run."""

    layers: int
    width: int

    def lookup(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        """float32 [layers, n, width] on the CPU for each sentence; not to be written to."""

    def describe(self) -> dict[str, Any]:
        """What a line of results says about where the states come from."""


@dataclass(frozen=True)
class InputSources:
    """Where the inputs of a run come from; shared by all its probes."""

    words: WordTable | None
    states: LayerStates | None

    def select(self, kind: InputKind) -> "InputSources":
        """Those sources that the `kind` of inputs reads; all of them must be there."""
        assert self.words is not None or not kind.words
        assert self.states is not None or not kind.states
        return InputSources(words=self.words if kind.words else None, states=self.states if kind.states else None)

    def describe(self) -> dict[str, dict[str, Any] | None]:
        """The fields `features` and `vectors` of a line of results."""
        return {
            "features": None if self.states is None else self.states.describe(),
            "vectors": None if self.words is None else self.words.describe(),
        }


def open_sources(
    kinds: Collection[InputKind],
    *,
    sentences: Sequence[Sentence],
    vectors: str | None,
    features: Path | None,
    model: Path | None,
    model_vectors: str | None,
    memory_limit: float,
    device: str,
) -> InputSources:
    """Look up what the kinds of inputs read for all sentences of a run, and print what it is.

    Args:
        vectors: word vectors, e.g. `FILE.bin` or `random:1:300`.
        features, model: where layer states come from: a feature file or a model directory.
        model_vectors, memory_limit, device: how the model is read; bytes of its states that are kept.
    """
    states: LayerStates | None = None
    if any(kind.states for kind in kinds):
        if model is not None:
            states = ModelStates(
                model, sentences=sentences, memory_limit=memory_limit, vectors=model_vectors, device=device
            )
        else:
            assert features is not None, "the command line names a source of layer states"
            states = FeatureStates(features, sentences=sentences)
        print(f"states {model or features}: {states.layers} layers of {states.width}", flush=True)
    words = None
    if any(kind.words for kind in kinds):
        assert vectors is not None, "the command line names the word vectors"
        words = WordTable(vectors, sentences=sentences)
        count, size = words.vectors.shape
        print(
            f"words  {vectors}: {size} dimensions; {words.missing:,} of {count:,} distinct words have none", flush=True
        )
    return InputSources(words=words, states=states)
