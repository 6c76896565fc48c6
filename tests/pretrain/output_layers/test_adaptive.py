"""Adaptive softmax: values and gradients of a plain twin, `<unk>`, metrics, and whole runs with a shared layer."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from elmoc.corpus import Corpus
from elmoc.encoders import DIRECTIONS
from elmoc.errors import InputError
from elmoc.model import ElmoC
from elmoc.model_directory import read_model_directory
from pretrain.config import RunConfig, TrainConfig
from pretrain.distributed.processes import Processes
from pretrain.evaluation import evaluation_line
from pretrain.join import join
from pretrain.output_layers import Targets, class_counts
from pretrain.output_layers.adaptive import AdaptiveOutput, AdaptiveSettings
from pretrain.output_layers.retrieval import retrieval
from pretrain.output_layers.softmax import SoftmaxScorer, scored
from pretrain.run.directory import RunDirectory, read_metrics
from pretrain.setup import set_up
from tests.pretrain.conftest import TinyRuns, assert_resumes_exactly, assert_same, last_checkpoint

PROJECTION, TYPES = 8, 20
ADAPTIVE: dict[str, Any] = {
    "output_layer__kind": "adaptive",
    "output_layer__types": 15,
    "output_layer__cutoffs": [4, 9],
    "output_layer__reduction": 2,
    "data__target_vectors": "none at all",
    "log__checkpoint_updates": 6,
}


def layer_of(types: int = TYPES, lexicon: int = 30, reduction: float = 2.0) -> AdaptiveOutput:
    torch.manual_seed(0)
    settings = AdaptiveSettings(types=types, cutoffs=(5, 12), reduction=reduction)
    classes = types + (types < lexicon)
    return AdaptiveOutput(PROJECTION, types, classes, settings).double()


def plain_log_probability(layer: AdaptiveOutput, state: Tensor, target: int) -> Tensor:
    """Grave et al. (2017), Section 4.3: of the head, or of the cluster in the head and of the word in the cluster."""
    head = (layer.softmax.head.weight @ state).log_softmax(dim=0)  # the first types, then the clusters
    bounds = [*layer.softmax.cutoffs]
    if target < bounds[0]:
        return head[target]
    (cluster,) = [index for index in range(len(bounds) - 1) if bounds[index] <= target < bounds[index + 1]]
    narrow, wide = layer.softmax.tail[cluster]
    within = (wide.weight @ (narrow.weight @ state)).log_softmax(dim=0)
    return head[bounds[0] + cluster] + within[target - bounds[cluster]]


@pytest.mark.parametrize("ids", [[[0, 4, 5, 11], [12, 19, 20, 29]], [[1, 2, 3, 4]], [[25, 29, 20, 26]]])
def test_loss_and_gradients_are_those_of_a_plain_twin(ids: list[list[int]]) -> None:
    layer = layer_of()
    targets = torch.tensor(ids)
    states = torch.randn(*targets.shape, PROJECTION, dtype=torch.float64, requires_grad=True)
    loss = layer(states, Targets(targets, None))
    expected = -sum(
        plain_log_probability(layer, state, min(int(target), TYPES))
        for state, target in zip(states.view(-1, PROJECTION), targets.flatten(), strict=True)
    )
    torch.testing.assert_close(loss.total, expected.float(), check_dtype=False)
    assert (int(loss.counted), int(loss.masked)) == (targets.numel(), 0)
    leaves = [states, *layer.parameters()]
    gradients = [torch.autograd.grad(each, leaves, allow_unused=True) for each in (loss.total, expected)]
    for ours, theirs in zip(*gradients, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_all_classes_have_a_probability() -> None:
    layer = layer_of()
    states = torch.randn(3, PROJECTION, dtype=torch.float64)
    log_probabilities = layer.log_probabilities(states)
    assert log_probabilities.shape == (3, TYPES + 1)
    torch.testing.assert_close(log_probabilities.exp().sum(dim=1), torch.ones(3))
    for row, state in zip(log_probabilities, states, strict=True):
        plain = torch.stack([plain_log_probability(layer, state, target) for target in range(TYPES + 1)])
        torch.testing.assert_close(row, plain.float())
    assert layer_of(types=30).log_probabilities(states).shape == (3, 30), "without rarer types there is no <unk>"


@pytest.mark.parametrize("candidates", [3, 5, 10, 17])
def test_metrics_are_those_of_a_plain_program(candidates: int) -> None:
    generator = np.random.default_rng(0)
    counts = np.sort(generator.integers(1, 100, 30))[::-1].copy()
    ids = generator.integers(0, 30, 50).astype(np.uint32)
    states = torch.randn(50, PROJECTION)
    layer = layer_of().float()
    with torch.no_grad():
        scorer = SoftmaxScorer(scored, class_counts(counts, TYPES), candidates=candidates)
        metrics = scorer.score(layer, states, ids, {"": slice(None), "first": slice(0, 20)})
        rows = layer.log_probabilities(states).double().numpy()
    unigrams = np.log([*counts[:TYPES] / counts.sum(), counts[TYPES:].sum() / counts.sum()])
    ranks, among, overall, constant_among, constant_overall = [], [], [], [], []
    for row, target in zip(rows, ids, strict=True):
        overall.append(row[min(target, TYPES)])
        constant_overall.append(unigrams[min(target, TYPES)])
        ranks.append(sum(row[:candidates] >= row[target]) if target < candidates else 0)
        if target < candidates:
            among.append(row[target] - np.log(np.exp(row[:candidates]).sum()))
            constant_among.append(unigrams[target] - np.log(np.exp(unigrams[:candidates]).sum()))
    values = metrics[""]
    expected = {
        **retrieval(torch.tensor(ranks)),
        "perplexity": math.exp(-np.mean(among)),
        "vocabulary_perplexity": math.exp(-np.mean(overall)),
        "constant_perplexity": math.exp(-np.mean(constant_among)),
        "constant_vocabulary_perplexity": math.exp(-np.mean(constant_overall)),
        "constant_accuracy_at_10": np.mean(ids < min(10, candidates)),
    }
    for name, value in expected.items():
        assert values[name] == pytest.approx(value, rel=1e-5), name
    assert metrics["first"]["reciprocal_rank"] == pytest.approx(retrieval(torch.tensor(ranks[:20]))["reciprocal_rank"])


def test_clusters_without_candidates_are_not_computed() -> None:
    layer = layer_of()
    states, classes = torch.randn(6, PROJECTION, dtype=torch.float64), torch.tensor([0, 4, 5, 11, 12, 20])
    everything = layer.log_probabilities(states)
    for candidates, computed in ((3, 5), (5, 5), (6, 12), (12, 12), (13, TYPES + 1), (TYPES + 1, TYPES + 1)):
        assert layer.scores_of_a_word(candidates) == computed
        found, own = layer.scored(states, classes, candidates)
        torch.testing.assert_close(found, everything[:, :candidates])
        torch.testing.assert_close(own, everything.gather(1, classes.unsqueeze(1))[:, 0])


def test_it_learns_a_language_to_its_entropy() -> None:
    generator = torch.Generator().manual_seed(0)
    truth = torch.distributions.Dirichlet(torch.full((TYPES + 1,), 0.3)).sample((PROJECTION,))  # P(w | context)
    layer = layer_of(reduction=1.0).float()  # narrower clusters could not express it
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.05)
    for update in range(300):
        optimiser.param_groups[0]["lr"] = 0.05 * (1 - update / 300)
        contexts = torch.randint(PROJECTION, (1, 1000), generator=generator)
        targets = torch.multinomial(truth[contexts[0]], 1, generator=generator).T
        loss = layer(10 * torch.eye(PROJECTION)[contexts], Targets(targets, None))
        optimiser.zero_grad()
        (loss.total / loss.counted).backward()
        optimiser.step()
    with torch.no_grad():
        found = layer.log_probabilities(10 * torch.eye(PROJECTION))
    divergence = (truth * (truth.clamp(min=1e-9).log() - found)).sum(dim=1).mean()
    assert divergence < 0.03  # of entropies around 1.5


@pytest.mark.parametrize(
    ("cutoffs", "message"),
    [
        ([5, 5], r"output_layer.cutoffs must be ascending numbers from 1 on, not \[5, 5\]"),
        ([], r"output_layer.cutoffs must be ascending numbers from 1 on, not \[\]"),
        ([0, 5], "must be ascending numbers from 1 on"),
    ],
)
def test_impossible_cutoffs(cutoffs: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        AdaptiveSettings(cutoffs=tuple(cutoffs))


# whole runs


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Corpus) -> tuple[TinyRuns, RunDirectory]:
    runs = TinyRuns(tmp_path_factory.mktemp("whole"), tiny_corpus.path)
    return runs, runs.run("whole", optimiser__average=0.2, **ADAPTIVE)


def test_shared_layers_need_processes_that_train_both_directions() -> None:
    config = replace(RunConfig(), output_layer=AdaptiveSettings(), train=TrainConfig(parallel="directions"))
    with pytest.raises(InputError, match=r'train.parallel="directions" is for directions that share nothing, and both'):
        set_up(config, processes=Processes(world_size=2))


def test_a_line_of_several_sources_names_what_it_has() -> None:
    values = dict.fromkeys((name for _, name in AdaptiveSettings.shown), 0.5)
    values |= {"a/accuracy_at_10": 0.2, "b/accuracy_at_10": 0.3, "accuracy_at_10": 0.5}
    state = SimpleNamespace(update=3, words=100)
    line = evaluation_line(state, AdaptiveSettings(), values, "words")  # type: ignore[arg-type]
    assert line.endswith("\n  by source (accuracy@10): a 0.200, b 0.300")


def test_a_resumed_run_ends_the_same(whole: tuple[TinyRuns, RunDirectory]) -> None:
    runs, run = whole
    assert_resumes_exactly(runs, run.path.name, 6, optimiser__average=0.2, **ADAPTIVE)


def test_the_directions_share_one_layer(whole: tuple[TinyRuns, RunDirectory]) -> None:
    _, run = whole
    checkpoint = last_checkpoint(run)
    assert {name.partition(".")[0] for name in checkpoint["heads"]} == {"shared"}
    assert checkpoint["optimisers"].keys() == {*DIRECTIONS, "shared"}
    weights = read_model_directory(run.path).output_layer.weights
    assert weights is not None
    assert weights.keys() == checkpoint["heads"].keys()
    assert ElmoC.from_pretrained(run.path).embed(["a", "b"]).isfinite().all()


def test_its_update_is_that_of_both_gradients_together(whole: tuple[TinyRuns, RunDirectory]) -> None:
    """One thread after the other, and side by side: the sum of two gradients does not know their order."""
    runs, _ = whole
    ends = []
    for threads in (1, 2):
        run = runs.run(f"threads{threads}", train__threads=threads, **ADAPTIVE)
        ends.append(last_checkpoint(run)["heads"])
    for name, weight in ends[0].items():
        torch.testing.assert_close(ends[1][name], weight, rtol=1e-4, atol=1e-6)


def test_one_direction_alone_has_a_layer_that_join_leaves_out(
    whole: tuple[TinyRuns, RunDirectory], capsys: pytest.CaptureFixture[str]
) -> None:
    runs, _ = whole
    apart = [runs.run(name, train__directions=[name], **ADAPTIVE).path for name in DIRECTIONS]
    join(*map(str, apart), str(runs.folder / "joined"))
    assert "both directions share an output layer of this kind, and two runs have two: it is left out" in (
        capsys.readouterr().out
    )
    assert read_model_directory(runs.folder / "joined").output_layer.weights is None
    assert ElmoC.from_pretrained(runs.folder / "joined").embed(["a"]).isfinite().all()


def test_going_on_takes_over_a_layer_of_the_same_classes_alone(
    whole: tuple[TinyRuns, RunDirectory], capsys: pytest.CaptureFixture[str]
) -> None:
    runs, run = whole
    init = ("--init-from", str(run.path))
    weights = read_model_directory(run.path).output_layer.weights
    same = runs.run("same", *init, **ADAPTIVE | {"train__updates": 1})
    assert_same(dict(torch.load(same.checkpoints / f"{0:09d}.pt")["heads"]), dict(weights or {}))
    printed = capsys.readouterr().out
    assert "going on from" in printed
    assert ", as it is" in printed
    runs.run("other", *init, **ADAPTIVE | {"output_layer__types": 14, "train__updates": 1})
    assert "it has no output layers for these targets, so they start anew" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("types", "candidates", "compares"),
    [(15, 15, True), (15, 16, False), (0, 16, True), (0, 10**6, True), (15, 10**6, False)],
)
def test_there_is_no_perplexity_where_other_kinds_have_more_candidates(
    runs: TinyRuns, capsys: pytest.CaptureFixture[str], types: int, candidates: int, compares: bool
) -> None:
    settings = {"output_layer__types": types, "evaluation__candidates": candidates, "train__updates": 1}
    run = runs.run("run", **ADAPTIVE | settings)
    *_, last = read_metrics(run.path, "evaluation")
    for name in ("perplexity", "constant_perplexity", "forward_perplexity"):
        assert (name in last) == compares, name
    printed = capsys.readouterr().out
    given = r"perplexity [\d.]+ \([\d.]+\), " if compares else ""
    over_all = r"perplexity over the whole vocabulary [\d.]+ \([\d.]+\), "
    line = rf"held out \(best constant\): .*, reciprocal rank [\d.]+ \([\d.]+\), {given}{over_all}targets outside"
    assert re.search(line, printed), printed
    assert ("\n| perplexity | " in (run.model / "README.md").read_text()) == compares


def test_it_learns(runs: TinyRuns) -> None:
    sizes = {"encoder__cell_size": 32, "encoder__projection_size": 16, "train__updates": 120}
    seldom = {"evaluation__every_updates": 60, "evaluation__candidates": 15, "log__checkpoint_updates": 60}
    run = runs.run("run", **ADAPTIVE | sizes | seldom)
    *_, last = read_metrics(run.path, "evaluation")
    assert last["accuracy_at_1"] > 2 * last["constant_accuracy_at_1"]
    for name in ("perplexity", "vocabulary_perplexity"):
        assert last[name] < 0.5 * last[f"constant_{name}"]


def test_a_description_says_what_is_shared(runs: TinyRuns, capsys: pytest.CaptureFixture[str]) -> None:
    runs.run("run", "--describe", **ADAPTIVE)
    P, C, E = 8, 12, 8
    encoder = (E * P + P) + 2 * P + 2 * (4 * C * P + 4 * C * P + 4 * C + P * C + 2 * P)
    head, first, second = P * (4 + 2), 4 * P + 4 * 5, 2 * P + 2 * (16 - 9)
    shared = head + first + second
    printed = capsys.readouterr().out
    assert (
        f"{2 * encoder + shared:,} ({encoder:,} a direction, {shared:,} in the output layer that they share)" in printed
    )
    assert "without a target vector" not in printed


def test_impossible_runs_are_refused(runs: TinyRuns, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs.status("run", **ADAPTIVE | {"output_layer__cutoffs": [1000]}) == 1
    assert "output_layer.cutoffs=[1000] are not below the number of classes, 16: give lower" in capsys.readouterr().err
    assert runs.status("run", **ADAPTIVE | {"output_layer__reduction": 3}) == 1
    assert "output_layer.reduction=3 leaves vectors of no numbers to cluster 2" in capsys.readouterr().err
    assert runs.status("run", train__cuda_graph=True, **ADAPTIVE) == 1
    assert (
        "train.cuda_graph needs updates that are all alike, and those with adaptive are not" in capsys.readouterr().err
    )


def test_a_gradient_that_is_not_finite_stops_the_run(
    runs: TinyRuns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_hook(self: AdaptiveSettings, **sources: Any) -> AdaptiveOutput:
        layer = build(self, **sources)
        layer.softmax.head.weight.register_hook(lambda gradient: gradient * math.inf)
        return layer

    build = AdaptiveSettings.build
    monkeypatch.setattr(AdaptiveSettings, "build", with_hook)
    assert runs.status("run", **ADAPTIVE) == 1
    error = capsys.readouterr().err
    assert "norm of the gradient is" in error
    assert "start a new run with a lower schedule.base" in error
