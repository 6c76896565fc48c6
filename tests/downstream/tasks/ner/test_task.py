"""The NER task: its probe learns, is scored as conlleval does, and computes a CRF."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import TaskSentence
from downstream.inputs.sources import InputSources, WordTable
from downstream.tasks.ner.tags import bio_to_bioul
from downstream.tasks.ner.task import TASK, NerProbe, TaggedSentence
from elmoc.errors import InputError
from tests.downstream.conftest import TEN_SENTENCES, words_of
from tests.references import conlleval_f1, crf_negative_log_likelihood


def tagged(*tags: str) -> list[TaggedSentence]:
    """Sentences of which only the tags matter."""
    return [TaggedSentence(TaskSentence(("x",) * len(line.split()), "f", 1), line.split()) for line in tags]


def entity_f1(examples: list[TaggedSentence], predictions: list[list[str]]) -> float:
    counts = sum(TASK.count(*pair) for pair in zip(examples, predictions, strict=True))
    return float(TASK.metrics(np.asarray(counts))["entity F1"])


def ten_examples() -> list[TaggedSentence]:
    return [
        TaggedSentence(TaskSentence(tuple(words), "ten", 1), [pair.split("/")[1] for pair in line.split(" ")])
        for words, line in zip(words_of(), TEN_SENTENCES.splitlines(), strict=True)
    ]


def test_entity_f1_of_random_tags_is_conllevals() -> None:
    generator = np.random.default_rng(0)
    tags = ["O", "O", "B-A", "I-A", "B-B", "I-B", "I-B-C"]
    for _ in range(50):
        gold, predicted = ([list(generator.choice(tags, size=9)) for _ in range(4)] for _ in range(2))
        predicted[0] = gold[0]
        score = entity_f1(tagged(*(" ".join(line) for line in gold)), predicted)
        assert score == pytest.approx(conlleval_f1(gold, predicted))


def probe_of(examples: list[TaggedSentence]) -> NerProbe:
    torch.manual_seed(3)
    words = WordTable("random:1:6", sentences=[example.sentence for example in examples])
    inputs = ProbeInputs(InputSources(words=words, states=None))
    settings = replace(TASK.published, hidden_size=4)
    probe = TASK.model(inputs=inputs, settings=settings, **TASK.vocabulary(examples))
    assert isinstance(probe, NerProbe)
    with torch.no_grad():
        probe.crf.transitions.normal_()
    return probe.eval()


def test_loss_is_the_likelihood_of_all_paths_enumerated() -> None:
    examples = [
        TaggedSentence(TaskSentence(("Ada", "Lovelace", "met"), "f", 1), ["B-PER", "I-PER", "O"]),
        TaggedSentence(TaskSentence(("Babbage",), "f", 5), ["B-PER"]),
        TaggedSentence(TaskSentence(("met", "Ada"), "f", 7), ["O", "B-PER"]),
    ]
    probe = probe_of(examples)
    assert probe.tags.names == ["O", "B-PER", "I-PER", "L-PER", "U-PER"]
    logits, _ = probe.logits(examples)
    expected = sum(
        crf_negative_log_likelihood(
            logits[row, : len(example.tags)].detach().numpy().astype(np.float64),
            probe.crf.transitions.detach().numpy().astype(np.float64),
            [probe.tags.names.index(tag) for tag in bio_to_bioul(example.tags)],
        )
        for row, example in enumerate(examples)
    )
    assert probe.loss(examples).item() == pytest.approx(expected, rel=1e-5)


def test_an_untrained_probe_predicts_well_formed_tags_for_any_batch() -> None:
    examples = ten_examples()
    probe = probe_of(examples)
    together = probe.predict(examples)
    assert [len(tags) for tags in together] == [len(example.tags) for example in examples]
    assert together == [probe.predict([example])[0] for example in examples], "padding changes nothing"
    assert any(tag != "O" for tags in together for tag in tags)
    for tags in together:
        for before, tag in zip(["O", *tags], tags, strict=False):
            assert tag == "O" or tag.startswith("B-") or before[2:] == tag[2:]


def test_weights_that_are_too_large_give_no_tags() -> None:
    examples = ten_examples()
    probe = probe_of(examples)
    with torch.no_grad():
        probe.output.bias.fill_(torch.inf)
    with pytest.raises(InputError, match="--learning-rate"):
        probe.predict(examples)
