"""Viterbi search: the best tag sequences under a linear-chain CRF, for a whole batch at once.

`allennlp_light`'s `viterbi_tags` gives the same, one sentence after the other.
"""

import torch
from torch import Tensor


def viterbi(logits: Tensor, lengths: Tensor, *, transitions: Tensor, start: Tensor, end: Tensor) -> list[list[int]]:
    """The best path of each sentence.

    logits       [B, T, K], lengths [B] (1 … T, on any device)
    transitions  [K, K], from row to column; start, end [K]: minus infinity where one is not allowed
    """
    batch, steps, tags = logits.shape
    lengths = lengths.to(logits.device)
    stay = torch.arange(tags, device=logits.device).expand(batch, tags)
    scores = start + logits[:, 0]  # [B, K]
    pointers = []
    for step in range(1, steps):
        best, previous = (scores.unsqueeze(2) + transitions).max(dim=1)  # [B, K] over [B, K, K]
        inside = (step < lengths).unsqueeze(1)  # [B, 1]
        scores = torch.where(inside, best + logits[:, step], scores)
        pointers.append(torch.where(inside, previous, stay))
    tag = (scores + end).argmax(dim=1, keepdim=True)  # [B, 1]
    path = [tag]
    for previous in reversed(pointers):
        tag = previous.gather(1, tag)
        path.append(tag)
    paths = torch.cat(path[::-1], dim=1).tolist()  # [B, T]
    return [tags_of[:length] for tags_of, length in zip(paths, lengths.tolist(), strict=True)]
