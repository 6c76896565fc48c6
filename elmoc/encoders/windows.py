"""Windows: sentences that are read with the state carried from one to the next.

Letters: B sentences of a batch, T time, E word-vector width, P projection, L layers.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from elmoc.encoders import EncoderState
from elmoc.encoders.inference import InferenceEncoder

# The state of each direction, by its name, that is carried from one sentence to the next; empty is zero state.
CarriedState = dict[str, EncoderState]


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
