"""Character CNN: the network that makes a word vector of the characters of a word.

Letters: n words, T ids of a row, D width of a character, F filters in all, P projection.
Source: Peters et al. 2018 (ELMo), after Kim et al. 2016, as bilm-tf and ELMoForManyLangs compute it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from elmoc.errors import InputError
from elmoc.settings import check_settings, setting

_ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}
_MOST = 2**20
_MOST_LAYERS = 100


@dataclass(frozen=True, kw_only=True)
class CharacterCnnConfig:
    """The sizes of a character CNN.

    filters: width and number of each kind of filter; none for a network of whole words.
    projection: whether F numbers are projected to P, or are P themselves.
    words, word_size: the table of whole words that is read beside the characters; 0 where there is none.
    """

    projection_size: int = setting(least=1, most=_MOST)
    characters: int = setting(least=0, most=_MOST)
    character_size: int = setting(least=0, most=_MOST)
    max_characters_per_token: int = setting(least=3, most=1 << 16)
    filters: tuple[tuple[int, int], ...]
    activation: str = setting(choices=tuple(_ACTIVATIONS))
    highways: int = setting(least=0, most=_MOST_LAYERS)
    projection: bool
    words: int = setting(0, least=0, most=2**31)
    word_size: int = setting(0, least=0, most=_MOST)

    def __post_init__(self) -> None:
        check_settings(self, str)
        if len(self.filters) > _MOST_LAYERS or any(
            not (1 <= width <= self.max_characters_per_token and 1 <= number <= _MOST) for width, number in self.filters
        ):
            raise InputError(
                f"filters must be at most {_MOST_LAYERS} pairs of a width (1 to {self.max_characters_per_token}, the "
                f"characters of a word) and a number (1 to {_MOST:,})"
            )
        if not self.filters and not self.word_size:
            raise InputError("it has neither filters nor whole words to make vectors of")
        if not self.projection and self.filter_count + self.word_size != self.projection_size:
            raise InputError(
                f"its filters make {self.filter_count + self.word_size:,} numbers of a word, where the encoder reads "
                f"{self.projection_size:,}, and there is no projection between them"
            )

    @property
    def filter_count(self) -> int:
        """F."""
        return sum(number for _, number in self.filters)

    @property
    def widest(self) -> int:
        """The width of the widest filter."""
        return max((width for width, _ in self.filters), default=0)


class Highway(nn.Module):
    """y = σ(W_c x + b_c) · relu(W_t x + b_t) + (1 − σ(W_c x + b_c)) · x (Srivastava et al. 2015)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, size)
        self.carry = nn.Linear(size, size)

    def forward(self, inputs: Tensor) -> Tensor:
        """[n, F] → [n, F]."""
        carry = torch.sigmoid(self.carry(inputs))
        return inputs + carry * (torch.relu(self.transform(inputs)) - inputs)


class CharacterCnn(nn.Module):
    """Convolutions over the characters of a word, the largest value of each filter, highway layers, a projection.

    Its weights come from a file: those that it is made with mean nothing.
    """

    def __init__(self, config: CharacterCnnConfig) -> None:
        super().__init__()
        self.config = config
        self._activation = _ACTIVATIONS[config.activation]
        if config.filters:
            self.characters = nn.Embedding.from_pretrained(torch.empty(config.characters, config.character_size))
            self.convolutions = nn.ModuleList(
                nn.Conv1d(config.character_size, number, width) for width, number in config.filters
            )
            self.highways = nn.ModuleList(Highway(config.filter_count) for _ in range(config.highways))
        if config.word_size:
            self.words = nn.Embedding.from_pretrained(torch.empty(config.words, config.word_size))
        if config.projection:
            self.projection = nn.Linear(config.word_size + config.filter_count, config.projection_size)

    def forward(self, characters: Tensor | None, words: Tensor | None = None) -> Tensor:
        """The vectors of words.

        Args:
            characters: int64 [n, T], the ids of their characters; None where there are no filters.
            words: int64 [n], their rows in the table of whole words; None where there is none.

        Returns:
            [n, P].
        """
        features = [] if words is None else [self.words(words)]
        if characters is not None:
            embedded = self.characters(characters).transpose(1, 2)  # [n, D, T]
            pooled = [self._activation(convolution(embedded).amax(dim=2)) for convolution in self.convolutions]
            spelled = torch.cat(pooled, dim=1)  # [n, F]
            for highway in self.highways:
                spelled = highway(spelled)
            features.append(spelled)
        vectors = torch.cat(features, dim=1)
        return self.projection(vectors) if self.config.projection else vectors
