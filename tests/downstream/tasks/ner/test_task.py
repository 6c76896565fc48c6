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
from tests.references import crf_negative_log_likelihood


def ten_examples() -> list[TaggedSentence]:
    return [
        TaggedSentence(TaskSentence(tuple(words), "ten", 1), [pair.split("/")[1] for pair in line.split(" ")])
        for words, line in zip(words_of(), TEN_SENTENCES.splitlines(), strict=True)
    ]


@pytest.mark.parametrize(
    ("gold", "predicted", "counts"),
    [
        ("B-A I-A O B-B", "B-A I-A O B-A", [1, 2, 2]),
        ("B-A I-A B-A", "B-A I-A I-A", [0, 2, 1]),  # both boundaries
        ("B-A B-A", "B-A I-B", [1, 2, 2]),  # an I of another type begins an entity
        ("O I-B-C I-B-C", "O B-B-C I-B-C", [1, 1, 1]),  # and one that follows O
        ("O", "O", [0, 0, 0]),
    ],
)
def test_entities_are_counted_as_conlleval_does(gold: str, predicted: str, counts: list[int]) -> None:
    example = TaggedSentence(TaskSentence(("x",) * len(gold.split()), "f", 1), gold.split())
    assert TASK.count(example, predicted.split()).tolist() == counts


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
