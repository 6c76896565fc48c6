"""Windows: sentences that are read with the state carried, from window to window or from one sentence to the next.

Letters: B sentences of a batch, T time, E word-vector width, P projection, L layers.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from elmoc.encoders import EncoderState
from elmoc.encoders.inference import InferenceEncoder

# The state of each direction, by its name, that is carried from one sentence to the next; empty is zero state.
CarriedState = dict[str, EncoderState]


class StateSpan(NamedTuple):
    """A part of a sentence's layer states."""

    start: int  # the first of its words
    columns: slice  # the direction's part of the width 2P
    states: Tensor  # float32 [L + 1, m, P], on the CPU


def encode_windows(
    inference: InferenceEncoder,
    length: int,
    vectors: Callable[[int, int], Tensor],
    carried: CarriedState,
    *,
    window: int,
) -> Iterator[StateSpan]:
    """Yield the layer states of a sentence, without `<s>` and `</s>`, in pieces of at most `window` words.

    All pieces of the forward direction come first, those of the backward direction from the last word to the first.

    Args:
        length: of the sentence, `<s>` and `</s>` counted.
        vectors: the word vectors [m, E] from a first to before a last position, asked for as they are read.
        carried: the states before the sentence, which become those after it.
        window: positions that are read at once.
    """
    width = inference.encoder.config.sizes.projection_size
    for index, direction in enumerate(inference.encoder.directions):
        backward = direction == "backward"
        for read in range(0, length, window):
            start, stop = read, min(read + window, length)
            if backward:
                start, stop = length - stop, length - start
            here = vectors(start, stop)
            read_in_order = (here.flip(0) if backward else here).unsqueeze(0)
            output = inference.run(direction, read_in_order, carried.get(direction))
            carried[direction] = output.state
            states = torch.cat(output.layer_states).cpu()  # [L + 1, T, P]
            states = states.flip(1) if backward else states
            first, last = max(start, 1), min(stop, length - 1)  # without `<s>` and `</s>`
            if first < last:
                columns = slice(index * width, (index + 1) * width)
                yield StateSpan(first - 1, columns, states[:, first - start : last - start])


def encode_next(
    inference: InferenceEncoder, ids: Sequence[Tensor], table: Tensor, carried: CarriedState
) -> list[Tensor]:
    """Layer states [L + 1, n, 2P] of sentences without `<s>` and `</s>`, each read from its row of a state.

    Args:
        ids: int64 [n + 2] of each sentence, `<s>` and `</s>` included.
        table: the word vectors [types, E] of ids.
        carried: the states before the sentences, in their first B rows, which become those after them.
    """
    lengths = torch.tensor([len(each) for each in ids])
    halves = []
    for direction in inference.encoder.directions:
        backward, state = direction == "backward", carried.get(direction)
        read = [each.flip(0) if backward else each for each in ids]
        padded = torch.nn.utils.rnn.pad_sequence(read, batch_first=True)  # [B, T]
        if state is not None:
            state = state.map(lambda tensor: tensor[: len(ids)])
        output = inference.run(direction, table[padded], state, lengths=lengths)
        carried[direction] = output.state
        states = torch.stack(output.layer_states, dim=1).cpu()  # [B, L + 1, T, P]
        whole = [each[:, :length] for each, length in zip(states, lengths.tolist(), strict=True)]
        halves.append([each.flip(1) if backward else each for each in whole])
    return [torch.cat(each, dim=-1)[:, 1:-1].clone() for each in zip(*halves, strict=True)]
