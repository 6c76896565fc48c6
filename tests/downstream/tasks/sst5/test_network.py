"""The biattentive classification network: that of its paper, however sentences are padded."""

from dataclasses import fields, replace

import torch
from downstream.tasks.sst5.network import BiattentiveClassifier, Sst5Settings
from downstream.tasks.sst5.task import TASK
from tests.downstream.tasks.snli.test_model import padded
from torch import Tensor


def make_classifier(dropout: float = 0.0) -> BiattentiveClassifier:
    torch.manual_seed(5)
    sizes = {"feedforward_size": 6, "hidden_size": 4, "first_output_size": 8, "second_output_size": 6, "pool_size": 3}
    dropouts = {each.name: dropout for each in fields(Sst5Settings) if each.name.endswith("_dropout")}
    settings = replace(TASK.published, **sizes, **dropouts)
    assert isinstance(settings, Sst5Settings)
    return BiattentiveClassifier(input_size=7, settings=settings).double()


def plain_logits(model: BiattentiveClassifier, x: Tensor) -> Tensor:
    """The network for one sentence [T, D], with loops over the words for everything but the LSTMs."""
    states = model.encoder.lstm(torch.relu(model.feedforward._linear_layers[0](x))[None])[0][0]  # [T, 2H]
    words = []
    for state in states:
        powers = [(state @ other).exp() for other in states]
        attended = sum(power * other for power, other in zip(powers, states, strict=True)) / sum(powers)
        words.append(torch.cat([state, state - attended, state * attended]))
    integrated = model.integrator.lstm(torch.stack(words)[None])[0][0]  # [T, 2H]
    powers = [(state @ model.pooling_weight.weight[0] + model.pooling_weight.bias[0]).exp() for state in integrated]
    weighted = sum(power * state for power, state in zip(powers, integrated, strict=True)) / sum(powers)
    output = torch.cat([integrated.max(0).values, integrated.min(0).values, integrated.mean(0), weighted])
    for layer in model.output._linear_layers:
        output = layer(output).reshape(-1, 3).max(dim=1).values
    return output


def test_each_sentence_of_a_batch_is_the_plain_network_in_outputs_and_gradients() -> None:
    model = make_classifier().eval()
    sentences = [torch.randn(length, 7, dtype=torch.float64, requires_grad=True) for length in (3, 1, 6, 2)]
    logits = model(*padded(sentences))
    plain = torch.stack([plain_logits(model, sentence) for sentence in sentences])
    torch.testing.assert_close(logits, plain, rtol=1e-10, atol=1e-12)
    direction = torch.randn_like(logits)
    variables = [*sentences, *model.parameters()]
    ours, theirs = (torch.autograd.grad((one * direction).sum(), variables) for one in (logits, plain))
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


def test_the_published_sizes_have_the_published_widths() -> None:
    assert isinstance(TASK.published, Sst5Settings)
    model = BiattentiveClassifier(input_size=1324, settings=TASK.published)
    assert model.integrator.lstm.input_size == 1800
    shapes = [tuple(layer.weight.shape) for layer in model.output._linear_layers]
    assert shapes == [(1200 * 4, 2400), (600 * 4, 1200), (5 * 4, 600)]
    dropouts = [model.embedding_dropout, *model.feedforward._dropout, model.integrator_dropout, *model.output._dropout]
    assert [dropout.p for dropout in dropouts] == [0.5, 0.25, 0.1, 0.2, 0.3, 0.0]
