"""Tagging: a bidirectional LSTM over padded sentences, and Viterbi's search for the
best tags under a CRF.

The LSTM does not pack sentences: PyTorch would step through time on a CPU, a dozen
small operations a step with a backward pass each, where a whole padded batch in one
direction is a single call of oneDNN. Padding follows the words of a sentence and cannot
change their states in the forward direction. For the backward direction each sentence
is reversed in its own row, so that the padding stays last.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import dropout
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BiLstm(torch.nn.Module):
    """PyTorch's bidirectional LSTM over padded sentences of different lengths.

    dropout  on the outputs of every layer but the last
    """

    def __init__(
        self,
        *,
        input_size: int,
        hidden_size: int,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(
            input_size,
            hidden_size,
            num_layers=layers,
            dropout=dropout if layers > 1 else 0.0,
            bidirectional=True,
            batch_first=True,
        )
        self.output_size = 2 * hidden_size

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """[B, T, D] and lengths [B] (on the CPU, each at least 1) → [B, T, 2H], zeros
        after the end of a sentence.
        """
        if x.is_cpu:
            return padded_bilstm(self.lstm, x, lengths)
        packed = pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=x.shape[1]
        )
        return states


def padded_bilstm(lstm: torch.nn.LSTM, x: Tensor, lengths: Tensor) -> Tensor:
    """What `lstm` makes of x [B, T, D], packed by lengths [B] and padded again: [B, T,
    2H], zeros after each end.

    lstm  bidirectional, with biases, batch first, without a projection; its own dropout
    applies between layers
    """
    batch, time = x.shape[:2]
    steps = torch.arange(time, device=x.device)
    lengths = lengths.to(x.device).unsqueeze(1)
    inside = steps < lengths  # [B, T]
    source = torch.where(
        inside, lengths - 1 - steps, steps
    )  # [B, T]: the place each word of the reversed row is from
    source = (
        source + time * torch.arange(batch, device=x.device).unsqueeze(1)
    ).flatten()  # [B · T]
    for layer in range(lstm.num_layers):
        if layer:
            x = dropout(x, lstm.dropout, lstm.training)
        forward = _one_direction(lstm, x, f"_l{layer}")
        backward = _one_direction(lstm, _rows(x, source), f"_l{layer}_reverse")
        x = torch.cat([forward, _rows(backward, source)], dim=2)  # [B, T, 2H]
    return x.masked_fill(~inside.unsqueeze(2), 0.0)


def _rows(x: Tensor, places: Tensor) -> Tensor:
    return x.flatten(0, 1).index_select(0, places).view_as(x)


def _one_direction(lstm: torch.nn.LSTM, x: Tensor, suffix: str) -> Tensor:
    weights = [
        getattr(lstm, name + suffix)
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    ]
    start = x.new_zeros(1, x.shape[0], lstm.hidden_size)
    states, _, _ = torch.lstm(
        x, (start, start), weights, True, 1, 0.0, lstm.training, False, True
    )
    return states


def transition_mask(allowed: Sequence[tuple[int, int]], tags: int) -> Tensor:
    """[K + 2, K + 2], from row to column: 0 where `allowed`, else minus infinity; the
    last two are start and end.
    """
    mask = torch.full((tags + 2, tags + 2), -torch.inf)
    mask[tuple(torch.tensor(allowed).T)] = 0.0
    return mask


def viterbi(
    logits: Tensor, lengths: Tensor, *, transitions: Tensor, start: Tensor, end: Tensor
) -> list[list[int]]:
    """The best tag sequence of each sentence of a batch under a linear-chain CRF.

    `allennlp_light`'s `viterbi_tags` gives the same, one sentence after the other.

    logits       [B, T, K], lengths [B] (1 … T, on any device)
    transitions  [K, K], from row to column; start, end [K]: minus infinity where one is
    not allowed
    """
    batch, steps, tags = logits.shape
    lengths = lengths.to(logits.device)
    stay = torch.arange(tags, device=logits.device).expand(batch, tags)
    scores = start + logits[:, 0]  # [B, K]
    pointers = []
    for step in range(1, steps):
        best, previous = (scores.unsqueeze(2) + transitions).max(
            dim=1
        )  # [B, K] over [B, K, K]
        inside = (step < lengths).unsqueeze(1)  # [B, 1]
        scores = torch.where(inside, best + logits[:, step], scores)
        pointers.append(torch.where(inside, previous, stay))
    tag = (scores + end).argmax(dim=1, keepdim=True)  # [B, 1]
    path = [tag]
    for previous in reversed(pointers):
        tag = previous.gather(1, tag)
        path.append(tag)
    paths = torch.cat(path[::-1], dim=1).tolist()  # [B, T]
    return [
        tags_of[:length]
        for tags_of, length in zip(paths, lengths.tolist(), strict=True)
    ]
