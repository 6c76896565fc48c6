"""Tagging: a bidirectional LSTM over sentences of different lengths, and Viterbi's
search for the best tags under a CRF.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class BiLstm(torch.nn.Module):
    """PyTorch's bidirectional LSTM over padded sentences of different lengths.

    Args:
        input_size: D, of a word.
        hidden_size: H, of each direction.
        layers: their number.
        dropout: on the outputs of every layer but the last.
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
        packed = pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = self.lstm(packed)
        padded, _ = pad_packed_sequence(
            states, batch_first=True, total_length=x.shape[1]
        )
        return padded


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

    `allennlp_light`'s `viterbi_tags` gives the same, one sentence after the other, and
    takes seven times as long for 32 sentences.

    Args:
        logits: [B, T, K].
        lengths: [B], 1 … T, on any device.
        transitions: [K, K], from row to column; minus infinity where one is not
            allowed.
        start: [K], of the first tag; minus infinity where it is not allowed.
        end: [K], of the last tag, likewise.
    """
    batch, steps, tags = logits.shape
    lengths = lengths.to(logits.device)
    stay = torch.arange(tags, device=logits.device).expand(batch, tags)
    scores = start + logits[:, 0]  # [B, K]
    pointers = []
    for step in range(1, steps):
        reached = scores.unsqueeze(2) + transitions  # [B, K, K]
        best, previous = reached.max(dim=1)  # [B, K]
        # After its end a sentence keeps its scores, and each tag points to itself.
        inside = (step < lengths).unsqueeze(1)  # [B, 1]
        scores = torch.where(inside, best + logits[:, step], scores)
        pointers.append(torch.where(inside, previous, stay))
    tag = (scores + end).argmax(dim=1, keepdim=True)  # [B, 1]
    backwards = [tag]
    for previous in reversed(pointers):
        tag = previous.gather(1, tag)
        backwards.append(tag)
    paths = torch.cat(backwards[::-1], dim=1).tolist()  # [B, T]
    pairs = zip(paths, lengths.tolist(), strict=True)
    return [path[:length] for path, length in pairs]
