"""Speed: the benchmark compares the same work, counts it right, and reports all that it measures."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from elmoc.corpus import Corpus
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.lstm import LstmSizes, ProjectedLstmLayer
from elmoc.files.records import read_json
from elmoc.process import resident_bytes
from pretrain.config import DataConfig, load_config
from pretrain.data.batches import Tables
from pretrain.data.sources import TrainingData
from pretrain.execution.cuda_graph import UNTIL_RECORDED
from pretrain.setup import TrainingSetup, set_up
from pretrain.speed import contestants, matrix_products, streaming, synthetic_corpus, timing
from pretrain.speed.__main__ import main
from pretrain.speed.allennlp_loop import AllenNLPLayer
from pretrain.speed.contestants import WAYS, Contestant, untimed_updates
from pretrain.speed.matrix_products import flops_per_word
from pretrain.speed.memory import PeakMemory, kept_bytes_per_word
from pretrain.speed.streaming import first_batches

TINY = """
[data]
input_vectors = "raw"
target_vectors = "half"
[encoder]
projection_size = 6
cell_size = 10
projection_clip = 0.3
dropout = 0.25
[train]
streams = 4
window = 5
mix_shards = 2
"""
FP32 = [name for name, way in WAYS.items() if way.precision == "fp32" and not way.graph]


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "tiny.toml").write_text(TINY)
    return str(tmp_path / "tiny.toml")


@pytest.fixture
def setup(config: str, tiny_corpus: Corpus) -> TrainingSetup:
    return set_up(load_config(config, [f"data.corpus={tiny_corpus.path}", "train.device=cpu"]))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured for long."""
    monkeypatch.setattr(timing, "AT_LEAST", 0.0)
    monkeypatch.setitem(matrix_products.SIZES, "cpu", (16, 32))


def weights_of(layer: nn.Module) -> list[Tensor]:
    """The parameters of a layer of any contestant, in one order."""
    if isinstance(layer, AllenNLPLayer):
        cell = layer.cell
        weights = [cell.input_linearity.weight, cell.state_linearity.weight, cell.state_linearity.bias]
        return [*weights, *cell.state_projection.parameters()]
    assert isinstance(layer, ProjectedLstmLayer)
    weights = [layer.input_weight, layer.hidden_weight, layer.bias, layer.projection_weight]
    return [*weights, *([] if layer.norm is None else layer.norm.parameters())]


@pytest.mark.parametrize("name", FP32)
@pytest.mark.parametrize("layer_norm", [True, False], ids=["layer norm", "no norm"])
@pytest.mark.parametrize("clips", [(0.0, 0.0), (0.3, 0.2)], ids=["no clips", "clips"])
def test_every_contestant_is_the_same_function(name: str, layer_norm: bool, clips: tuple[float, float]) -> None:
    torch.manual_seed(0)
    sizes = LstmSizes(
        projection_size=6,
        cell_size=10,
        dropout=0.0,
        layer_norm=layer_norm,
        cell_clip=clips[0],
        projection_clip=clips[1],
    )
    expected = BidirectionalEncoder(EncoderConfig(sizes, word_vector_size=5)).double()
    with torch.no_grad():
        for parameter in expected.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    encoder = WAYS[name].encoder(expected)
    vectors = torch.randn(2, 3, 4, 5, dtype=torch.float64)  # two windows [B, T, E]
    for direction in expected.directions:
        results = []
        for one in (expected.direction(direction), encoder.direction(direction)):
            inputs = vectors.clone().requires_grad_()
            first = one(inputs[0])
            second = one(inputs[1], first.state)
            total = sum(
                (part * torch.linspace(-1, 1, part.shape[-1])).sum()
                for part in (*second.layer_states, *sum(second.state.layers, ()))
            )
            total.backward()
            layers = one.encoder.layers
            weights = [one.input_layer.projection.weight, *(weight for layer in layers for weight in weights_of(layer))]
            results.append([*first.layer_states, *second.layer_states, inputs.grad, *(w.grad for w in weights)])
            assert len(weights) == 1 + 2 * (6 if layer_norm else 4)
        for ours, theirs in zip(*results, strict=True):
            assert ours.abs().max() > 1e-3
            torch.testing.assert_close(theirs, ours, atol=1e-9, rtol=1e-9)
    for mine, other in zip(expected.parameters(), encoder.parameters(), strict=False):
        assert mine.data_ptr() != other.data_ptr(), "weights of its own"


def test_the_loop_drops_coordinates_of_the_state_for_a_whole_window() -> None:
    torch.manual_seed(0)
    encoder = WAYS["allennlp"].encoder(
        BidirectionalEncoder(EncoderConfig(LstmSizes(projection_size=6, cell_size=10, dropout=0.5)))
    )
    states = encoder.direction("forward")(torch.randn(3, 4, 300)).layer_states[1]  # [B, T, P]
    dropped = states == 0
    assert dropped.any()
    assert not dropped.all()
    assert (dropped == dropped[:, :1]).all()


def test_flops_at_the_papers_sizes() -> None:
    assert flops_per_word(EncoderConfig(), target_size=300, directions=2) == pytest.approx(457e6, rel=1e-3)


def onednn_flops(read: Any, weight: Any, *_: Any, **__: Any) -> int:
    """Of x [n, K] by W [N, K]."""
    return 2 * read[0] * read[1] * weight[0]


@pytest.mark.parametrize("name", WAYS)
def test_an_update_makes_just_the_products_of_the_list(name: str, setup: TrainingSetup) -> None:
    contestant = Contestant(name, setup)
    (batch,) = first_batches(setup, 1)
    contestant.state.encoder.train()
    mapping = {torch.ops.mkldnn._linear_pointwise: onednn_flops}
    contestant.train_step.update_direction("forward", batch, 0.0)  # the first of a process tries oneDNN out
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        contestant.train_step.update_direction("forward", batch, 0.0)
    counted = sum(product.count * product.flops for product in contestant.products)
    assert counter.get_total_flops() == counted
    config, words = setup.encoder.config, setup.data.words_per_update
    sizes = config.sizes
    left_out = 2 * words * config.word_vector_size * sizes.projection_size  # gradients of the frozen word vectors
    if not name.startswith("fused"):  # and of the state that is cut off from the graph
        left_out += sizes.layers * 2 * 4 * sizes.projection_size * 4 * sizes.cell_size
    assert counted == words * flops_per_word(config, setup.data.targets.size, 1) - left_out


@pytest.mark.parametrize("name", ["allennlp", "plain", "fused-fp32", "fused-bf16"])
def test_the_bound_is_the_time_of_those_products(
    name: str, setup: TrainingSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    contestant, device = Contestant(name, setup), setup.execution.device
    called = []

    def count_flops(calls: dict[str, Callable[[], object]], runner: object, device: torch.device) -> float:
        assert list(calls) == ["forward", "backward"]
        with FlopCounterMode(
            display=False, custom_mapping={torch.ops.mkldnn._linear_pointwise: onednn_flops}
        ) as counter:
            calls["forward"]()
        called.append(counter.get_total_flops())
        return 0.25

    monkeypatch.setattr(matrix_products, "seconds_each", count_flops)
    seconds = matrix_products.seconds_of_products(
        contestant.products, contestant.train_step.threads, device, contestant.dtype
    )
    assert called == [product.flops for product in contestant.products]
    assert seconds == 0.25 * sum(product.count for product in contestant.products)
    contestant.close()


def test_an_update_trains_every_direction(setup: TrainingSetup) -> None:
    for name in WAYS:
        contestant = Contestant(name, setup)
        before = {key: value.clone() for key, value in contestant.state.encoder.state_dict().items()}
        contestant.update(*first_batches(setup, 1))
        contestant.close()
        for key, value in contestant.state.encoder.state_dict().items():
            assert not torch.equal(value, before[key]), key
        assert all(state is not None for state in contestant.state.recurrent.values())


class Double(torch.autograd.Function):
    """Saves what it reads and another tensor, of 1,000 floats a row."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        ctx.save_for_backward(inputs, torch.ones(inputs.shape[0] * inputs.shape[1], 1000))
        return 2 * inputs

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 2 * gradient


def test_memory_a_word_counts_what_functions_save(setup: TrainingSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = kept_bytes_per_word("plain", setup)
    forward = nn.LayerNorm.forward
    monkeypatch.setattr(nn.LayerNorm, "forward", lambda self, inputs: Double.apply(forward(self, inputs)))
    assert kept_bytes_per_word("plain", setup) == pytest.approx(plain + 2 * 4000, rel=0.02)
    assert 2 * 2 * 4 * 10 * 9 < plain < 2 * 2 * 4 * (10 * 16 + 6 * 16), "directions, layers, floats of C and P"


def test_peak_memory_is_that_of_the_moment_when_most_was_in_use() -> None:
    peak = PeakMemory(torch.device("cpu"))
    if peak.before is None:
        pytest.skip("the system does not tell")
    torch.ones(16, 1 << 20)
    torch.ones(4, 1 << 20)
    assert 64e6 < (peak.bytes() or 0) < 96e6


def test_peak_memory_leaves_out_the_pages_of_mapped_files(tmp_path: Path) -> None:
    np.ones(16 << 20, np.float32).tofile(tmp_path / "table")
    peak = PeakMemory(torch.device("cpu"))
    if peak.before is None:
        pytest.skip("the system does not tell")
    table = np.memmap(tmp_path / "table", np.float32)
    assert table.sum() == 16 << 20
    assert resident_bytes("RssFile") > 64e6
    assert (peak.bytes() or 0) < 32e6


def test_streamed_and_resident_tables_are_timed_in_turn(setup: TrainingSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    def noted(data: TrainingData, device: torch.device, *, resident: bool | None = None) -> Tables:
        given.append(resident)
        return tables(data, device, resident=resident)

    given, tables = list[bool | None](), TrainingData.tables
    monkeypatch.setattr(streaming, "UPDATES", 2)
    contestant = Contestant("plain", setup)
    monkeypatch.setattr(TrainingData, "tables", noted)
    rates = streaming.streamed_and_resident(contestant)
    contestant.close()
    assert list(rates) == ["streamed", "resident"]
    assert given == [False, True]
    for speed in rates.values():
        assert 0 < speed["minimum"] <= speed["median"] <= speed["maximum"]


def test_graphs_are_recorded_before_they_are_timed() -> None:
    for name, way in WAYS.items():
        assert untimed_updates(name, 2) == (UNTIL_RECORDED if way.graph else 2)
        assert untimed_updates(name, 50) == 50


def test_a_synthetic_corpus_is_read_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TYPES": 300, "VECTOR_SIZE": 8, "TOKENS": 1000}.items():
        monkeypatch.setattr(synthetic_corpus, name, value)
    config = load_config(
        "pretrain/configs/small.toml", ["encoder.projection_size=6", "encoder.cell_size=10", "train.streams=64"]
    )
    with synthetic_corpus.corpus_for(config.data, tokens=2000) as path:
        setup = set_up(replace(config, data=replace(config.data, corpus=path)))
        assert setup.data.corpus.train_tokens == 2000
        (batch,) = first_batches(setup, 1)
        window = next(setup.data.windows())
        ids = torch.from_numpy(window.ids["forward"].astype(int))
        torch.testing.assert_close(
            batch.inputs("forward"), torch.from_numpy(setup.data.inputs.rows[ids[:, :-1]]).float()
        )
        assert ids.max() > 200, "rare words occur"
        assert (ids == 2).sum() > (ids == 20).sum(), "and frequent ones more often"
    assert not Path(path).exists()
    with synthetic_corpus.corpus_for(DataConfig(corpus="mine"), tokens=1) as path:
        assert path == "mine"


SPEED_FIELDS = {
    "precision",
    "words_per_second",
    "ratio_to_allennlp",
    "share_of_matrix_rate",
    "share_of_bound",
    "bound_seconds",
    "update_seconds",
    "peak_bytes",
}


@pytest.mark.usefixtures("quick")
def test_the_report(
    config: str,
    tiny_corpus: Corpus,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contestants, "has_bf16", lambda device: False)
    arguments = ["--config", config, "--corpus", str(tiny_corpus.path), "--device", "cpu", "--streams", "4", "6"]
    arguments += ["--updates", "2", "--warm-up", "1", "--threads", "1", "--json", str(tmp_path / "speed.json")]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "fused-bf16 is left out: cpu has no bf16 instructions" in printed
    assert "4 streams, 20 words an update" in printed
    report = read_json(tmp_path / "speed.json", advice="measure again")
    assert report["format"] == "elmoc-speed"
    assert report["flops_per_second"]["fp32"] > 0
    assert report["skipped"].keys() == {"fused-bf16"}
    assert report["kernels"].keys() == {"fused-fp32"}
    assert [comparison["streams"] for comparison in report["comparisons"]] == [4, 6]
    for comparison in report["comparisons"]:
        assert comparison["data_seconds"].keys() == {"loader", "gather", "copy"}
        assert comparison["contestants"].keys() == report["kept_bytes_per_word"].keys() == set(FP32)
        assert comparison["tables"] is None, "there is nowhere else for them to be"
        for name, result in comparison["contestants"].items():
            assert result.keys() == SPEED_FIELDS
            speed = result["words_per_second"]
            assert 0 < speed["minimum"] <= speed["median"] <= speed["maximum"]
            median = comparison["words_per_update"] / result["update_seconds"]
            assert speed["minimum"] * (1 - 1e-9) <= median <= speed["maximum"] * (1 + 1e-9)
            assert result["bound_seconds"] > 0
            assert 0 < result["share_of_bound"]["minimum"] <= result["share_of_bound"]["maximum"]
            share = report["flops_per_word"] * speed["median"] / report["flops_per_second"]["fp32"]
            assert result["share_of_matrix_rate"] == pytest.approx(share)
            assert f"{speed['median']:,.0f}" in printed
            assert name in printed
        assert comparison["contestants"]["allennlp"]["ratio_to_allennlp"]["median"] == 1


@pytest.mark.usefixtures("quick")
def test_one_direction_without_the_baseline(config: str, tiny_corpus: Corpus, capsys: pytest.CaptureFixture) -> None:
    arguments = ["--config", config, "--corpus", str(tiny_corpus.path), "--device", "cpu", "--streams", "4"]
    arguments += ["--updates", "1", "--warm-up", "1", "--directions", "1", "--contestants", "plain"]
    assert main(arguments) == 0
    assert ", forward: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--streams", "4", "0"], "--streams must be at least 1, not 0"),
        (["--updates", "0"], "--updates must be at least 1"),
        (["--warm-up", "0"], "--warm-up must be at least 1"),
        (["--contestants", "plain", "cudnn"], "'cudnn' is not a contestant: choose from allennlp"),
        (["--config", "missing.toml"], "missing.toml does not exist"),
        (["--corpus", "missing"], "missing is not a finished corpus directory"),
        (["--device", "abacus"], "'abacus' is not a device"),
        (["--streams", "1000000"], "use fewer streams"),
        (["--corpus", "", "--streams", str(10**12)], "TB of memory, and there are"),
        (["--threads", "-1"], "the command line: train.threads must be at least 0 and at most 1024, not -1"),
        (["--json", "README.md"], "README.md exists already"),
    ],
)
def test_what_cannot_be_measured(
    arguments: list[str], message: str, config: str, tiny_corpus: Corpus, error_line: Callable[[int], str]
) -> None:
    given = ["--config", config, "--corpus", str(tiny_corpus.path), "--device", "cpu"]
    assert message in error_line(main([*given, *arguments]))


def test_nobody_is_left(
    config: str, tiny_corpus: Corpus, error_line: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contestants, "has_bf16", lambda device: False)
    given = ["--config", config, "--corpus", str(tiny_corpus.path), "--device", "cpu", "--contestants", "plain-bf16"]
    assert "no contestant is left: plain-bf16 (cpu has no bf16 instructions)" in error_line(main(given))


def test_a_missing_package_is_named(
    config: str, tiny_corpus: Corpus, error_line: Callable[[int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "allennlp_light.modules.lstm_cell_with_projection", None)
    status = main(["--config", config, "--corpus", str(tiny_corpus.path), "--device", "cpu"])
    assert "pip install allennlp-light, or leave it out of --contestants" in error_line(status)
