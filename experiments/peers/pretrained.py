"""Pretrained: the states of a frozen Hugging Face model, for the probes of other
features.

    python -m experiments.peers.pretrained MODEL OUT --sentences FILE
    [--pooling first] [--layers 0,6,12] [--threads 1]

MODEL is a folder with the model and its fast tokenizer, FILE has one tokenised sentence
a line; features go to OUT/features.h5, unless they are there. A word is the mean of its
subwords, or its first one; all layers are written, that of the embeddings first.
Computed in bf16 where the processor has it. A sentence longer than the model reads is
read in pieces that are cut between words.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import h5py
import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModel, AutoTokenizer

from elmoc.command_line import run_main
from elmoc.devices import CPU, has_bf16
from elmoc.errors import InputError
from elmoc.files.checksums import FileChecksum, fingerprint_file
from elmoc.settings import Meta
from experiments.peers.common import write_features

Pooling = Literal["mean", "first"]
# A word as the numbers of its subwords.
Subwords = list[int]

# Subwords of a sentence that are read together, if the model can read as many.
POSITIONS = 512
# Of a batch, with padding.
BATCH_SUBWORDS = 4096
# Longer words, mostly addresses, are cut off.
MOST_SUBWORDS = 16


def division(tokenizer: Any) -> Callable[[str], Subwords]:
    """A function from a word to its subwords, at least one; a word is divided once."""
    known: dict[str, Subwords] = {}

    def divide(word: str) -> Subwords:
        if word not in known:
            # Each word by itself: the tokenizer may not join it with its neighbours.
            ids = tokenizer(
                [word], is_split_into_words=True, add_special_tokens=False
            ).input_ids
            # A word of characters that the tokenizer drops still needs a state.
            known[word] = ids[:MOST_SUBWORDS] or [tokenizer.unk_token_id]
        return known[word]

    return divide


def pieces(lengths: Sequence[int], positions: int) -> Iterator[tuple[int, int]]:
    """Start and stop of the pieces in which a sentence is read whose words have these
    numbers of subwords; a piece has at most so many `positions`.
    """
    start = subwords = 0
    for word, length in enumerate(lengths):
        if subwords + length > positions:
            yield start, word
            start = word
            subwords = 0
        subwords += length
    yield start, len(lengths)


def pooled(states: Tensor, lengths: Sequence[int], pooling: Pooling) -> Tensor:
    """States of subwords [layers, T, size], of words that have so many of the T each →
    states of words, float32 [layers, n, size].
    """
    counts = torch.tensor(lengths)
    # Sums in bf16 would lose the last digits.
    states = states.float()
    if pooling == "first":
        return states[:, counts.cumsum(0) - counts]
    words = torch.arange(len(counts)).repeat_interleave(counts)  # [T]
    sums = states.new_zeros(len(states), len(counts), states.shape[2])
    return sums.index_add_(1, words, states) / counts[:, None]


class Encoder:
    """A frozen model and its tokenizer: sentences → states of their words.

    begin, end: the subwords that the model wants around a sentence.
    positions: the subwords between them that it reads together.
    """

    def __init__(self, model: Any, tokenizer: Any, pooling: Pooling) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.divide = division(tokenizer)
        self._pooling = pooling
        # What stands around any text is around this one.
        bare = tokenizer("a", add_special_tokens=False).input_ids
        whole = tokenizer("a").input_ids
        place = whole.index(bare[0])
        self.begin = whole[:place]
        self.end = whole[place + len(bare) :]
        around = len(self.begin) + len(self.end)
        self.positions = min(POSITIONS, tokenizer.model_max_length) - around

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """float32 [layers + 1, n, size] for each sentence of n ≥ 1 words."""
        # What is read at once: the words of a sentence, or of a piece of it.
        cuts = []
        owners = []
        for number, words in enumerate(sentences):
            divided = [self.divide(word) for word in words]
            lengths = [len(each) for each in divided]
            for start, stop in pieces(lengths, self.positions):
                cuts.append(divided[start:stop])
                owners.append(number)
        read: dict[int, np.ndarray] = {}
        for batch in self._batches(cuts):
            states = self._read([cuts[place] for place in batch])
            read.update(zip(batch, states, strict=True))
        whole: list[list[np.ndarray]] = [[] for _ in sentences]
        for place, number in enumerate(owners):
            whole[number].append(read[place])
        return [np.concatenate(each, axis=1) for each in whole]

    def _batches(self, cuts: Sequence[Sequence[Subwords]]) -> Iterator[list[int]]:
        """Places of cuts of like length, the longest first."""
        sizes = [sum(map(len, cut)) for cut in cuts]
        # The longest come first: where memory is short, it is found out at once.
        left = sorted(range(len(cuts)), key=sizes.__getitem__)
        around = len(self.begin) + len(self.end)
        while left:
            count = max(1, BATCH_SUBWORDS // (sizes[left[-1]] + around))
            yield left[-count:]
            del left[-count:]

    @torch.inference_mode()
    def _read(self, batch: Sequence[Sequence[Subwords]]) -> list[np.ndarray]:
        lines = []
        for words in batch:
            lines.append(self.begin + list(chain.from_iterable(words)) + self.end)
        ids, mask = padded(lines, self.tokenizer.pad_token_id)
        output = self.model(
            input_ids=ids, attention_mask=mask, output_hidden_states=True
        )
        states = torch.stack(output.hidden_states)  # [layers + 1, B, T, size]
        found = []
        for row, words in enumerate(batch):
            lengths = [len(each) for each in words]
            # Padding and the subwords around the sentence are no words.
            start = len(self.begin)
            own = states[:, row, start : start + sum(lengths)]
            found.append(pooled(own, lengths, self._pooling).numpy())
        return found


def padded(lines: Sequence[Sequence[int]], value: int) -> tuple[Tensor, Tensor]:
    """Numbers [B, T] of lines of unequal length, and where they are, int64 [B, T]."""
    rows = [torch.tensor(line) for line in lines]
    ids = pad_sequence(rows, batch_first=True, padding_value=value)
    return ids, pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)


def open_encoder(
    folder: Path, *, pooling: Pooling = "mean", bf16: bool | None = None
) -> Encoder:
    """The encoder of a folder, in bf16 or float32; by default as the processor can."""
    # Byte-level tokenizers see a word as if it stood behind a blank.
    tokenizer = AutoTokenizer.from_pretrained(folder, add_prefix_space=True)
    model = AutoModel.from_pretrained(folder)
    chosen = has_bf16(CPU) if bf16 is None else bf16
    dtype = torch.bfloat16 if chosen else torch.float32
    return Encoder(model.to(dtype), tokenizer, pooling)


@dataclass(frozen=True)
class Options:
    """The model, and how its states become features."""

    model: Annotated[Path, Meta(description="folder of the model and its tokenizer")]
    out: Annotated[Path, Meta(description="folder of features.h5")]
    sentences: Annotated[
        Path,
        Meta(
            description="one tokenised sentence a line",
            extra={"option": "--sentences", "metavar": "FILE"},
        ),
    ]
    pooling: Annotated[
        Pooling, Meta(description="a word is the mean of its subwords, or the first")
    ] = "mean"
    layers: Annotated[
        str,
        Meta(
            pattern=r"^(all|\d+(,\d+)*)$",
            description="layers that are written, such as 0,6,12",
        ),
    ] = "all"
    threads: Annotated[int, Meta(ge=1, description="threads that compute")] = 1


def write(options: Options) -> None:
    """Write the features, unless they are there.

    Raises:
        InputError: others are there.
    """
    path = options.out / "features.h5"
    # The model and how it was read name the features: a file that is made again has
    # the same results.
    attributes = {
        "peer": "pretrained",
        "model": fingerprint_file(options.model / "model.safetensors"),
        "pooling": f"{options.pooling} of layers {options.layers}",
        "sentences": FileChecksum.of(options.sentences).whole,
    }
    if path.exists():
        with h5py.File(path) as file:
            if not attributes.items() <= dict(file.attrs).items():
                raise InputError(
                    f"{path} is of another model, other sentences or options: choose "
                    "another folder"
                )
        return
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    encoder = open_encoder(options.model, pooling=options.pooling)
    is_all = options.layers == "all"
    rows: Any = slice(None) if is_all else list(map(int, options.layers.split(",")))

    def encode(sentences: list[list[str]]) -> list[np.ndarray]:
        # float16 takes half the space; probes mix the layers in float32.
        return [each[rows].astype(np.float16) for each in encoder.encode(sentences)]

    write_features(
        path,
        options.sentences,
        encode,
        attributes | {"precision": str(encoder.model.dtype)},
    )


if __name__ == "__main__":
    sys.exit(
        run_main(
            Options,
            write,
            None,
            prog="python -m experiments.peers.pretrained",
            description="Write the states of a frozen Hugging Face model as features.",
        )
    )
