"""Character CNN of the tagger: vectors of words from their characters (Peters et al.
2018).
"""

from collections.abc import Sequence

import torch
from allennlp_light.modules.seq2vec_encoders import CnnEncoder
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from downstream.inputs.sentence import TaskSentence

# Ids of the special symbols; the characters' ids follow.
PADDING, BEGIN, END, UNKNOWN = range(4)
# Characters of a word that are read; longer words are damaged data.
MOST_CHARACTERS = 1_000


class CharacterCnn(torch.nn.Module):
    """Vectors of words from their characters: embeddings, convolutions, ReLU, maximum
    over the word.

    A word is read between a begin and an end mark, up to `MOST_CHARACTERS`: all words
    of a batch are padded to the longest.

    Args:
        characters: have an embedding each; all other characters share one.
        size: of an embedding.
        filters: of each width; a word's vector has `output_size` = filters × widths
            numbers.
        widths: of the filters, in characters.
    """

    def __init__(
        self,
        *,
        characters: Sequence[str],
        size: int,
        filters: int,
        widths: Sequence[int],
    ) -> None:
        super().__init__()
        rows = range(UNKNOWN + 1, UNKNOWN + 1 + len(characters))
        self._ids = dict(zip(characters, rows, strict=True))
        self._shortest = max(widths)
        self._rows: dict[str, Tensor] = {}
        self.embedding = torch.nn.Embedding(
            UNKNOWN + 1 + len(characters), size, padding_idx=PADDING
        )
        self.encoder = CnnEncoder(size, filters, tuple(widths))
        self.output_size = filters * len(widths)

    def forward(self, sentences: Sequence[TaskSentence]) -> Tensor:
        """float32 [B, T, output_size], zeros after the end of a sentence; each distinct
        word is read once.
        """
        places: dict[str, int] = {}
        rows = []
        for sentence in sentences:
            own = [places.setdefault(word, len(places)) for word in sentence.words]
            rows.append(torch.tensor(own))
        spelled = [self._word_ids(word) for word in places]
        ids = pad_sequence(spelled, batch_first=True, padding_value=PADDING)  # [U, C]
        ids = ids.to(self.embedding.weight.device)
        vectors = self.encoder(self.embedding(ids), ids != PADDING)  # [U, output_size]
        # Padding takes the row behind those of the words, which is zeros.
        vectors = torch.cat([vectors, vectors.new_zeros(1, self.output_size)])
        padded = pad_sequence(rows, batch_first=True, padding_value=len(places))
        return vectors[padded.to(vectors.device)]

    def _word_ids(self, word: str) -> Tensor:
        if word not in self._rows:
            inner = [self._ids.get(each, UNKNOWN) for each in word[:MOST_CHARACTERS]]
            ids = [BEGIN]
            ids += inner
            ids.append(END)
            # The widest filter needs that many characters.
            ids += [PADDING] * (self._shortest - len(ids))
            self._rows[word] = torch.tensor(ids)
        return self._rows[word]
