"""Vectors of raw texts: tokenise them, encode their sentences, and pool the layer
states of each.

Letters: L layers, P projection, n words of a text, N texts.
"""

import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from elmoc.batches import buffered
from elmoc.devices import CPU
from elmoc.encoding import SentenceEncoder
from elmoc.errors import InputError, reading, shortened
from elmoc.features.options import MOST_WORDS
from elmoc.process import progress_bar
from elmoc.text.raw_texts import tokenise_text, word_offsets

TextPooling = Literal["mean", "max"]
_POOLED: dict[str, Callable[..., Tensor]] = {"mean": torch.mean, "max": torch.amax}
# Characters of the texts that are encoded together: some 50,000 words.
_CHARACTERS = 300_000


@dataclass(frozen=True)
class TextStates:
    """The words of a raw text, of all its sentences, with their layer states.

    words: n, as the tokenizer finds them.
    states: float32 [L + 1, n, 2P].
    """

    text: str
    words: list[str]
    states: Tensor

    @cached_property
    def offsets(self) -> list[tuple[int, int]]:
        """Where each word begins and ends in the text, in characters."""
        with reading(f"the text {shortened(self.text)!r}"):
            return word_offsets(self.text, self.words)


def pooled_texts(
    elmo: SentenceEncoder,
    texts: Iterable[str],
    pooling: TextPooling,
    *,
    batch_size: int,
    show_progress: bool,
) -> np.ndarray:
    """One vector for each raw text, float32 [N, 2P]: the mean or the maximum over its
    words of the mean over their layers; zeros for a text without words.

    Args:
        elmo: reads the texts.
        texts: of any number of sentences each.
        pooling: over the words.
        batch_size: sentences a batch at most.
        show_progress: whether a bar counts the texts.

    Raises:
        InputError: a text is no string, or spaces do not divide it into words.
    """
    if pooling not in _POOLED:
        raise InputError(f"pooling is mean, max or None, not {pooling!r}")
    _, average = elmo.choose_layers("average")
    pool = _POOLED[pooling]
    vectors = [np.zeros((0, elmo.width), dtype=np.float32)]
    for _, _, parts in _encoded(elmo, texts, average, batch_size, show_progress):
        words = torch.cat([_no_words(1, elmo)[0], *parts])
        pooled = pool(words, dim=0) if len(words) else words.new_zeros(elmo.width)
        vectors.append(pooled.unsqueeze(0).numpy())
    return np.concatenate(vectors)


def text_states(
    elmo: SentenceEncoder,
    texts: Iterable[str],
    *,
    batch_size: int,
    show_progress: bool = False,
) -> Iterator[TextStates]:
    """Yield the words of raw texts with their layer states; see `pooled_texts`."""
    for text, sentences, parts in _encoded(
        elmo, texts, lambda states: states, batch_size, show_progress
    ):
        words = list(chain.from_iterable(sentences))
        states = torch.cat([_no_words(elmo.layers, elmo), *parts], dim=1)
        yield TextStates(text, words, states)


def _no_words(layers: int, elmo: SentenceEncoder) -> Tensor:
    """The layer states [layers, 0, 2P] of no words."""
    return torch.zeros(layers, 0, elmo.width, dtype=torch.float32, device=CPU)


def _encoded(
    elmo: SentenceEncoder,
    texts: Iterable[str],
    select: Callable[[Tensor], Tensor],
    batch_size: int,
    show_progress: bool,
) -> Iterator[tuple[str, list[list[str]], list[Tensor]]]:
    """Yield each text with its sentences, as words, and what is kept of their layer
    states.
    """
    total = len(texts) if isinstance(texts, Sized) else None
    tokenised = tokenised_texts(elmo, texts)
    with progress_bar(total=total, unit="text", disable=not show_progress) as bar:
        for group in buffered(tokenised, lambda each: len(each[0]), most=_CHARACTERS):
            rows = elmo.look_up(chain.from_iterable(own for _, own in group))
            states = iter(elmo.encode(rows, batch_size=batch_size, select=select))
            for text, own in group:
                yield text, own, list(islice(states, len(own)))
            bar.update(len(group))


def check_texts(texts: object) -> None:
    """Raise an `InputError` for what is no list of texts: a text, a table, a mapping,
    whose items are letters, rows, or names.
    """
    is_other = isinstance(texts, str | Mapping) or not isinstance(texts, Iterable)
    if is_other or getattr(texts, "ndim", 1) != 1:
        raise InputError(
            f"texts are a list of strings, or one column of a table, not a "
            f"{type(texts).__name__}: give [text] for a single one"
        )


def tokenised_texts(
    elmo: SentenceEncoder, texts: Iterable[str]
) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield each text with its sentences, as words, as the text of a model was
    tokenised.
    """
    check_texts(texts)
    with reading(f"the training record of {elmo.directory.path or 'this model'}"):
        keep = list(map(re.compile, elmo.directory.training.get("keep", ())))
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            raise InputError(
                f"text {number} is {reprlib.repr(text)} ({type(text).__name__}), not a "
                'string: give "" for what is missing'
            )
        sentences = tokenise_text(text, keep, name=f"text {number}")
        longest = max(map(len, sentences), default=0)
        if longest > MOST_WORDS:
            raise InputError(
                f"text {number} has a sentence of {longest:,} words, more than "
                f"{MOST_WORDS:,}: divide it into lines"
            )
        yield text, sentences
