"""Character CNN: frozen word vectors that a network makes of the characters of any
string, and their file.

Models that read such vectors have the file (`character_cnn.safetensors`) in their
directory.
Letters: n words, T ids of a row, D width of a character, F filters in all, P
projection.
Source: Peters et al. 2018 (ELMo), after Kim et al. 2016, as bilm-tf and
ELMoForManyLangs compute it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn

from elmoc.corpus import BEGIN, END
from elmoc.devices import CPU, autocast
from elmoc.errors import InputError, reading
from elmoc.settings import convert
from elmoc.weights import check_weights
from elmoc.word_vectors.sources import finite
from elmoc.word_vectors.stored import StoredVectors, as_bytes, from_bytes

UTF8: Literal["utf-8"] = "utf-8"
# Ids of bytes, and of the marks that begin, end and pad sentences and words, by the
# names that the lexicons of ELMoForManyLangs have for them.
UTF8_SIZE = 261
UTF8_PADDING = 260
_UTF8_MARKS = {
    "<bos>": 256,
    "<eos>": 257,
    "<eow>": 258,
    "<bow>": 259,
    "<pad>": UTF8_PADDING,
}
CHARACTERS = "lexicon.characters"
WORDS = "lexicon.words"
# Numbers that the widest of the filters may make of a batch of words: 16 MiB.
_BATCH_NUMBERS = 1 << 22


@dataclass(frozen=True, kw_only=True)
class CharacterCnnConfig:
    """The sizes of a character CNN.

    filters: width and number of each kind of filter; none for a network of whole words.
    projection: whether the features are projected to P numbers, or are P themselves.
    words: rows of the table of whole words that is read beside the characters; 0 where
        there is none.
    word_size: width of that table.
    """

    projection_size: Annotated[int, Meta(ge=1)]
    characters: int
    character_size: int
    max_characters_per_token: Annotated[int, Meta(ge=3)]
    filters: tuple[tuple[int, int], ...]
    activation: Literal["relu", "tanh"]
    highways: Annotated[int, Meta(ge=0, le=100)]
    projection: bool
    words: int = 0
    word_size: int = 0

    def __post_init__(self) -> None:
        most = self.max_characters_per_token
        if not all(1 <= width <= most for width, _ in self.filters):
            raise InputError(
                f"filters must be 1 to {most} wide, the characters of a word"
            )
        features = self.filter_count + self.word_size
        if not features or not (self.projection or features == self.projection_size):
            raise InputError(
                f"filters and whole words make {features:,} numbers, not "
                f"{self.projection_size:,}"
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
    """y = σ(W_c x + b_c) · relu(W_t x + b_t) + (1 − σ(W_c x + b_c)) · x (Srivastava et
    al. 2015).
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, size)
        self.carry = nn.Linear(size, size)

    def forward(self, inputs: Tensor) -> Tensor:
        """[n, F] → [n, F]."""
        carry = torch.sigmoid(self.carry(inputs))
        return inputs + carry * (torch.relu(self.transform(inputs)) - inputs)


class CharacterCnn(nn.Module):
    """Convolutions over the characters of a word, the largest value of each filter,
    highway layers, a projection.

    Its weights come from a file: those that it is made with mean nothing.
    """

    def __init__(self, config: CharacterCnnConfig) -> None:
        super().__init__()
        self.config = config
        self._activation = getattr(torch, config.activation)
        features = config.filter_count
        if config.filters:
            self.characters = nn.Embedding.from_pretrained(
                torch.empty(config.characters, config.character_size)
            )
            self.convolutions = nn.ModuleList(
                nn.Conv1d(config.character_size, number, width)
                for width, number in config.filters
            )
            self.highways = nn.Sequential(
                *(Highway(features) for _ in range(config.highways))
            )
        if config.word_size:
            self.words = nn.Embedding.from_pretrained(
                torch.empty(config.words, config.word_size)
            )
        self.projection = (
            nn.Linear(features + config.word_size, config.projection_size)
            if config.projection
            else nn.Identity()
        )
        # Whatever PyTorch's default type is.
        self.float()

    def forward(self, characters: Tensor | None, words: Tensor | None = None) -> Tensor:
        """Vectors of words.

        Args:
            characters: int64 [n, T], ids of the characters of each word, where there
                are filters.
            words: int64 [n], rows of whole words, where there is a table of these.

        Returns:
            [n, P].
        """
        features = [] if words is None else [self.words(words)]
        if characters is not None:
            embedded = self.characters(characters).transpose(1, 2)  # [n, D, T]
            pooled = [
                self._activation(convolution(embedded).amax(dim=2))
                for convolution in self.convolutions
            ]
            features.append(self.highways(torch.cat(pooled, dim=1)))  # [n, F]
        return self.projection(torch.cat(features, dim=1))


def spelled(
    words: Sequence[str], most: int, ids: Mapping[str, int] | None = None
) -> np.ndarray:
    """int64 [n, most]: rows of ids: begin of word, characters, end of word, padding …

    Where the characters of a word do not fit, its first `most - 2` count. `<s>` and
    `</s>`, and the names that the original tools have for them, are spelled as one
    character of their own.

    Args:
        words: n of them.
        most: ids of a row, at least 3.
        ids: of characters in a lexicon, as ELMoForManyLangs has it. None is the bytes
            of UTF-8 (Peters et al. 2018; bilm-tf's `UnicodeCharsVocabulary`), 0 to 255.
    """
    marks = _UTF8_MARKS if ids is None else ids
    begin, end = ("<S>", "</S>") if ids is None else ("<bos>", "<eos>")
    sentence = {
        BEGIN: marks["<bos>"],
        begin: marks["<bos>"],
        END: marks["<eos>"],
        end: marks["<eos>"],
    }
    rows = np.full((len(words), most), marks["<pad>"], dtype=np.int64)
    # The name `<eow>` stands before a word: the package's code exchanges the two, in
    # training, too.
    rows[:, 0] = marks["<eow>"]
    for row, word in zip(rows, words, strict=True):
        if word in sentence:
            characters = [sentence[word]]
        elif ids is None:
            characters = list(word.encode("utf-8", "ignore")[: most - 2])
        else:
            characters = [ids.get(each, ids["<oov>"]) for each in word[: most - 2]]
        row[1 : len(characters) + 1] = characters
        row[len(characters) + 1] = marks["<bow>"]
    return rows


def word_rows(words: Sequence[str], most: int, ids: Mapping[str, int]) -> np.ndarray:
    """int64 [n]: the rows of whole words in a table, as ELMoForManyLangs reads it
    beside characters.

    A word is looked up by its first `most - 2` characters; a word that the lexicon
    lacks has the row of `<oov>`.
    """
    names = {BEGIN: "<bos>", END: "<eos>"}
    short = [names.get(word, word[: most - 2]) for word in words]
    return np.array([ids.get(word, ids["<oov>"]) for word in short], dtype=np.int64)


@dataclass(frozen=True)
class CharacterCnnRecord:
    """What the file says of itself."""

    network: CharacterCnnConfig
    spelling: Literal["utf-8", "lexicon"]


class CharacterCnnVectors(StoredVectors):
    """Word vectors that a character CNN makes: every string has one.

    They are computed in batches of words of like length; the same word in another batch
    has the same vector up to rounding.

    Args:
        record: the description.
        weights: of the `CharacterCnn`, by their names in it.
        lexicons: the ids of `CHARACTERS` and `WORDS`, where there are any.
        origin: of the vectors.

    Raises:
        InputError: the parts do not fit each other.
    """

    file_name = "character_cnn.safetensors"
    format = "elmoc-character-cnn"

    def __init__(
        self,
        record: CharacterCnnRecord,
        weights: Mapping[str, Tensor],
        *,
        lexicons: Mapping[str, Mapping[str, int]] | None = None,
        origin: str = file_name,
    ) -> None:
        self.record = record
        self.weights = weights
        self.origin = origin
        self.lexicons = lexicons or {}
        self.size = record.network.projection_size
        with reading(origin):
            with torch.device("meta"):
                self._network = CharacterCnn(record.network).eval()
            check_weights(weights, self._network.state_dict())
            self._network.load_state_dict(weights, assign=True)
            # The lexicons have what lookups need.
            self.lookup(["?"])

    def description(self) -> dict[str, Any]:
        return super().description() | asdict(self.record)

    def tensors(self) -> dict[str, Tensor]:
        return dict(self.weights) | {
            name: as_bytes(ids) for name, ids in self.lexicons.items()
        }

    @classmethod
    def from_file(
        cls, info: Mapping[str, Any], tensors: dict[str, Tensor], origin: str
    ) -> "CharacterCnnVectors":
        record = convert(info, CharacterCnnRecord, where=origin)
        lexicons = {
            name: from_bytes(tensors.pop(name), dict[str, int])
            for name in (CHARACTERS, WORDS)
            if name in tensors
        }
        return cls(record, tensors, lexicons=lexicons, origin=origin)

    def lookup(self, words: Sequence[str]) -> np.ndarray:
        """float32 [len(words), P]."""
        vectors = np.empty((len(words), self.size), dtype=np.float32)
        config = self.record.network
        most = config.max_characters_per_token
        ids = rows = None
        lengths = np.zeros(len(words), dtype=np.int64)
        if config.filters:
            is_utf8 = self.record.spelling == UTF8
            characters = None if is_utf8 else self.lexicons[CHARACTERS]
            ids = torch.from_numpy(spelled(words, most, characters))
            lengths = (ids != (characters or _UTF8_MARKS)["<pad>"]).sum(dim=1).numpy()
        if config.word_size:
            rows = torch.from_numpy(word_rows(words, most, self.lexicons[WORDS]))
        # The longest first, so that a batch has words of like length.
        order = np.argsort(-lengths, kind="stable")
        most_filters = max((number for _, number in config.filters), default=1)
        while len(order):
            # The widest filter reads as much padding behind the longest word, as far
            # as there is room.
            length = max(1, min(most, int(lengths[order[0]]) + config.widest))
            size = max(1, _BATCH_NUMBERS // (most_filters * length))
            batch = order[:size]
            order = order[size:]
            # In float32, whatever a user's own autocast says.
            with torch.inference_mode(), autocast(CPU, "float32"):
                vectors[batch] = self._network(
                    None if ids is None else ids[batch, :length],
                    None if rows is None else rows[batch],
                ).numpy()
        return finite(vectors, words, self.origin)
