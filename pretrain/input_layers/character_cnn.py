"""A trained character CNN: how is a vector made of a word's spelling (Peters et al.
2018; Kim et al. 2016)?

Both directions share it. The words of the lexicon are spelled once, at the beginning of
the run.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta
from torch import Generator, Tensor, nn

from elmoc.corpus import Corpus
from elmoc.weights import contiguous
from elmoc.word_vectors.character_cnn import (
    UTF8,
    UTF8_PADDING,
    UTF8_SIZE,
    CharacterCnn,
    CharacterCnnConfig,
    CharacterCnnRecord,
    CharacterCnnVectors,
    spelled,
)
from pretrain.input_layers import (
    InputLayerSettings,
    InputNetwork,
    MadeTable,
    require_same,
)

# Width and number of the filters of the original ELMo.
ELMO_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
# Words that are spelled at once: their characters take 1.6 MB.
BLOCK = 1 << 14
# The first bias of the gate of a highway layer: most of what it reads goes through
# (Srivastava et al. 2015).
CARRY_BIAS = -2.0


class CharacterNetwork(InputNetwork):
    """The character CNN with random weights as bilm-tf draws them, all of them trained.

    Characters are uniform in ±1, filters in ±0.05, highway layers and projection normal
    by their width.
    """

    title = "character CNN"

    def __init__(self, config: CharacterCnnConfig) -> None:
        super().__init__()
        self.record = CharacterCnnRecord(config, UTF8)
        self.network = network = CharacterCnn(config)
        network.characters.weight.requires_grad_()
        nn.init.uniform_(network.characters.weight, -1, 1)
        for convolution in network.convolutions:
            assert isinstance(convolution, nn.Conv1d)
            nn.init.uniform_(convolution.weight, -0.05, 0.05)
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
        for name, layer in network.named_modules():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
                is_gate = name.endswith(".carry")
                nn.init.constant_(layer.bias, CARRY_BIAS if is_gate else 0.0)

    def forward(self, rows: Tensor, generator: Generator | None = None) -> Tensor:
        """Characters int16 [n, D] → float32 [n, P]."""
        characters = rows.long()
        # characters behind the longest word and the widest filter change nothing
        longest = int((characters != UTF8_PADDING).any(dim=0).sum())
        characters = characters[:, : longest + self.network.config.widest]
        return self.network(characters).float()

    def stored(self) -> CharacterCnnVectors:
        return CharacterCnnVectors(self.record, contiguous(self.network.state_dict()))

    def load(self, stored: CharacterCnnVectors) -> None:
        require_same(self.title, self.record, stored.record)
        self.network.load_state_dict(stored.weights)


@dataclass(frozen=True)
class CharacterCnnInput(InputLayerSettings):
    """A trained character CNN; the defaults are the original ELMo's.
    `data.input_vectors` is not read.
    """

    kind: ClassVar[str] = "character_cnn"
    shared: ClassVar[bool] = True

    character_size: Annotated[
        int, Meta(ge=1, le=2**12, description="width of a character")
    ] = 16
    filters: Annotated[
        tuple[tuple[int, int], ...], Meta(description="width and number of each kind")
    ] = ELMO_FILTERS
    highways: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="layers between the filters and the projection to "
            "`encoder.projection_size`",
        ),
    ] = 2
    characters: Annotated[
        int,
        Meta(
            ge=3,
            le=2**12,
            description="the most of a word, with the two that begin and end it; "
            "longer words are cut",
        ),
    ] = 50

    def __post_init__(self) -> None:
        self.network(1)  # raises what is impossible

    def network(self, projection_size: int) -> CharacterCnnConfig:
        """The sizes of the network."""
        return CharacterCnnConfig(
            projection_size=projection_size,
            characters=UTF8_SIZE,
            character_size=self.character_size,
            max_characters_per_token=self.characters,
            filters=self.filters,
            activation="relu",
            highways=self.highways,
            projection=True,
        )

    def open_table(self, corpus: Corpus, name: str) -> MadeTable:
        """The ids of the UTF-8 bytes of each word, between the characters that begin
        and end it: int16 [V, D], padded to D, the most characters of a word.
        """
        corpus.require_words()
        most = self.characters
        blocks = [
            spelled(corpus.lexicon[start : start + BLOCK], most).astype(np.int16)
            for start in range(0, corpus.types, BLOCK)
        ]
        return MadeTable("characters", np.concatenate(blocks), f"{UTF8} {most}")

    def build(self, projection_size: int, corpus: Corpus) -> CharacterNetwork:
        return CharacterNetwork(self.network(projection_size))
