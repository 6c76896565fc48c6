"""Vectors of words that are trained with a probe, beside its frozen inputs: of their
lower-cased forms, and of their spellings.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import torch
from allennlp_light.modules.seq2vec_encoders.cnn_encoder import CnnEncoder
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

# Rows of every table: of padding, of what training has once or never, and of both ends
# of a spelling; then come those of words, or of characters.
_PADDING, _UNKNOWN, _END, _FIRST = range(4)
# Those of ELMo's tagger (Peters et al. 2018).
CHARACTER_SIZE = 16
FILTER_WIDTH = 3


def frequent(names: Iterable[str]) -> list[str]:
    """Those that come twice, sorted; the others train the row of the unknown."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


class TrainedWords(torch.nn.Module):
    """A vector of each lower-cased word, and what a CNN over characters with a maximum
    over all places makes of its spelling.

    Args:
        words: lower-cased, that have a vector of their own.
        characters: that have one.
        word_size: of the vector of a word.
        filters: of the CNN.
    """

    def __init__(
        self,
        words: Sequence[str],
        characters: Sequence[str],
        *,
        word_size: int,
        filters: int,
    ) -> None:
        super().__init__()
        self._words = {word: row for row, word in enumerate(words, _FIRST)}
        self._characters = {each: row for row, each in enumerate(characters, _FIRST)}
        self.words = torch.nn.Embedding(
            _FIRST + len(words), word_size, padding_idx=_PADDING
        )
        self.characters = torch.nn.Embedding(
            _FIRST + len(characters), CHARACTER_SIZE, padding_idx=_PADDING
        )
        self.cnn = CnnEncoder(CHARACTER_SIZE, filters, (FILTER_WIDTH,))
        self.output_size = word_size + filters

    def forward(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """Words of B sentences, T at most → float32 [B, T, D]."""
        distinct = list(dict.fromkeys(chain.from_iterable(sentences)))
        spellings = [self._spelling(word) for word in distinct]
        letters = pad_sequence(spellings, batch_first=True, padding_value=_PADDING).to(
            self.words.weight.device
        )  # [n, letters]
        rows = [self._words.get(word.lower(), _UNKNOWN) for word in distinct]
        vectors = [
            self.words(torch.tensor(rows, device=letters.device)),
            self.cnn(self.characters(letters), letters != _PADDING),
        ]
        # The last row, of zeros, is that of padding.
        table = torch.nn.functional.pad(torch.cat(vectors, dim=1), (0, 0, 0, 1))
        row_of = {word: row for row, word in enumerate(distinct)}
        places = [torch.tensor([row_of[word] for word in each]) for each in sentences]
        padded = pad_sequence(places, batch_first=True, padding_value=len(distinct))
        return torch.nn.functional.embedding(padded.to(table.device), table)

    def _spelling(self, word: str) -> Tensor:
        inner = [self._characters.get(letter, _UNKNOWN) for letter in word]
        return torch.tensor([_END, *inner, _END])
