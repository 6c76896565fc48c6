"""Contrastive output: values and gradients of a plain twin, and what its scores come to estimate."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from elmoc.corpus import Corpus
from elmoc.encoders import DIRECTIONS
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.table import VectorTable
from pretrain.data.candidates import CandidateSampler
from pretrain.data.windows import Position
from pretrain.join import join
from pretrain.output_layers import Candidates, Targets
from pretrain.output_layers.contrastive import ContrastiveOutput, ContrastiveSettings
from pretrain.output_layers.retrieval import retrieval
from pretrain.run.directory import RunDirectory, read_metrics
from tests import references
from tests.pretrain.conftest import TinyRuns, assert_resumes_exactly, assert_same, last_checkpoint

TYPES, WIDTH, PROJECTION = 30, 6, 5
CONTRASTIVE: dict[str, Any] = {"output_layer__kind": "contrastive"}
EVERYTHING: dict[str, Any] = CONTRASTIVE | {
    "data__target_vectors": "gaps",
    "output_layer__extra_candidates": 4,
    "output_layer__cosine_weight": 0.5,
    "output_layer__ahead_weight": 0.3,
    "log__checkpoint_updates": 6,
}


def example(zero: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts and rows of a lexicon, and targets [3, 4]."""
    generator = np.random.default_rng(0)
    counts = np.sort(generator.integers(1, 100, TYPES))[::-1].copy()
    rows = generator.standard_normal((TYPES, WIDTH))
    rows[zero] = 0
    targets = generator.choice(TYPES, (3, 4), p=counts / counts.sum()).astype(np.uint32)
    return counts, rows, targets


def candidates_of(sampler: CandidateSampler, rows: np.ndarray, targets: np.ndarray, all_ids: np.ndarray) -> Candidates:
    return Candidates(
        torch.tensor(rows[all_ids], dtype=torch.float32),
        torch.from_numpy(sampler.log_frequency[all_ids]),
        torch.from_numpy(sampler.log_chance[all_ids]),
        torch.from_numpy(np.searchsorted(all_ids, targets)),
    )


@pytest.mark.parametrize("zero", [[], [2, 5, 9]], ids=["all have vectors", "some do not"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.2, "frequency": "none"},
        {"correction": False},
        {"extra_candidates": 9, "extra_power": 0.5},
        {"cosine_weight": 0.7},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_loss_and_gradients_are_those_of_plain_loops(options: dict[str, Any], zero: list[int]) -> None:
    settings = ContrastiveSettings(**options)
    counts, rows, targets = example(zero)
    sampler = CandidateSampler(counts, targets=targets.size, settings=settings.candidates, seed=1)
    ids = sampler.candidates(targets, Position(), "forward").ids
    torch.manual_seed(0)
    layer = ContrastiveOutput(PROJECTION, WIDTH, settings)
    states = torch.randn(3, 4, PROJECTION, requires_grad=True)
    loss = layer(
        states, Targets(torch.from_numpy(targets.astype(np.int64)), None, candidates_of(sampler, rows, targets, ids))
    )
    loss.total.backward()

    # every distinct candidate as if drawn: those that are targets, too, change nothing but the chance, which is given
    drawn = np.setdiff1d(ids, targets)
    drawn = [*drawn, *[int(targets[0, 0])] * (settings.extra_candidates - len(drawn))]

    def plain(
        states: np.ndarray, weight: np.ndarray, bias: np.ndarray, temperature: float, frequency_weight: float
    ) -> list[float]:
        return references.contrastive_losses(
            states @ weight.T + bias,
            [int(each) for each in targets.ravel()],
            rows,
            counts.tolist(),
            drawn=[int(each) for each in drawn],
            power=settings.extra_power,
            temperature=temperature,
            frequency_weight=frequency_weight,
            correction=settings.correction,
            cosine_weight=settings.cosine_weight,
        )

    values = {
        "states": states.detach().view(12, PROJECTION).double().numpy(),
        "weight": layer.weight.detach().double().numpy(),
        "bias": layer.bias.detach().double().numpy(),
        "temperature": settings.temperature,
        "frequency_weight": 1.0 if settings.frequency == "learned" else 0.0,
    }
    expected = plain(**values)
    assert loss.total.item() == pytest.approx(sum(expected), rel=1e-5)
    assert (int(loss.counted), int(loss.masked)) == (len(expected), 12 - len(expected))
    assert (len(expected) < 12) == bool(zero)

    def slope(name: str, index: tuple[int, ...]) -> float:
        sums = []
        for sign in (1, -1):
            moved = np.array(values[name], dtype=np.float64)
            moved[index] += sign * 1e-5
            sums.append(sum(plain(**{**values, name: moved})))
        return (sums[0] - sums[1]) / 2e-5

    assert states.grad is not None
    for index in np.ndindex(12, PROJECTION):
        found = states.grad.view(12, PROJECTION)[index].item()
        assert found == pytest.approx(slope("states", index), rel=1e-3, abs=1e-3)
    for index in np.ndindex(layer.weight.shape):
        assert layer.weight.grad[index].item() == pytest.approx(slope("weight", index), rel=1e-3, abs=1e-3)
    assert layer.bias.grad[2].item() == pytest.approx(slope("bias", (2,)), rel=1e-3, abs=1e-3)
    if settings.frequency == "learned":
        assert layer.frequency_weight.grad.item() == pytest.approx(slope("frequency_weight", ()), rel=1e-3)
    (per_logit,) = torch.autograd.grad(layer.temperature, layer.temperature_logit)
    assert layer.temperature_logit.grad.item() == pytest.approx(
        slope("temperature", ()) * per_logit.item(), rel=1e-3, abs=1e-3
    )


def best_prediction(log_probability: np.ndarray, log_frequency: np.ndarray, temperature: float) -> np.ndarray:
    """The vector x of length 1/temperature with x_u = log P(u) − log p_u + constant."""
    shape = log_probability - log_frequency
    size, total, squares = len(shape), shape.sum(), (shape**2).sum()
    constant = (-total + np.sqrt(total**2 - size * (squares - temperature**-2))) / size
    return shape + constant


def gradient_at_the_truth(*, extra: int, correction: bool) -> float:
    """How far the mean gradient is from that of the full softmax (0) where scores are log P(u | c) + constant.

    Of windows of a language that is known, with one-hot vectors, so that predictions can express any scores.
    """
    types, contexts, streams, window, windows = 12, 3, 3, 4, 300
    settings = ContrastiveSettings(extra_candidates=extra, correction=correction, temperature=0.1)
    generator = np.random.default_rng(0)
    truth = generator.dirichlet(np.full(types, 0.7), contexts) * 0.98 + 0.02 / types  # P(u | c)
    counts = np.round(1e6 * truth.mean(axis=0)).astype(np.int64)
    sampler = CandidateSampler(counts, targets=streams * window, settings=settings.candidates, seed=1)
    layer = ContrastiveOutput(contexts, types, settings)
    full = ContrastiveOutput(contexts, types, ContrastiveSettings(correction=False, temperature=0.1))
    best = [best_prediction(np.log(each), sampler.log_frequency, 0.1) for each in truth]
    with torch.no_grad():
        full.weight.copy_(torch.tensor(np.array(best).T))
        full.bias.zero_()
    layer.weight, layer.bias = full.weight, full.bias
    for number in range(windows):
        context = generator.integers(0, contexts, (streams, window))
        points = generator.random((streams, window, 1))
        targets = (truth[context].cumsum(axis=-1) < points).sum(axis=-1).clip(max=types - 1).astype(np.uint32)
        states = torch.eye(contexts)[torch.from_numpy(context)]
        ids = sampler.candidates(targets, Position(0, 0, number), "forward").ids
        losses = [
            each(states, Targets(torch.empty(0), None, candidates_of(sampler, np.eye(types), targets, among))).total
            for each, among in ((layer, ids), (full, np.arange(types)))
        ]
        ((losses[0] - losses[1]) / (windows * targets.size)).backward()
    return float(layer.weight.grad.norm())


def test_a_second_layer_adds_the_loss_of_the_word_after_the_next_one() -> None:
    counts, rows, near = example([2, 5])
    after = near[::-1, ::-1].copy()
    settings = ContrastiveSettings(ahead_weight=0.3, cosine_weight=0.5)
    sampler = CandidateSampler(counts, targets=near.size, settings=settings.candidates, seed=1)
    ids = sampler.candidates(near, Position(), "forward").ids
    torch.manual_seed(0)
    layer = ContrastiveOutput(PROJECTION, WIDTH, settings)
    assert isinstance(layer.ahead, ContrastiveOutput)
    states = torch.randn(3, 4, PROJECTION, requires_grad=True)
    of_words = [
        Targets(torch.from_numpy(targets.astype(np.int64)), None, candidates_of(sampler, rows, targets, ids))
        for targets in (near, after)
    ]
    loss = layer(states, Targets(of_words[0].ids, None, of_words[0].candidates, after=of_words[1]))
    expected = 0.0
    for each, targets, weight in ((layer, near, 1.0), (layer.ahead, after, 0.3)):
        losses = references.contrastive_losses(
            each.predict(states).detach().view(12, WIDTH).double().numpy(),
            [int(target) for target in targets.ravel()],
            rows,
            counts.tolist(),
            drawn=[],
            power=settings.extra_power,
            temperature=settings.temperature,
            frequency_weight=1.0,
            correction=True,
            cosine_weight=0.5,
        )
        expected += weight * sum(losses)
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    parts = [each.loss(states, targets).total for each, targets in zip((layer, layer.ahead), of_words, strict=True)]
    (found,) = torch.autograd.grad(loss.total, states, retain_graph=True)
    (alone,) = torch.autograd.grad(parts[0] + 0.3 * parts[1], states)
    torch.testing.assert_close(found, alone)


@pytest.mark.parametrize("extra", [0, 4])
def test_the_correction_makes_the_gradient_that_of_the_full_softmax(extra: int) -> None:
    corrected, uncorrected = (gradient_at_the_truth(extra=extra, correction=each) for each in (True, False))
    assert corrected < 0.2 * uncorrected  # what is left is noise: it falls with more windows


def test_chances_are_those_of_many_windows() -> None:
    counts = np.array([500, 300, 120, 60, 15, 5, 0])
    settings = ContrastiveSettings(extra_candidates=3, extra_power=0.5)
    sampler = CandidateSampler(counts, targets=9, settings=settings.candidates, seed=1)
    generator = np.random.default_rng(0)
    seen = np.zeros(7)
    for number in range(4000):
        others = generator.choice(7, 8, p=counts / counts.sum()).astype(np.uint32)
        seen[sampler.candidates(others, Position(1, 2, number), "backward").ids] += 1 / 4000
    np.testing.assert_allclose(seen[:6], np.exp(sampler.log_chance)[:6], atol=0.03)
    assert seen[6] == 0, "a type that the training text lacks is never drawn"
    assert np.isfinite(sampler.log_chance).all()
    assert sampler.expected == round(float(np.exp(sampler.log_chance).sum()))


def test_a_certain_candidate_and_an_improbable_one_have_finite_chances() -> None:
    counts = np.array([10**12, 10**12, 1])
    for targets in (1, 2, 10**6):
        sampler = CandidateSampler(counts, targets=targets, settings=ContrastiveSettings().candidates, seed=1)
        expected = [1 - 0.5 ** max(1, targets - 1)] * 2 + [max(1, targets - 1) / 2e12]
        np.testing.assert_allclose(np.exp(sampler.log_chance, dtype=np.float64), expected, rtol=1e-4)


def test_a_window_without_any_direction_gives_no_loss_and_no_gradient() -> None:
    counts, rows, targets = example(list(range(TYPES)))
    settings = ContrastiveSettings(cosine_weight=0.5)
    sampler = CandidateSampler(counts, targets=targets.size, settings=settings.candidates, seed=1)
    layer = ContrastiveOutput(PROJECTION, WIDTH, settings)
    ids = sampler.candidates(targets, Position(), "forward").ids
    targets_ = Targets(torch.from_numpy(targets.astype(np.int64)), None, candidates_of(sampler, rows, targets, ids))
    loss = layer(torch.zeros(3, 4, PROJECTION), targets_)
    loss.total.backward()
    assert (loss.total.item(), int(loss.counted), int(loss.masked)) == (0, 0, 12)
    assert not any(parameter.grad.any() for parameter in layer.parameters())


def test_the_temperature_is_bounded_and_never_stops_learning() -> None:
    layer = ContrastiveOutput(PROJECTION, WIDTH, ContrastiveSettings(temperature=0.07))
    assert layer.temperature.item() == pytest.approx(0.07)
    for logit, bound in ((-8.0, 0.01), (8.0, 1.0)):
        with torch.no_grad():
            layer.temperature_logit.fill_(logit)
        assert layer.temperature.item() == pytest.approx(bound, rel=1e-2)
        (slope,) = torch.autograd.grad(layer.temperature, layer.temperature_logit)
        assert slope > 0


def test_its_metrics_are_those_of_a_plain_program(tiny_corpus: Corpus) -> None:
    table = VectorTable(tiny_corpus, "gaps")
    layer = ContrastiveOutput(PROJECTION, table.size, ContrastiveSettings(temperature=0.3))
    with torch.no_grad():
        layer.frequency_weight.fill_(0.6)
    generator = np.random.default_rng(3)
    ids = generator.integers(0, tiny_corpus.types, 60).astype(np.uint32)
    predictions = generator.standard_normal((60, table.size))
    candidates = 18
    scorer = ContrastiveSettings().scorer(
        corpus=tiny_corpus, targets=table, candidates=candidates, device=torch.device("cpu")
    )
    with torch.no_grad():
        parts = {"": slice(None), "first": slice(0, 25)}
        scored = scorer.score(layer, torch.tensor(predictions, dtype=torch.float32), ids, parts)
    values = scored[""]
    ranks, likelihoods, constants = [], [], []
    rows, counts = table.rows.astype(np.float64), tiny_corpus.counts
    known = [row for row in range(candidates) if rows[row].any()]
    for prediction, target in zip(predictions, ids, strict=True):
        scores = {
            row: prediction @ rows[row] / np.linalg.norm(prediction) / np.linalg.norm(rows[row]) / 0.3
            + 0.6 * np.log(counts[row] / counts.sum())
            for row in known
        }
        ranks.append(sum(score >= scores[target] for score in scores.values()) if target in scores else 0)
        if target in scores:
            likelihoods.append(scores[target] - np.log(sum(np.exp(list(scores.values())))))
            constants.append(np.log(counts[target] / counts[known].sum()))
    for name, value in retrieval(torch.tensor(ranks)).items():
        assert values[name] == pytest.approx(value)
    by_cosine = [
        references.rank_of(p, rows, int(target), candidates) for p, target in zip(predictions, ids, strict=True)
    ]
    assert values["cosine_reciprocal_rank"] == pytest.approx(retrieval(torch.tensor(by_cosine))["reciprocal_rank"])
    assert values["perplexity"] == pytest.approx(np.exp(-np.mean(likelihoods)), rel=1e-4)
    assert values["constant_perplexity"] == pytest.approx(np.exp(-np.mean(constants)), rel=1e-4)
    assert values["cosine"] == pytest.approx(float(scorer.retriever.cosines(torch.tensor(predictions), ids).mean()))
    assert scored["first"]["reciprocal_rank"] == pytest.approx(retrieval(torch.tensor(ranks[:25]))["reciprocal_rank"])


# whole runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Corpus) -> tuple[TinyRuns, RunDirectory]:
    """A run with everything, and a checkpoint in its middle."""
    runs = TinyRuns(tmp_path_factory.mktemp("whole"), tiny_corpus.path)
    return runs, runs.run("whole", **EVERYTHING)


def test_a_resumed_run_ends_the_same(whole: tuple[TinyRuns, RunDirectory]) -> None:
    runs, run = whole
    assert_resumes_exactly(runs, run.path.name, 6, **EVERYTHING)


def test_whole_tables_on_the_device_change_nothing(whole: tuple[TinyRuns, RunDirectory]) -> None:
    runs, run = whole
    resident = runs.run("resident", data__tables_on_device=True, **EVERYTHING)
    for kind in ("encoder", "heads", "optimisers"):
        assert_same(last_checkpoint(run)[kind], last_checkpoint(resident)[kind], kind)


def test_directions_apart_are_the_directions_together(whole: tuple[TinyRuns, RunDirectory]) -> None:
    runs, run = whole
    apart = [runs.run(name, train__directions=[name], **EVERYTHING).path for name in DIRECTIONS]
    join(*map(str, apart), str(runs.folder / "joined"))
    joined = read_model_directory(runs.folder / "joined").output_layer
    together = last_checkpoint(run)["heads"]
    assert joined.config == read_model_directory(run.path).output_layer.config
    assert read_model_directory(run.path).training["updates"] == 12, "of these short runs the end is the best"
    assert_same(dict(joined.weights or {}), dict(together))


def test_going_on_takes_over_a_layer_of_the_same_kind_alone(
    whole: tuple[TinyRuns, RunDirectory], capsys: pytest.CaptureFixture[str]
) -> None:
    runs, run = whole
    init = ("--init-from", str(run.path))
    weights = read_model_directory(run.path).output_layer.weights
    same = runs.run("same", *init, **EVERYTHING | {"train__updates": 1})
    assert_same(dict(torch.load(same.checkpoints / f"{0:09d}.pt")["heads"]), dict(weights or {}))
    assert "anew" not in capsys.readouterr().out
    others = ({"output_layer__kind": "continuous"}, CONTRASTIVE, EVERYTHING | {"output_layer__correction": False})
    for number, other in enumerate(others):
        runs.run(f"other{number}", *init, **other | {"data__target_vectors": "gaps", "train__updates": 1})
        assert "it has no output layers for these targets, so they start anew" in capsys.readouterr().out


def test_it_learns(runs: TinyRuns) -> None:
    sizes = {"encoder__cell_size": 32, "encoder__projection_size": 16, "train__directions": ["forward"]}
    seldom = {"evaluation__every_updates": 60, "log__checkpoint_updates": 60}
    learning = {"output_layer__extra_candidates": 5, "train__updates": 120}
    run = runs.run("run", **CONTRASTIVE | learning | sizes | seldom)
    *_, last = read_metrics(run.path, "evaluation")
    assert last["accuracy_at_1"] > 2 * last["constant_accuracy_at_1"]
    assert last["perplexity"] < 0.5 * last["constant_perplexity"]


def test_a_description_says_what_it_needs(runs: TinyRuns, capsys: pytest.CaptureFixture[str]) -> None:
    runs.run("run", "--describe", **EVERYTHING)
    printed = capsys.readouterr().out
    P, C, E = 8, 12, 8
    layer = 4 * C * P + 4 * C * P + 4 * C + P * C + 2 * P
    direction = (E * P + P) + 2 * P + 2 * layer + 2 * (P * E + E + 2)
    assert f"trainable parameters: {2 * direction:,} ({direction:,} a direction)" in printed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.01}, "output_layer.temperature must be above 0.01 and below 1.0, not 0.01"),
        ({"extra_candidates": -1}, "output_layer.extra_candidates must be at least 0"),
        ({"extra_power": 2}, "output_layer.extra_power must be"),
        ({"frequency": "some"}, "output_layer.frequency must be one of learned, none"),
        ({"cosine_weight": -1}, "output_layer.cosine_weight must be"),
        ({"ahead_weight": "nan"}, "output_layer.ahead_weight must be"),
        ({"negatives": 3}, "unknown key output_layer.negatives"),
    ],
)
def test_settings_that_are_impossible(
    runs: TinyRuns, error_line: Callable[[int], str], settings: dict[str, Any], message: str
) -> None:
    named = {f"output_layer__{name}": value for name, value in settings.items()}
    assert message in error_line(runs.status("run", **CONTRASTIVE, **named))
    assert not (runs.folder / "run").exists()
