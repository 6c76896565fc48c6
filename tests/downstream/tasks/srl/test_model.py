"""The SRL tagger: the numbers of the plain model, and paths within BIO."""

from dataclasses import replace

import torch
from allennlp_light.modules.stacked_alternating_lstm import StackedAlternatingLstm
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import make_sentence
from downstream.inputs.sources import InputSources, WordTable
from downstream.readers.columns import Span, bio_tags
from downstream.tasks.srl.model import Proposition, SrlProbe, SrlSentence
from downstream.tasks.srl.task import PUBLISHED
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

LABELS = ["ARG0", "ARG1", "C-ARG1", "V"]


def sentence(words: str, *predicates: int) -> SrlSentence:
    propositions = tuple(Proposition(place, "be", (Span("V", place, place),)) for place in predicates)
    return SrlSentence(make_sentence(words.split(), file="f", line=1), propositions)


EXAMPLES = [
    sentence("Ada wrote the first program", 1, 4),
    sentence("Stop", 0),
    sentence("It ran and ended and was never run again", 1, 3, 5, 7),
    sentence("Charles said so", 1),
]


def make_probe(*, dropout: float = 0.0, recurrent_dropout: float = 0.0) -> SrlProbe:
    torch.manual_seed(2)
    words = WordTable("random:1:6", sentences=[example.sentence for example in EXAMPLES])
    sizes = {"flag_size": 3, "hidden_size": 5, "layers": 3}
    settings = replace(PUBLISHED, **sizes, dropout=dropout, recurrent_dropout=recurrent_dropout)
    inputs = ProbeInputs(InputSources(words=words, states=None))
    return SrlProbe(inputs=inputs, settings=settings, labels=LABELS).eval()


def plain_scores(probe: SrlProbe, example: SrlSentence, predicate: int) -> Tensor:
    """[T, K] for one proposition, by the modules of allennlp_light and PyTorch alone."""
    x, _ = probe.inputs([example.sentence])  # [1, T, D]
    flags = torch.tensor([int(place == predicate) for place in range(x.shape[1])])
    x = torch.cat([x, probe.flag(flags).unsqueeze(0)], dim=2)
    lstm = StackedAlternatingLstm(x.shape[2], 5, 3, use_input_projection_bias=False)
    named = probe.lstm.state_dict().items()
    lstm.load_state_dict({name.replace("cells.", "layer_").replace(".", ".cell.", 1): value for name, value in named})
    states = lstm(pack_padded_sequence(x, torch.tensor([x.shape[1]]), batch_first=True))[0].data
    return probe.output(states)


def test_the_loss_is_that_of_the_plain_model() -> None:
    probe = make_probe()
    propositions = [(example, one) for example in EXAMPLES for one in example.propositions]
    assert len(propositions) == 8
    losses = []
    for example, one in propositions:
        targets = [probe.tags.names.index(tag) for tag in bio_tags(one.spans, len(example.sentence.words))]
        scores = plain_scores(probe, example, one.predicate)
        losses.append(torch.nn.functional.cross_entropy(scores, torch.tensor(targets)))
    torch.testing.assert_close(probe.loss(EXAMPLES), torch.stack(losses).mean())


def test_predictions_are_the_best_paths_of_the_plain_model_for_any_batch() -> None:
    probe = make_probe().requires_grad_(False)
    probe.output.weight.mul_(20)
    together = probe.predict(EXAMPLES)
    assert [len(roles) for roles in together] == [2, 1, 4, 1]
    assert together == [probe.predict([example])[0] for example in EXAMPLES], "padding changes nothing"
    assert sum(map(len, (spans for roles in together for spans in roles))) > 8
    for example, roles in zip(EXAMPLES, together, strict=True):
        length = len(example.sentence.words)
        for one, spans in zip(example.propositions, roles, strict=True):
            scores = plain_scores(probe, example, one.predicate)
            [tags] = probe.tags.best(scores.unsqueeze(0), torch.tensor([length]))
            assert bio_tags(spans, length) == tags


def test_two_threads_add_gradients_in_the_same_order() -> None:
    probe = make_probe()
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    found = []
    for _ in range(10):
        probe.zero_grad()
        probe.loss(EXAMPLES * 300).backward()
        found.append([each.grad.clone() for each in probe.parameters()])
    torch.set_num_threads(threads)
    torch.testing.assert_close(found, found[:1] * 10, rtol=0, atol=0)
