"""Sources of text in a run: read by their weights, and each with its held-out metrics."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.model_directory import read_model_directory
from pretrain.data.windows import held_out_windows
from pretrain.evaluation import evaluate, predict, score_of
from pretrain.output_layers.retrieval import Retriever
from pretrain.run.directory import read_metrics
from tests.pretrain.conftest import TinyRuns, last_checkpoint

from pretrain.run import recorder

WEIGHTS = "--set=data.sources={news = 0.5, talk = 2}"


def test_a_run_reports_every_source(runs: TinyRuns, named_corpus: Corpus) -> None:
    run = runs.run("run", WEIGHTS, data__corpus=str(named_corpus.path))
    first, last = read_metrics(run.path, "evaluation")
    for line in (first, last):
        assert {f"{name}/{metric}" for name in ("news", "talk") for metric in ("cosine", "accuracy_at_10")} <= set(line)
    held_out = read_model_directory(run.model).training["held_out"]
    best = max((first, last), key=lambda line: line["talk/cosine"] + line["news/cosine"])
    assert held_out["talk/cosine"] == pytest.approx(best["talk/cosine"], abs=1e-5)
    assert last["macro_cosine"] == pytest.approx((last["talk/cosine"] + last["news/cosine"]) / 2)
    assert json.loads(run.config.read_text())["data"]["sources"] == {"news": 0.5, "talk": 2.0}


def test_metrics_of_a_source_are_those_of_its_words_alone(runs: TinyRuns, named_corpus: Corpus) -> None:
    setup = runs.setup(data__corpus=str(named_corpus.path))
    state = setup.new_state()
    retriever = Retriever(named_corpus.counts, setup.data.targets, 20, torch.device("cpu"))
    values = evaluate(state, setup.data, retriever, words=101, execution=setup.execution)
    everything: dict[str, list[np.ndarray]] = {"forward": [], "backward": []}
    hits = {direction: [] for direction in everything}
    for source in ("talk", "news"):
        windows = held_out_windows(
            named_corpus, streams=4, window=5, directions=("forward", "backward"), words=51, source=source
        )
        predicted, true = predict(state, setup.data, windows, setup.execution)
        scores = []
        for direction in everything:
            ranks = retriever.ranks(predicted[direction], true[direction]).numpy()
            scores.append(((ranks > 0) & (ranks <= 10)).mean())
            hits[direction].append((ranks > 0) & (ranks <= 10))
            everything[direction].append(true[direction])
        assert values[f"{source}/accuracy_at_10"] == pytest.approx(np.mean(scores))
        ids = np.concatenate([named_corpus.read_shard(each) for each in named_corpus.held_out if each.source == source])
        assert set(true["forward"].tolist()) <= set(ids.tolist())
    assert values["accuracy_at_10"] == pytest.approx(np.mean([np.concatenate(each).mean() for each in hits.values()]))
    assert not np.array_equal(*(each[:40] for each in everything["forward"]))
    without = replace(setup.data, weights={"news": 0.0})
    values = evaluate(state, without, retriever, words=101, execution=setup.execution)
    assert {name.partition("/")[0] for name in values if "/" in name} == {"talk"}, "what is not read does not count"


# held-out metrics by update: much of the text is news
EVALUATIONS = {
    0: {"cosine": 0.85, "talk/cosine": 0.1, "news/cosine": 0.9},
    6: {"cosine": 0.65, "talk/cosine": 0.2, "news/cosine": 0.7},
    12: {"cosine": 0.75, "talk/cosine": 0.5, "news/cosine": 0.8},
}
OF_THESE = {"evaluation__every_updates": 6, "log__checkpoint_updates": 6, "log__keep": 3}


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have evaluations give the metrics of `EVALUATIONS`."""
    monkeypatch.setattr(recorder, "evaluate", lambda state, *_, **__: dict(EVALUATIONS[state.update]))


@pytest.mark.usefixtures("evaluations")
def test_the_best_model_is_that_of_the_best_mean_over_sources(runs: TinyRuns, named_corpus: Corpus) -> None:
    run = runs.run("run", data__corpus=str(named_corpus.path), **OF_THESE)
    assert [line["macro_cosine"] for line in read_metrics(run.path, "evaluation")] == pytest.approx([0.5, 0.45, 0.65])
    assert last_checkpoint(run)["best_update"] == 12
    held_out = read_model_directory(run.model).training["held_out"]
    assert held_out == EVALUATIONS[12] | {"macro_cosine": 0.65}


def test_a_source_without_a_score_does_not_count() -> None:
    assert score_of({"cosine": 0.4}, "cosine") == 0.4
    assert score_of({"cosine": 0.4, "a/cosine": 0.2, "b/cosine": None, "c/cosine": 0.5}, "cosine") == 0.35
    assert math.isnan(score_of({"cosine": 0.4, "a/cosine": math.nan, "b/cosine": None}, "cosine"))
