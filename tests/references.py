"""References: the slow, obvious programs that tests compare with."""

import gzip
import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np
import torch
from scipy.special import expit as sigmoid
from torch import Tensor

from elmoc.encoders import Encoder


class PlainCorpus(NamedTuple):
    """A corpus as plain lists; documents are the numbers of the sentences that start one."""

    lexicon: list[str]
    counts: list[int]
    train: list[list[str]]
    train_documents: list[int]
    held_out: list[list[str]]
    held_out_documents: list[int]


def plain_corpus(train: Sequence[Path], held_out: Sequence[Path], min_count: int) -> PlainCorpus:
    """What data_scripts.build_corpus has to make of the files."""
    splits, documents = [], []
    for files in (train, held_out):
        sentences: list[list[str]] = []
        starts: list[int] = []
        for file in files:
            data = file.read_bytes()
            text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
            new = True
            for line in text.split("\n"):
                if line.split():
                    starts += [len(sentences)] if new else []
                    sentences.append(line.split())
                new = not line.split()
        splits.append(sentences)
        documents.append(starts)
    counts = Counter(word for sentence in splits[0] for word in ["<s>", *sentence, "</s>"])
    for sentence in splits[1]:
        counts.update(dict.fromkeys(sentence, 0))
    if min_count > 1:
        rare = {word for word, times in counts.items() if times < min_count and word not in ("<s>", "</s>", "<unk>")}
        counts["<unk>"] += sum(counts.pop(word) for word in rare)
        splits = [[["<unk>" if word in rare else word for word in row] for row in rows] for rows in splits]
    lexicon = sorted(counts, key=lambda word: (-counts[word], word))
    return PlainCorpus(lexicon, [counts[word] for word in lexicon], splits[0], documents[0], splits[1], documents[1])


# downstream


def crf_path_score(logits: np.ndarray, transitions: np.ndarray, path: Sequence[int]) -> float:
    """The score of one path under a linear-chain CRF without start and end scores; logits [T, K]."""
    score = sum(logits[step, tag] for step, tag in enumerate(path))
    return float(score + sum(transitions[before, after] for before, after in pairwise(path)))


def crf_negative_log_likelihood(logits: np.ndarray, transitions: np.ndarray, path: Sequence[int]) -> float:
    """−log of the path's share among all paths, each of which is enumerated; logits [T, K]."""
    steps, tags = logits.shape
    scores = [crf_path_score(logits, transitions, other) for other in product(range(tags), repeat=steps)]
    return math.log(sum(math.exp(score) for score in scores)) - crf_path_score(logits, transitions, path)


def conlleval_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Entity F1 in percent, by the rules of conlleval: an entity is its type, its first and its last word."""

    def entities(sentences: Sequence[Sequence[str]]) -> set[tuple[int, int, int, str]]:
        found = set()
        for number, tags in enumerate(sentences):
            begin = 0
            for end, tag in enumerate(tags):
                before = tags[end - 1] if end else "O"
                if tag.startswith("B") or before[2:] != tag[2:]:
                    begin = end  # an I that follows O or another type begins an entity, too
                after = tags[end + 1] if end + 1 < len(tags) else "O"
                if tag != "O" and (not after.startswith("I") or after[2:] != tag[2:]):
                    found.add((number, begin, end, tag[2:]))
        return found

    wanted, given = entities(gold), entities(predicted)
    right = len(wanted & given)
    return 100 * 2 * right / (len(wanted) + len(given)) if right else 0.0


# encoder


def assert_of_equations(
    stack: Encoder,
    plain_states: Callable[[Any, Tensor, list[Tensor]], list[Tensor]],
    *,
    states: float,
    gradients: float,
) -> None:
    """The states of two sentences under dropout, and all gradients, are those of a plain program, sentence by sentence;
    to these relative precisions.
    """
    x = torch.randn(2, 4, stack.sizes.projection_size, dtype=torch.float64, requires_grad=True)
    masks = stack.draw_dropout_masks(2, 4, torch.Generator().manual_seed(3))
    assert any((mask == 0).any() for mask in masks)
    found = stack(x, dropout_masks=masks).layer_states
    plain = [plain_states(stack, row, [mask[index] for mask in masks]) for index, row in enumerate(x)]
    expected = [torch.stack(each) for each in zip(*plain, strict=True)]
    leaves = [x, *stack.parameters()]
    own, theirs = (torch.autograd.grad(sum((each**3).sum() for each in all_), leaves) for all_ in (found, expected))
    assert len(found) == stack.sizes.layers + 1
    torch.testing.assert_close(found, expected, rtol=states, atol=states)
    torch.testing.assert_close(own, theirs, rtol=gradients, atol=10 * gradients)


def layer_norm(values: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Zero mean and unit variance over the one axis, then scaled and shifted."""
    return weight * (values - values.mean()) / np.sqrt(values.var() + 1e-5) + bias


def encode_one(
    vectors: np.ndarray,
    weights: dict[str, np.ndarray],
    *,
    layers: int,
    cell_clip: float,
    projection_clip: float,
    masks: Sequence[np.ndarray] | None = None,
) -> list[np.ndarray]:
    """The layer states, each [T, P], that one direction makes of the words x_1 … x_T, by the equations of the paper.

    `weights` has the parameter names of `DirectionEncoder`; `masks` [P], one a layer, are already divided by the
    keep probability. The state before the first word is zero.
    """
    projected = [weights["input_projection.weight"] @ x + weights["input_projection.bias"] for x in vectors]
    inputs = [layer_norm(a, weights["input_norm.weight"], weights["input_norm.bias"]) for a in projected]
    states = [np.array(inputs)]
    for layer in range(layers):
        own = {name.removeprefix(f"layers.{layer}."): value for name, value in weights.items()}
        size = own["projection_weight"].shape[1]
        h, c = np.zeros(len(own["projection_weight"])), np.zeros(size)
        outputs = []
        for a in inputs:
            gates = own["input_weight"] @ a + own["hidden_weight"] @ h + own["bias"]
            i, f, g, o = gates[:size], gates[size : 2 * size], gates[2 * size : 3 * size], gates[3 * size :]
            c = np.clip(sigmoid(i) * np.tanh(g) + sigmoid(f) * c, -cell_clip, cell_clip)
            u = np.clip(own["projection_weight"] @ (sigmoid(o) * np.tanh(c)), -projection_clip, projection_clip)
            h = layer_norm(u, own["norm.weight"], own["norm.bias"])
            if masks is not None:
                h = h * masks[layer]
            outputs.append(h + a if layer > 0 else h)
        states.append(np.array(outputs))
        inputs = outputs
    return states


# pretraining


def lstm_states(lstm: torch.nn.LSTM, x: Tensor, suffix: str = "") -> list[Tensor]:
    """The hidden states [H] of one direction of PyTorch's LSTM over x [T, D], gate by gate."""
    input_weight, recurrent_weight, input_bias, recurrent_bias = (
        getattr(lstm, f"{name}_l0{suffix}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    h = c = x.new_zeros(lstm.hidden_size)
    states = []
    for row in x:
        i, f, g, o = (input_weight @ row + input_bias + recurrent_weight @ h + recurrent_bias).chunk(4)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        states.append(h)
    return states


def plain_windows(
    sentences: Sequence[Sequence[int]], order: Sequence[int], *, streams: int, window: int, backward: bool
) -> list[list[list[int]]]:
    """The windows of one shard, each `streams` rows of `window` + 1 ids, with its sentences in the given order."""
    tokens = [token for number in order for token in sentences[number]]
    if backward:
        tokens.reverse()
    length = len(tokens) // streams
    rows = [tokens[number * length : (number + 1) * length] for number in range(streams)]
    windows = []
    start = 0
    while start + window + 1 <= length:
        windows.append([row[start : start + window + 1] for row in rows])
        start += window
    return windows


def rank_of(prediction: np.ndarray, rows: np.ndarray, target: int, candidates: int) -> int:
    """The rank of `target` by cosine among the first `candidates` rows that are not zero; 0 if it is not there.

    Of rows with the same cosine the target is the last.
    """

    def cosine(row: np.ndarray) -> float:
        return float(prediction @ row / np.linalg.norm(row))

    if target >= candidates or not rows[target].any():
        return 0
    return sum(cosine(row) >= cosine(rows[target]) for row in rows[:candidates] if row.any())


def adam_weights(
    weights: np.ndarray,
    gradients: Sequence[np.ndarray],
    *,
    rate: float,
    betas: tuple[float, float],
    epsilon: float,
) -> np.ndarray:
    """Weights after an update by each of the gradients: Kingma and Ba (2015), Algorithm 1."""
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step, gradient in enumerate(gradients, 1):
        first = betas[0] * first + (1 - betas[0]) * gradient
        second = betas[1] * second + (1 - betas[1]) * gradient**2
        unbiased = first / (1 - betas[0] ** step), second / (1 - betas[1] ** step)
        weights = weights - rate * unbiased[0] / (np.sqrt(unbiased[1]) + epsilon)
    return weights


def contrastive_losses(
    predictions: np.ndarray,
    targets: Sequence[int],
    rows: np.ndarray,
    counts: Sequence[int],
    *,
    temperature: float = 0.05,
    frequency_weight: float = 1.0,
    cosine_weight: float = 0.0,
) -> list[float]:
    """The loss of each prediction [N, E] of the types `targets` [N] that have a vector among `rows` [V, E].

    Candidates are the types of all targets; each type's score is corrected by the chance that N − 1 other targets make
    it a candidate.
    """

    def cosine(prediction: np.ndarray, type_: int) -> float:
        return float(prediction @ rows[type_] / np.linalg.norm(prediction) / np.linalg.norm(rows[type_]))

    def score(prediction: np.ndarray, type_: int) -> float:
        share = counts[type_] / sum(counts)
        value = cosine(prediction, type_) / temperature + frequency_weight * math.log(share)
        return value - math.log(1 - (1 - share) ** (len(targets) - 1))

    candidates = {type_ for type_ in targets if rows[type_].any()}
    losses = []
    for prediction, target in zip(predictions, targets, strict=True):
        if target in candidates:
            total = sum(math.exp(score(prediction, type_)) for type_ in candidates)
            loss = math.log(total) - score(prediction, target)
            losses.append(loss + cosine_weight * (1 - cosine(prediction, target)))
    return losses


# text


def plain_words(sentence: Sequence[str]) -> list[str]:
    """The words as overlapping sentences are compared: letters and digits in lower case, without punctuation."""
    composed = [normalize("NFC", word.lower()) for word in sentence]
    words = ["".join(character for character in word if character.isalnum()) for word in composed]
    return [word for word in words if word]


def plain_overlap(sentence: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Whether a sentence equals one of the others that has five words or more, or shares eight in a row with one."""
    words = plain_words(sentence)
    for other in map(plain_words, others):
        if len(other) >= 5 and words == other:
            return True
        runs = {tuple(other[start : start + 8]) for start in range(len(other) - 7)}
        if any(tuple(words[start : start + 8]) in runs for start in range(len(words) - 7)):
            return True
    return False
