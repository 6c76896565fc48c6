"""Tagging: which tags may follow each other, and Viterbi's search for the best ones."""

from collections.abc import Iterable, Sequence

import torch
from allennlp_light.modules.conditional_random_field.conditional_random_field import (
    allowed_transitions,
)
from torch import Tensor


class Tags(torch.nn.Module):
    """K tags of words: their numbers, and the best sequences of them.

    Args:
        labels: of spans.
        places: of a word in a span: "BI" for tags in BIO, "BILU" for BIOUL.

    Attributes:
        names: of the tags, in the order of their scores.
        mask: [K + 2, K + 2], scores of transitions from row to column: 0, or minus
            infinity where the coding does not allow them. K is the start, K + 1 the end
            of a sentence.
    """

    mask: Tensor

    def __init__(self, labels: Iterable[str], places: str) -> None:
        super().__init__()
        self.names = ["O"]
        for label in labels:
            self.names += [f"{place}-{label}" for place in places]
        allowed = allowed_transitions(
            "BIO" if places == "BI" else "BIOUL", dict(enumerate(self.names))
        )
        mask = torch.full((len(self.names) + 2, len(self.names) + 2), -torch.inf)
        mask[tuple(torch.tensor(allowed).T)] = 0.0
        # It is not saved with a probe: it follows from the labels.
        self.register_buffer("mask", mask, persistent=False)

    def numbers(self, sentences: Iterable[Sequence[str]], *, padding: int) -> Tensor:
        """int64 [B, T]: the numbers of the tags of each sentence, then `padding`."""
        numbers = {name: number for number, name in enumerate(self.names)}
        ids = (list(map(numbers.__getitem__, tags)) for tags in sentences)
        rows = [torch.tensor(row) for row in ids]
        return torch.nn.utils.rnn.pad_sequence(
            rows, batch_first=True, padding_value=padding
        )

    def best(
        self, scores: Tensor, lengths: Tensor, transitions: Tensor | float = 0.0
    ) -> list[list[str]]:
        """The best tags of each sentence among those that the coding allows.

        Args:
            scores: [B, T, K], of the tags of words.
            lengths: see `viterbi`.
            transitions: [K, K], scores of transitions, if there are some.
        """
        of_tags = slice(len(self.names))
        mask = self.mask.clone()
        mask[of_tags, of_tags] += transitions
        paths = viterbi(scores, lengths, mask)
        return [list(map(self.names.__getitem__, path)) for path in paths]


def viterbi(logits: Tensor, lengths: Tensor, transitions: Tensor) -> list[list[int]]:
    """The best tag sequence of each sentence of a batch under a linear-chain CRF.

    `allennlp_light`'s `viterbi_tags` gives the same, one sentence after the other, and
    takes seven times as long for 32 sentences.

    Args:
        logits: [B, T, K].
        lengths: [B], 1 … T, on any device.
        transitions: [K + 2, K + 2], from row to column; minus infinity where one is not
            allowed. Row K is for the first tag, column K + 1 for the last.
    """
    batch, steps, tags = logits.shape
    lengths = lengths.to(logits.device)
    stay = torch.arange(tags, device=logits.device).expand(batch, tags)
    scores = transitions[tags, :tags] + logits[:, 0]  # [B, K]
    pointers = []
    for step in range(1, steps):
        reached = scores.unsqueeze(2) + transitions[:tags, :tags]  # [B, K, K]
        best, previous = reached.max(dim=1)  # [B, K]
        # After its end a sentence keeps its scores, and each tag points to itself.
        inside = (step < lengths).unsqueeze(1)  # [B, 1]
        scores = torch.where(inside, best + logits[:, step], scores)
        pointers.append(torch.where(inside, previous, stay))
    tag = (scores + transitions[:tags, tags + 1]).argmax(dim=1, keepdim=True)  # [B, 1]
    backwards = [tag]
    for previous in reversed(pointers):
        tag = previous.gather(1, tag)
        backwards.append(tag)
    paths = torch.cat(backwards[::-1], dim=1).tolist()  # [B, T]
    return [path[:length] for path, length in zip(paths, lengths.tolist(), strict=True)]
