"""Character CNN: vectors of words from their spelling."""

from collections.abc import Sequence

import torch
from allennlp_light.modules.seq2vec_encoders import CnnEncoder
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from downstream.inputs.sentence import Sentence

# Ids of the special symbols; those of characters follow.
PADDING, BEGIN, END, UNKNOWN = range(4)
# Characters of a word that are read; longer words are damaged data.
MOST_CHARACTERS = 1_000


class CharacterCnn(torch.nn.Module):
    """Vectors of words from their characters: embeddings, convolutions of `widths`, ReLU, maximum over the word.

    characters    those that have an embedding of their own; all others share one
    filters       filters of each width; a word's vector has `output_size` = filters × widths numbers

    A word is read between a begin and an end mark, up to `MOST_CHARACTERS`: all words of a batch are padded to the
    longest.
    """

    def __init__(self, *, characters: Sequence[str], size: int, filters: int, widths: Sequence[int]) -> None:
        super().__init__()
        self._ids = {character: row for row, character in enumerate(characters, UNKNOWN + 1)}
        self._shortest = max(widths)
        self._rows: dict[str, Tensor] = {}
        self.embedding = torch.nn.Embedding(UNKNOWN + 1 + len(characters), size, padding_idx=PADDING)
        self.encoder = CnnEncoder(size, filters, tuple(widths))
        self.output_size = filters * len(widths)

    def forward(self, sentences: Sequence[Sentence]) -> Tensor:
        """float32 [B, T, output_size], zeros after the end of a sentence; each distinct word is read once."""
        places: dict[str, int] = {}
        rows = [
            torch.tensor([places.setdefault(word, len(places)) for word in sentence.words]) for sentence in sentences
        ]
        ids = pad_sequence([self._word_ids(word) for word in places], batch_first=True, padding_value=PADDING)  # [U, C]
        ids = ids.to(self.embedding.weight.device)
        vectors = self.encoder(self.embedding(ids), ids != PADDING)  # [U, output_size]
        vectors = torch.cat([vectors, vectors.new_zeros(1, self.output_size)])
        return vectors[pad_sequence(rows, batch_first=True, padding_value=len(places)).to(vectors.device)]

    def _word_ids(self, word: str) -> Tensor:
        if word not in self._rows:
            ids = [BEGIN, *(self._ids.get(character, UNKNOWN) for character in word[:MOST_CHARACTERS]), END]
            ids += [PADDING] * (self._shortest - len(ids))
            self._rows[word] = torch.tensor(ids)
        return self._rows[word]
