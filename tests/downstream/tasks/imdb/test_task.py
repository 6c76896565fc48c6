"""The IMDB task: reviews are read, and the probe is an LSTM whose last state is classified."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import InputSources, WordTable
from downstream.tasks.imdb.task import TASK, ImdbProbe, ImdbReaderOptions, LastStateClassifier
from downstream.tasks.sst5.task import Phrase
from elmoc.errors import InputError
from tests.references import lstm_states

TEN_REVIEWS = [
    ("pos", "A superb film. I liked it!"),
    ("neg", "An awful film.<br /><br />I left it."),
    ("pos", "Not awful at all: superb"),
    ("neg", "It is not superb."),
    ("pos", "I liked the plot, and the cast."),
    ("neg", "I disliked the plot; the cast left."),
    ("pos", "Go and see it."),
    ("neg", "Go away from it."),
    ("pos", "Wonderful!"),
    ("neg", "Dull"),
]


def json_lines() -> str:
    records = [
        {"id": f"train/{number}", "label": label, "text": text} for number, (label, text) in enumerate(TEN_REVIEWS)
    ]
    return "".join(json.dumps(record) + "\n" for record in records)


def read(path: Path, **options: Any) -> list[Phrase]:
    path.write_text(json_lines())
    return TASK.read(path, ImdbReaderOptions(**options), training=True)


def test_reviews_are_read(tmp_path: Path) -> None:
    reviews = read(tmp_path / "r.jsonl")
    assert [review.label for review in reviews] == [1, 0] * 5
    assert " ".join(reviews[1].sentence.words) == "An awful film . I left it ."
    assert [len(review.sentence.words) for review in read(tmp_path / "r.jsonl", words=2)] == [2] * 8 + [2, 1]


@pytest.mark.parametrize("line", ['{"label": "pos", "text": "<br />"}', '{"label": "good", "text": "a"}', "[]", "x"])
def test_what_is_no_review_is_told_with_its_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "r.jsonl").write_text(json_lines() + line + "\n")
    with pytest.raises(InputError, match=r"r.jsonl, line 11"):
        TASK.read(tmp_path / "r.jsonl", ImdbReaderOptions(), training=True)


def test_a_batch_is_each_review_by_itself_step_by_step(tmp_path: Path) -> None:
    reviews = read(tmp_path / "r.jsonl")
    torch.manual_seed(1)
    words = WordTable("random:1:6", sentences=[review.sentence for review in reviews])
    probe = ImdbProbe(inputs=ProbeInputs(InputSources(words=words, states=None)), settings=TASK.published)
    network = probe.classifier
    assert isinstance(network, LastStateClassifier)
    losses, right = [], 0
    for review, logits in zip(reviews, probe.logits(reviews), strict=True):
        x, _ = probe.inputs([review.sentence])
        expected = network.output(lstm_states(network.lstm, x[0])[-1])
        torch.testing.assert_close(logits, expected)
        losses.append(expected.logsumexp(dim=0) - expected[review.label])
        right += int(expected.argmax()) == review.label
    ours, theirs = probe.loss(reviews), torch.stack(losses).mean()
    weights = list(probe.parameters())
    torch.testing.assert_close(*(torch.autograd.grad(loss, weights) for loss in (ours, theirs)), atol=1e-5, rtol=1e-4)
    counts = np.stack([TASK.count(*pair) for pair in zip(reviews, probe.predict(reviews), strict=True)]).sum(axis=0)
    assert TASK.metrics(counts)["accuracy"] == 10 * right
