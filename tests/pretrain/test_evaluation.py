"""Evaluation: held-out metrics are what they are called."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.devices import CPU
from pretrain.data.windows import held_out_windows
from pretrain.evaluation import evaluate, predict
from pretrain.output_layers.retrieval import Retriever, retrieval
from pretrain.setup import TrainingSetup
from tests.pretrain.conftest import TinyRuns
from tests.references import rank_of
from torch.nn import functional as F


def retriever_of(rows: np.ndarray, counts: np.ndarray, candidates: int) -> Retriever:
    return Retriever(counts, SimpleNamespace(rows=rows), candidates, CPU)  # type: ignore[arg-type]


@pytest.mark.parametrize("candidates", [1, 25, 1000])
def test_ranks_are_those_of_a_plain_program(candidates: int) -> None:
    generator = np.random.default_rng(0)
    rows = generator.standard_normal((40, 6)).astype(np.float16)
    rows[[3, 17, 30]] = 0
    ids = generator.integers(0, 40, 1300).astype(np.uint32)  # more than a block
    predictions = generator.standard_normal((1300, 6)).astype(np.float32)
    ranks = retriever_of(rows, np.ones(40), candidates).ranks(torch.from_numpy(predictions), ids)
    expected = [
        rank_of(prediction.astype(np.float64), rows.astype(np.float64), int(target), min(candidates, 40))
        for prediction, target in zip(predictions, ids, strict=True)
    ]
    assert ranks.tolist() == expected
    assert (ranks == 0).any(), "zero rows and types past the candidates are misses"


def test_of_equals_the_true_word_is_the_last() -> None:
    generator = np.random.default_rng(1)
    rows = generator.choice([-1.0, 1.0], (30, 4)).astype(np.float32)  # at most 16 are distinct; cosines are exact
    predictions = generator.choice([-2.0, 0.0, 2.0], (200, 4)).astype(np.float32)
    ids = generator.integers(0, 30, 200)
    ranks = retriever_of(rows, np.ones(30), 30).ranks(torch.from_numpy(predictions), ids)
    scores = predictions @ rows.T  # all rows are of one length
    expected = [(score >= score[target]).sum() for score, target in zip(scores, ids, strict=True)]
    assert ranks.tolist() == expected
    assert ranks[~predictions.any(axis=1)].tolist() == [30] * int((~predictions.any(axis=1)).sum()), "no free points"


def test_retrieval_metrics_by_hand() -> None:
    metrics = retrieval(torch.tensor([1, 2, 10, 11, 0, 1, 0, 4]))
    assert metrics["accuracy_at_1"] == 2 / 8
    assert metrics["accuracy_at_10"] == 5 / 8
    assert metrics["reciprocal_rank"] == pytest.approx((1 + 1 / 2 + 1 / 10 + 1 / 11 + 0 + 1 + 0 + 1 / 4) / 8)
    assert metrics["outside"] == 2 / 8


def test_the_best_constant_prediction_by_hand() -> None:
    rows = np.array([[1, 0], [0, 1], [0, 0], [1, 1]], dtype=np.float32)
    retriever = retriever_of(rows, np.array([3, 1, 9, 0]), 3)
    # the direction is (3, 1)/√10; a target without a direction does not count for the cosine
    zeros = torch.zeros(4, 2)
    metrics = retriever.metrics(zeros[:, 0], zeros, np.array([0, 1, 2, 3]), {"": slice(None)})[""]
    assert metrics["constant_cosine"] == pytest.approx((3 + 1 + 4 / 2**0.5) / 10**0.5 / 3)


@pytest.fixture
def setup(runs: TinyRuns) -> TrainingSetup:
    return runs.setup(data__target_vectors="gaps")


def test_held_out_metrics_are_those_of_the_whole_streams_read_at_once(
    setup: TrainingSetup, tiny_corpus: Corpus
) -> None:
    state = setup.new_state()
    retriever = Retriever(tiny_corpus.counts, setup.data.targets, 20, CPU)
    values = evaluate(state, setup.data, retriever, words=100, execution=setup.execution)
    read = list(held_out_windows(tiny_corpus, streams=4, window=5, directions=("forward", "backward"), words=100))
    assert len(read) == 5
    cosines = {}
    for direction in ("forward", "backward"):
        inputs = np.concatenate([window.ids[direction][:, :-1] for window in read], axis=1)  # [B, 25]
        targets = np.concatenate([window.ids[direction][:, 1:] for window in read], axis=1)
        with torch.no_grad():
            top = (
                state.encoder.direction(direction)
                .eval()(torch.from_numpy(np.array(setup.data.inputs.rows[inputs])))
                .layer_states[-1]
            )
            predictions = state.output_layers.direction(direction).predict(top)
        true = torch.from_numpy(np.array(setup.data.targets.rows[targets]))
        cosines[direction] = F.cosine_similarity(predictions, true, dim=-1)[true.any(dim=-1)].mean().item()
        assert values[f"{direction}_cosine"] == pytest.approx(cosines[direction], abs=1e-6)
        flat = targets.ravel().astype(np.int64)
        ranks = retriever.ranks(predictions.flatten(0, 1), flat)
        assert values[f"{direction}_reciprocal_rank"] == pytest.approx(retrieval(ranks)["reciprocal_rank"])
        outside = ((flat >= 20) | ~true.any(-1).numpy().ravel()).mean()
        assert values[f"{direction}_constant_outside"] == values[f"{direction}_outside"] == pytest.approx(outside)
    assert values["cosine"] == pytest.approx(sum(cosines.values()) / 2)


def test_windows_are_read_as_in_training(runs: TinyRuns, tiny_corpus: Corpus) -> None:
    setup = runs.setup(train__carry_state=False)
    windows = list(held_out_windows(tiny_corpus, streams=4, window=5, directions=("forward", "backward"), words=60))
    state = setup.new_state()
    state.set_training(False)
    read = partial(predict, state, setup.data, execution=setup.execution)
    assert torch.equal(read(windows)[0]["forward"], torch.cat([read([each])[0]["forward"] for each in windows]))


def test_evaluation_draws_no_dropout_and_changes_nothing(setup: TrainingSetup, tiny_corpus: Corpus) -> None:
    state = setup.new_state()
    retriever = Retriever(tiny_corpus.counts, setup.data.targets, 20, CPU)
    before = {name: value.clone() for name, value in state.encoder.state_dict().items()}
    first, second = (evaluate(state, setup.data, retriever, words=100, execution=setup.execution) for _ in range(2))
    assert first == second
    assert all(torch.equal(before[name], value) for name, value in state.encoder.state_dict().items())
    assert state.recurrent == {"forward": None, "backward": None}
