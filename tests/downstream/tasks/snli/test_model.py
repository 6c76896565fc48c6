"""ESIM: the paper's equations, whatever the padding."""

from dataclasses import replace

import pytest
import torch
from downstream.tasks.snli.task import TASK, Esim, SnliSettings
from tests.references import lstm_states
from torch import Tensor

DROPOUT = 0.4


def model_of(**changed: int) -> Esim:
    torch.manual_seed(1)
    settings = replace(TASK.published, **{"hidden_size": 3, "dropout": DROPOUT, **changed})
    assert isinstance(settings, SnliSettings)
    return Esim(input_size=5, labels=3, settings=settings).double().eval()


def pairs_of(premise_lengths: list[int], hypothesis_lengths: list[int]) -> list[tuple[Tensor, Tensor]]:
    """Random inputs [n, D], one pair of sentences each."""
    torch.manual_seed(2)
    return [
        (torch.randn(first, 5, dtype=torch.float64), torch.randn(second, 5, dtype=torch.float64))
        for first, second in zip(premise_lengths, hypothesis_lengths, strict=True)
    ]


def padded(sentences: list[Tensor]) -> tuple[Tensor, Tensor]:
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True), lengths


def logits_of(model: Esim, pairs: list[tuple[Tensor, Tensor]]) -> Tensor:
    return model(*padded([pair[0] for pair in pairs]), *padded([pair[1] for pair in pairs]))


def plain_bilstm(lstm: torch.nn.LSTM, x: Tensor) -> list[Tensor]:
    forward, backward = lstm_states(lstm, x), lstm_states(lstm, x.flip(0), "_reverse")[::-1]
    return [torch.cat(both) for both in zip(forward, backward, strict=True)]


def plain_esim(model: Esim, premise: Tensor, hypothesis: Tensor) -> Tensor:
    """Chen et al. (2017), equations 8 to 19, one pair and one word at a time; without dropout."""
    encoded = []
    for x in (premise, hypothesis):
        projected = [model.projection(row) for row in x]
        states = plain_bilstm(model.encoder.lstm, torch.stack(projected))
        encoded.append([torch.cat([h, row]) if model.shortcut else h for h, row in zip(states, projected, strict=True)])
    first, second = encoded
    pooled = []
    for own, other in ((first, second), (second, first)):
        composed = []
        for a in own:
            weights = torch.stack([a @ b for b in other]).softmax(dim=0)
            attended = sum(weight * b for weight, b in zip(weights, other, strict=True))
            composed.append(model.enhancement(torch.cat([a, attended, a - attended, a * attended])))
        states = torch.stack(plain_bilstm(model.inference.lstm, torch.stack(composed)))
        pooled += [states.mean(dim=0), states.max(dim=0).values]
    return model.output(torch.cat(pooled))


@pytest.mark.parametrize(("projection", "shortcut"), [(0, False), (4, False), (0, True), (4, True)])
def test_outputs_and_gradients_are_those_of_the_equations(projection: int, shortcut: bool) -> None:
    model = model_of(projection_size=projection, shortcut=shortcut)
    pairs = pairs_of([4, 1, 2, 6], [2, 3, 1, 6])
    for pair in pairs:
        for x in pair:
            x.requires_grad_()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "bias" in name:
                weight.uniform_(0, 1)  # so that no rectifier is shut for all pairs
    leaves = [*model.parameters(), *(x for pair in pairs for x in pair)]
    outputs, gradients = [], []
    for logits in (logits_of(model, pairs), torch.stack([plain_esim(model, *pair) for pair in pairs])):
        outputs.append(logits)
        gradients.append(
            torch.autograd.grad(torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2, 1])), leaves)
        )
    torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(*gradients, rtol=1e-7, atol=1e-10)
    assert all(gradient.any() for gradient in gradients[0]), "every weight and every input matters"


def test_published_size() -> None:
    assert isinstance(TASK.published, SnliSettings)
    model = Esim(input_size=1024, labels=3, settings=TASK.published)
    lstms = 2 * 4 * 300 * (1024 + 300 + 2) + 2 * 4 * 300 * (300 + 300 + 2)
    linear = (2400 + 1) * 300 + (2400 + 1) * 300 + (300 + 1) * 3
    assert sum(weight.numel() for weight in model.parameters()) == lstms + linear


def test_dropout_of_an_input_is_the_same_for_all_words_of_a_sentence() -> None:
    model = model_of().train()
    seen: list[Tensor] = []
    model.encoder.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    model.encode(torch.ones(40, 6, 5, dtype=torch.float64), torch.full((40,), 6))
    (dropped,) = seen
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.6])
    assert 0.3 < (dropped == 0).double().mean() < 0.5


def test_first_weights_are_the_published_ones() -> None:
    model = model_of()
    for lstm in (model.encoder.lstm, model.inference.lstm):
        for suffix in ("_l0", "_l0_reverse"):
            recurrent = getattr(lstm, f"weight_hh{suffix}")  # [4H, H]
            torch.testing.assert_close(recurrent.T @ recurrent, torch.eye(3, dtype=torch.float64), atol=1e-6, rtol=0)
            assert not getattr(lstm, f"bias_ih{suffix}").any()
            assert getattr(lstm, f"bias_hh{suffix}").tolist() == [0] * 3 + [1] * 3 + [0] * 6, "the forget gate is open"
    weights = model_of(hidden_size=100).output[2].weight
    assert weights.abs().max().item() == pytest.approx((6 / 103) ** 0.5, rel=0.1), "Glorot's limit"


class Unlike(torch.nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.full((len(a), a.shape[1], b.shape[1]), -40.0, dtype=a.dtype)


def test_padding_takes_no_attention_from_words_that_are_unlike() -> None:
    model = model_of()
    model.attention = Unlike()
    pairs = pairs_of([3, 6], [2, 7])
    torch.testing.assert_close(logits_of(model, pairs)[:1], logits_of(model, pairs[:1]))
