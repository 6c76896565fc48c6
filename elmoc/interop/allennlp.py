"""AllenNLP: an `ElmoC` behind the Python interface of AllenNLP's ELMo.

`ElmoBiLm` is what `allennlp.modules.elmo.Elmo(module=…)` takes, `ElmoEmbedder` the
class of that name of its early releases. AllenNLP itself is not needed.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

import numpy as np
from torch import Tensor, nn

from elmoc.corpus import BEGIN, END
from elmoc.errors import InputError
from elmoc.model import ElmoC
from elmoc.modules import LayerStates

# AllenNLP's `ELMoCharacterMapper`: a byte b is the id b + 1, and a word that is padding
# has zeros alone. A word has 50 ids, its two boundaries included: bytes after the 48th
# are not there.
_BEGIN_SENTENCE = 257
_END_SENTENCE = 258
_BEGIN_WORD = 259
_END_WORD = 260
_PADDING = 261
# Bytes that may complete a letter cut after its word's 48th byte; the first, none, is
# for most words, which end whole.
_COMPLETIONS = (
    b"",
    b"\x80",
    b"\x80\x80",
    b"\x80\x80\x80",
    b"\xa0\x80",
    b"\x90\x80\x80",
)


class ElmoBiLm(nn.Module):
    """The object that AllenNLP's `Elmo(module=…)` reads: layer states in a batch,
    boundaries included.

    With `requires_grad` the encoder is trained on. num_layers: L + 1, layer 0 included.
    """

    def __init__(self, elmo: ElmoC, *, requires_grad: bool = False) -> None:
        super().__init__()
        self.states = LayerStates(elmo, requires_grad=requires_grad)
        self.num_layers = elmo.layers
        self._width = elmo.width

    def get_output_dim(self) -> int:
        """2P."""
        return self._width

    def forward(
        self,
        inputs: Tensor | Sequence[Sequence[str]],
        word_inputs: Tensor | None = None,
    ) -> dict[str, Tensor | list[Tensor]]:
        """The layer states of a batch of B sentences, the longest of T words.

        Args:
            inputs: the character ids [B, T, 50] of AllenNLP's
                `ELMoTokenCharactersIndexer`, from which the words are read back; or
                lists of tokens.
            word_inputs: ids of words whose vectors AllenNLP would have cached; not
                read.

        Returns:
            `activations`: L + 1 tensors [B, T + 2, 2P]; `mask`: bool [B, T + 2].
        """
        sentences = words_of(inputs) if isinstance(inputs, Tensor) else inputs
        states, mask = self.states(sentences)
        more = inputs.shape[1] + 2 - mask.shape[1] if isinstance(inputs, Tensor) else 0
        if more > 0:  # columns that are padding in every sentence
            states = nn.functional.pad(states, (0, 0, 0, more))
            mask = nn.functional.pad(mask, (0, more))
        return {"activations": list(states.unbind(1)), "mask": mask}


def words_of(character_ids: Tensor) -> list[list[str]]:
    """The words of character ids [B, T, 50]; raises `InputError` for ids that
    AllenNLP's indexer does not make.
    """
    sentences = []
    for ids in character_ids.cpu().numpy().astype(np.int64):  # [T, 50]
        filled = ids.max(axis=1, initial=0) > 0
        count = int(filled.sum())
        if not filled[:count].all():
            raise InputError(
                "a sentence has padding before its last word: pad character ids at the end"
            )
        sentences.append([_word(row.tobytes()) for row in ids[:count]])
    return sentences


@lru_cache(maxsize=1 << 16)
def _word(character_ids: bytes) -> str:
    """The word of its character ids, int64 [50].

    A letter that is cut is completed to any letter with the same first bytes: a
    character CNN reads these bytes alone, so its vector is the same.
    """
    ids = np.frombuffer(character_ids, np.int64)
    end = int((ids == _END_WORD).argmax())
    inner = ids[1:end] - 1
    if inner.tolist() in ([_BEGIN_SENTENCE - 1], [_END_SENTENCE - 1]):
        return BEGIN if ids[1] == _BEGIN_SENTENCE else END
    if (
        ids[0] != _BEGIN_WORD
        or not end
        or (ids[end + 1 :] != _PADDING).any()
        or (inner >> 8).any()
    ):
        raise InputError(
            "a word's character ids are not ELMoTokenCharactersIndexer's: give these, or tokens"
        )
    text = bytes(inner.tolist())
    for completion in _COMPLETIONS:
        with suppress(UnicodeDecodeError):
            return (text + completion).decode()
    return text.decode("utf-8", "ignore")


class ElmoEmbedder:
    """Layer states as numpy arrays, under the method names of
    `allennlp.commands.elmo.ElmoEmbedder`.
    """

    def __init__(self, elmo: ElmoC) -> None:
        self.elmo = elmo

    def embed_sentence(self, sentence: Sequence[str]) -> np.ndarray:
        """float32 [L + 1, n, 2P]: (3, n, 1024) at the paper's size, and (3, 0, 1024)
        for no tokens.
        """
        return self.elmo.embed(sentence).numpy()

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """One array for each sentence."""
        return [states.numpy() for states in self.elmo.embed_batch(batch)]

    def embed_sentences(
        self, sentences: Iterable[Sequence[str]], batch_size: int = 64
    ) -> Iterator[np.ndarray]:
        """Yield an array for each of any number of sentences, in bounded memory."""
        for states in self.elmo.embed_sentences(sentences, batch_size=batch_size):
            yield states.numpy()
