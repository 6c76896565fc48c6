"""Layer states computed from a model directory, without a feature file."""

from collections import ChainMap
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from torch import Tensor

from downstream.inputs.sentence import Sentence
from elmoc.files.writing import human_bytes
from elmoc.model import ElmoC
from elmoc.progress import progress_bar


class ModelStates:
    """Layer states computed here, the same as those of a feature file of float32 that is dumped from that model here.

    The states of the first sentences, up to `memory_limit` bytes, are computed at once and kept. Those of the others
    are computed whenever they are read; a printed line says how many. `vectors`, `pooling` and `device` go to
    `ElmoC.from_pretrained`, whose `InputError`s are raised.
    """

    def __init__(
        self,
        path: Path,
        *,
        sentences: Sequence[Sentence],
        memory_limit: float,
        vectors: str | None = None,
        pooling: str | None = None,
        device: str = "cpu",
    ) -> None:
        model = ElmoC.from_pretrained(
            path,
            vectors=vectors,
            device=device,
            precision="auto",  # as dumps are made
            pooling=pooling,
        )
        self.layers = model.layers
        self.names = list(map(str, range(model.layers)))
        self.width = model.width
        self._description: dict[str, Any] = {
            "directory": str(path),
            **model.describe(),
            "layers": self.names,
        }
        if model.training_words is not None:
            self._description["training_words"] = model.training_words
        distinct = list(dict.fromkeys(sentence.words for sentence in sentences))
        words = memory_limit / (self.layers * self.width * 4)
        count = sum(total <= words for total in accumulate(map(len, distinct)))
        if count < len(distinct):
            print(
                f"states of {len(distinct) - count:,} of {len(distinct):,} sentences do not fit into "
                f"{human_bytes(memory_limit)} and are computed whenever they are read: a file of them "
                "(`elmoc dump-features`) is faster",
                flush=True,
            )
        kept = distinct[:count]
        with progress_bar(
            total=sum(map(len, kept)), unit=" words", unit_scale=True, desc="model", leave=False, delay=2
        ) as progress:
            states = model.embed_batch(kept, progress=progress.update)
        self._kept = dict(zip(kept, states, strict=True))
        self._model = model if count < len(distinct) else None  # else its memory is freed

    def lookup(self, sentences: Sequence[Sentence]) -> list[Tensor]:
        """float32 [layers, n, width] for each sentence."""
        computed: dict[tuple[str, ...], Tensor] = {}
        missing = list(dict.fromkeys(sentence.words for sentence in sentences if sentence.words not in self._kept))
        if missing:
            assert self._model is not None, "only sentences of the run are looked up"
            computed = dict(zip(missing, self._model.embed_batch(missing), strict=True))
        known = ChainMap(computed, self._kept)
        return [known[sentence.words] for sentence in sentences]

    def describe(self) -> dict[str, Any]:
        """The directory, and what a feature file says of the model: fingerprints, layers, words of its training."""
        return self._description
