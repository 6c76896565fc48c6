"""The paper's tables of speed: sizes of their rows, the largest batch, what is compared, and what is printed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from elmoc.corpus import Corpus
from elmoc.encoders.lstm import LstmSizes
from elmoc.encoders.plain_lstm import PlainLstmSizes
from elmoc.files.records import read_json
from pretrain import CONFIGS
from pretrain.config import DataConfig, RunConfig, load_config
from pretrain.distributed.processes import Processes
from pretrain.execution.memory import OutOfMemory
from pretrain.output_layers.continuous import ContinuousSettings
from pretrain.output_layers.full_softmax import FullSoftmaxSettings
from pretrain.output_layers.sampled import SampledSettings
from pretrain.setup import TrainingSetup, set_up
from pretrain.speed import paper_tables
from pretrain.speed.__main__ import main
from pretrain.speed.contestants import with_streams
from pretrain.speed.paper_rows import SIZES, Encoder, Row, encoders, output_layers
from pretrain.speed.paper_tables import TableOptions, largest_batch, parse_bytes, text_of
from tests.warm import start_together

TABLE_OF_TINY_MODELS = """
import sys
import pytest
from elmoc.corpus import Corpus
from pretrain.speed.__main__ import main
from tests.pretrain.speed.test_paper_tables import use_tiny_models
use_tiny_models(pytest.MonkeyPatch(), Corpus(sys.argv[1]))
sys.exit(main(sys.argv[2:]))
"""
OPTIONS = TableOptions(size="small", memory=10**9, most_streams=64, updates=1, warm_up=1)


def tiny_config(corpus: Corpus) -> RunConfig:
    config = load_config(
        CONFIGS / "elmo_c.toml",
        [f"data.corpus={corpus.path}", "data.input_vectors=raw", "data.target_vectors=raw", "train.mix_shards=1"],
    )
    return replace(config, encoder=LstmSizes(projection_size=6, cell_size=8))


def use_tiny_models(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> list[int]:
    """Tables of tiny models, on one corpus; returns the types of those that are asked for."""
    asked = []

    @contextmanager
    def corpus_for(data: DataConfig, tokens: int, *, types: int) -> Iterator[str]:
        assert not data.corpus, "text is made up"
        asked.append(types)
        yield str(corpus.path)

    rows = [
        Row("CONT", "", ContinuousSettings(), paper=(76, 640, 0.5, 115.0, 34.5)),
        Row("SUBWORD", "", FullSoftmaxSettings(types=15), 1.5, paper=(92, 320, 1.09, 1.53, 1.55)),
        Row("SAMPLED", "800K", SampledSettings(samples=5)),
        Row("SAMPLED", "2000K", SampledSettings(samples=5)),
    ]
    columns = {
        "LSTM": Encoder(PlainLstmSizes(projection_size=6, layers=1), {"CONT": 3.97, "SUBWORD": "OOM"}, window=4),
        "ELMo": Encoder(LstmSizes(projection_size=6, cell_size=8), {}),
    }
    monkeypatch.setattr(paper_tables, "corpus_for", corpus_for)
    monkeypatch.setattr(paper_tables, "output_layers", lambda size: rows)
    monkeypatch.setattr(paper_tables, "encoders", lambda size: columns)
    monkeypatch.setattr(paper_tables, "base_config", lambda size: tiny_config(corpus))
    return asked


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch, tiny_corpus: Corpus) -> list[int]:
    """Tables are of tiny models; the types of the corpora that are asked for."""
    return use_tiny_models(monkeypatch, tiny_corpus)


@pytest.mark.parametrize("size", SIZES)
def test_rows_and_encoders_fit_each_other(size: str) -> None:
    rows = output_layers(size)
    assert [row.name for row in rows][:4] == ["CONT", "CONTRASTIVE", "FIXED", "SUBWORD"]
    assert {row.types for row in rows} == {40_000, 793_471, 2_000_000}
    for encoder in encoders(size).values():
        assert encoder.paper.keys() == {row.name for row in rows} - {"CONTRASTIVE"}
        assert callable(encoder.sizes.builder(fast=False))
    assert len(encoders(size)) == 6


@pytest.mark.parametrize(
    ("name", "millions"),
    # BERT base and GPT without embeddings: 12 layers of 12 · 768² weights (Devlin et al. 2019; Radford et al. 2018)
    [("LSTM", 34), ("LSTMx2", 67), ("TRANS BASE", 19), ("ELMo", 38), ("TRANS LARGE", 85), ("GPT", 85)],
)
def test_encoders_have_the_papers_sizes(name: str, millions: float) -> None:
    encoder = encoders("paper")[name]
    with torch.device("meta"):
        direction = encoder.sizes.builder(fast=False)()
    assert sum(each.numel() for each in direction.parameters()) == pytest.approx(millions * 1e6, rel=0.02)


def test_gpt_is_trained_in_one_direction(tiny_corpus: Corpus) -> None:
    assert {name for name, encoder in encoders("paper").items() if encoder.directions == ("forward",)} == {"GPT"}
    config, row = tiny_config(tiny_corpus), Row("CONT", "", ContinuousSettings())
    parameters = [
        paper_tables.measure(
            config,
            Encoder(config.encoder, {}, window=5, directions=directions),
            row,
            row,
            lambda row: str(tiny_corpus.path),
            replace(OPTIONS, most_streams=8),
            Processes(),
            one_stream=False,
        )["parameters"]
        for directions in (("forward", "backward"), ("forward",))
    ]
    assert parameters[0] == 2 * parameters[1]


def test_the_largest_batch_fits_and_the_next_does_not(tiny_corpus: Corpus) -> None:
    config = tiny_config(tiny_corpus)
    setup = set_up(replace(config, train=replace(config.train, streams=1, device="cpu", window=3)))

    def needed(streams: int) -> int:
        need = with_streams(setup, streams).memory[0]
        return need.weights + need.activations

    for streams in (8, 16, 48):
        options = replace(OPTIONS, memory=needed(streams) + 1)
        assert largest_batch(setup, options) == streams
    assert largest_batch(setup, replace(OPTIONS, memory=needed(8) - 1)) == 0
    assert largest_batch(setup, OPTIONS) == 64, "no more than asked for"
    two = set_up(
        replace(config, train=replace(config.train, streams=2, device="cpu", window=3)),
        processes=Processes(world_size=2),
    )
    assert largest_batch(two, OPTIONS) == 128, "of all processes"


def test_table_4(tmp_path: Path, capsys: pytest.CaptureFixture[str], types: list[int]) -> None:
    arguments = ["--table", "4", "--device", "cpu", "--updates", "2", "--warm-up", "1", "--most-streams", "16"]
    assert main([*arguments, "--memory", "1MB", "--json", str(tmp_path / "table.json")]) == 0
    report = read_json(tmp_path / "table.json", advice="")
    assert [row["output"] for row in report["rows"]] == ["CONT", "SUBWORD", "SAMPLED", "SAMPLED"]
    cont, subword, *_ = report["rows"]
    assert cont["streams"] == subword["streams"] == 16
    assert all(row["peak_bytes"] is not None for row in report["rows"]), "of CONT, too"
    assert cont["small_batch"]["ratio"] == cont["large_batch"]["ratio"] == 1
    for figures in (subword["small_batch"], subword["large_batch"]):
        assert 0 < figures["least_ratio"] <= figures["greatest_ratio"]
        assert figures["seconds"] > 0
    assert types == [793_471, 2_000_000], "a corpus for each vocabulary"
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith("Table 4, sizes: small; cpu (")
    (heading,) = [line for line in printed if line.startswith("output layer")]
    assert heading.split() == ["output", "layer", "vocabulary", "parameters", "batch", "peak", "memory", "S1", "S2"]
    (first,) = [line for line in printed if line.startswith("CONT ")]
    assert "≥ 16 (640)" in first
    assert "s a batch (0.5 s)" in first
    assert "s a million words (115 s)" in first
    (second,) = [line for line in printed if line.startswith("SUBWORD")]
    assert second.endswith("× (1.53×)")


@pytest.mark.usefixtures("types")
def test_a_part_of_a_table(tmp_path: Path, error_line: Callable[[int], str]) -> None:
    arguments = ["--table", "5", "--device", "cpu", "--updates", "1", "--warm-up", "1", "--most-streams", "16"]
    arguments += ["--memory", "1MB", "--json", str(tmp_path / "table.json"), "--only"]
    assert main([*arguments, "subword, lstm"]) == 0
    rows = read_json(tmp_path / "table.json", advice="")["rows"]
    assert [(row["encoder"], row["output"]) for row in rows] == [("LSTM", "CONT"), ("LSTM", "SUBWORD")]
    assert all(row["small_batch"] is None and row["large_batch"] for row in rows)
    (tmp_path / "table.json").unlink()
    assert main([*arguments, "sampled:800K, elmo"]) == 0
    rows = read_json(tmp_path / "table.json", advice="")["rows"]
    assert [(row["encoder"], row["vocabulary"]) for row in rows] == [("ELMo", ""), ("ELMo", "800K")]
    (tmp_path / "table.json").unlink()
    assert "--only gpt: there is no such row or column; there are CONT, SUBWORD, SAMPLED, SAMPLED:800K" in error_line(
        main([*arguments, "ELMo,GPT"])
    )
    for option, value in (("--only", "GPT"), ("--sizes", "small"), ("--memory", "1GB"), ("--most-streams", "8")):
        assert f"{option} is for a table of the paper" in error_line(main(["--device", "cpu", option, value]))


@pytest.mark.usefixtures("types")
def test_table_5_says_where_memory_is_too_small(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--table", "5", "--device", "cpu", "--updates", "1", "--warm-up", "1", "--most-streams", "16"]
    assert main([*arguments, "--memory", "4KB"]) == 0
    time, parameters, batch, peak = capsys.readouterr().out.strip().split("\n\n")[1:]
    assert [line.split() for line in batch.splitlines()] == [
        ["batch", "LSTM", "ELMo"],
        *([name, "OOM", "OOM"] for name in ("CONT", "SUBWORD", "SAMPLED")),
    ]
    assert [line.split()[-2:] for line in peak.splitlines()] == [["LSTM", "ELMo"], *[["–", "–"]] * 3]
    assert parameters.splitlines()[1].split() == ["CONT", "0.0M", "0.0M"]
    rows = [line.split() for line in time.splitlines()]
    assert rows[0] == ["time", "LSTM", "ELMo"]
    assert [row[0] for row in rows[1:]] == ["CONT", "SUBWORD", "SAMPLED"], "of the vocabularies 800K alone"
    assert rows[1][1:] == ["OOM", "(3.97)", "OOM"]
    assert rows[2][1:3] == ["OOM", "(OOM)"]


@pytest.mark.usefixtures("types")
def test_a_row_whose_weights_do_not_fit_ends_no_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def with_little_memory(config: RunConfig, **options: Any) -> TrainingSetup:
        if isinstance(config.output_layer, SampledSettings):
            raise OutOfMemory("the run needs more")
        return set_up(config, **options)

    monkeypatch.setattr(paper_tables, "set_up", with_little_memory)
    arguments = ["--table", "4", "--device", "cpu", "--updates", "1", "--warm-up", "1", "--most-streams", "16"]
    assert main([*arguments, "--memory", "1MB"]) == 0
    *_, sampled, rarer = capsys.readouterr().out.splitlines()
    for line in (sampled, rarer):
        assert line.startswith("SAMPLED")
        assert line.count("OOM") == 3, "the batch, S1 and S2"
        assert "0.0M" in line, "its parameters are known"


def test_subwords_take_as_many_steps_as_a_word_has(monkeypatch: pytest.MonkeyPatch, tiny_corpus: Corpus) -> None:
    """The same seconds of an update are more for a million words."""
    monkeypatch.setattr(paper_tables, "compare", lambda setup, other, options, *, same: ([(2.0, 2.0)], None))
    config, first = tiny_config(tiny_corpus), Row("CONT", "", ContinuousSettings())
    row = Row("SUBWORD", "", FullSoftmaxSettings(types=15), 1.5)
    encoder = Encoder(config.encoder, {}, window=5)
    found = paper_tables.measure(
        config, encoder, first, row, lambda row: str(tiny_corpus.path), replace(OPTIONS, most_streams=8), Processes()
    )
    assert found["large_batch"]["ratio"] == pytest.approx(1.5)
    assert found["large_batch"]["seconds"] == pytest.approx(2.0 * 1.5 * 1e6 / (8 * 5))
    assert found["small_batch"]["ratio"] == 1
    assert found["small_batch"]["seconds"] == 2


def test_several_processes_have_a_column_of_their_own() -> None:
    figures = {"seconds": 30.0, "ratio": 1.0}
    row = {
        "encoder": "ELMo",
        "output": "CONT",
        "vocabulary": "",
        "parameters": 10**6,
        "streams": 8,
        "most_streams": 64,
        "peak_bytes": 10**6,
    }
    row |= {"small_batch": None, "large_batch": figures, "paper": (76, 640, 0.47, 115.28, 34.58)}
    report = {
        "table": 4,
        "size": "small",
        "device": "cpu",
        "torch": "2",
        "processes": 4,
        "memory": 10**9,
        "rows": [row],
    }
    printed = text_of(report)
    assert "4 processes" in printed
    assert "30.00 s a million words (34.58 s)" in printed
    assert "S1" not in printed


def test_several_processes_measure_together(tmp_path: Path, tiny_corpus: Corpus) -> None:
    """One of them talks and writes; the batch is that of all of them."""
    out = tmp_path / "table.json"
    arguments = ["--table", "4", "--device", "cpu", "--updates", "1", "--warm-up", "1", "--most-streams", "16"]
    command = ["-c", TABLE_OF_TINY_MODELS, str(tiny_corpus.path), *arguments, "--memory", "1MB", "--json", str(out)]
    processes = start_together(command, command, log=tmp_path / "table")
    assert [process.wait() for process in processes] == [0, 0], processes[0].stderr
    assert processes[0].stdout.count("Table 4, sizes: small") == 1
    assert processes[1].stdout == ""
    report = read_json(out, advice="")
    assert report["processes"] == 2
    for row in report["rows"]:
        assert row["small_batch"] is None
        assert row["streams"] == 16
        assert row["large_batch"]["seconds"] > 0


@pytest.mark.parametrize(("text", "size"), [("12GB", 12 * 10**9), ("0.5 MB", 500_000), ("3kb", 3000)])
def test_sizes_of_memory(text: str, size: int) -> None:
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["12", "GB", "-1GB", "nanGB", "1e99GB", ""])
def test_what_is_no_size_is_refused(text: str, error_line: Callable[[int], str]) -> None:
    status = main(["--table", "4", "--device", "cpu", f"--memory={text}" if text else "--memory=x"])
    assert "--memory takes a number with KB, MB or GB, such as 12GB" in error_line(status)


@pytest.mark.parametrize("option", [["--streams", "4"], ["--config", "x.toml"], ["--directions", "1"]])
def test_options_of_the_benchmark_are_refused(option: list[str], error_line: Callable[[int], str]) -> None:
    error = error_line(main(["--table", "4", "--device", "cpu", *option]))
    assert f"{option[0]} is not for --table, whose rows say what they are: leave it out" in error
