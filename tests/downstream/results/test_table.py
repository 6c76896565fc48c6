"""The table of results: it compares what can be compared, as text, Markdown and JSON."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from downstream.results.comparison import PAPER
from tests.downstream.results.result_lines import BETTER, WORSE, Run, ner_line, write_lines
from tests.elmoc.files.test_locks import hold

LARGE = {"file": "runs/large.h5", "model": "cccc3333dddd4444", "word_vectors": "v1", "layers": ["0", "1"]}
OTHER_VECTORS = {"origin": "runs/other.bin", "fingerprint": "v2", "size": 300}


def scores(row: list[str]) -> list[str]:
    """Task, data, and the scores of vectors, features and both: of a table without a column for encoders."""
    return [row[place] for place in (0, 1, 3, 4, 5)]


def test_the_whole_text(
    table: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    snli = {"task": "snli", "dataset": "captions", "metric": "accuracy", "unit": "pairs", "item": "pairs"}
    pairs = [ner_line("vectors", {1: [0]}), ner_line("both", {1: [0]})]
    for line, right in zip(pairs, ([1, 0] * 20, [1, 1] * 20), strict=True):
        counts = [[one, 1] for one in right]
        accuracy = [100 * sum(right) / len(right)]
        line |= snli | {"items": 40, "counts": [counts], "scores": accuracy, "figures": {"accuracy": accuracy}}
    lines = ner_line("vectors", WORSE), ner_line("both", BETTER), *pairs
    table(*lines, arguments=["--text", tmp_path / "table.txt"])
    out = capsys.readouterr().out
    assert out == (tmp_path / "table.txt").read_text(encoding="utf-8")
    assert [line for line in out.split("Scores are")[0].splitlines() if line] == [
        "Scores, and gains over word vectors alone",
        "task  data           metric     vectors       features  both                   both − vectors      p  "
        "features − vectors  p  paper",
        "────  ─────────────  ─────────  ────────────  ────────  ────────────  ───────────────────────  ─────  "
        "──────────────────  ─  ─────",
        "snli  captions test  accuracy   50.00         –         100.00        +50.00 [+32.50, +65.06]  0.005  "
        "                 –  –   +1.1",
        "ner   novels test    entity F1  31.25 ± 8.84  –         68.75 ± 8.84  +37.50 [+22.50, +52.50]  0.005  "
        "                 –  –   +1.3",
        "Runs (three numbers: vectors / features / both)",
        "task  data                  items  preset      seeds  minutes a run     examples/s  encoder  word vectors",
        "────  ─────────────  ────────────  ──────  ─────────  ─────────────  ─────────────  ───────  ────────────",
        "snli  captions test      40 pairs  small   1 / – / 1      1 / – / 1  800 / – / 800  small    lm.bin",
        "ner   novels test    20 sentences  small   2 / – / 2      1 / – / 1  800 / – / 800  small    lm.bin",
    ]


def test_mixes_of_layers_are_means_over_seeds_where_they_are_known(
    table: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = ner_line("vectors", WORSE) | {"mixes": [None, None]}
    mixed = ner_line("both", BETTER) | {"mixes": [[0.25, 0.75, 1.0], [0.35, 0.65, 1.5]]}
    table(alone, mixed)
    out = capsys.readouterr().out
    assert "mix of layers\n" in out
    assert "0.30 0.70 × 1.25\n" in out
    before = ner_line("both", {3: BETTER[1]})  # by an earlier version
    for lines in ((alone, mixed, before), (alone, ner_line("both", BETTER), mixed)):
        table(*lines)
        assert "0.30 0.70 × 1.25\n" in capsys.readouterr().out
    table(alone, before)
    assert "mix of layers" not in capsys.readouterr().out


def test_gains_are_those_of_the_means_and_the_baseline_is_shared(table: Run) -> None:
    lines = ner_line("vectors", WORSE), ner_line("both", BETTER), ner_line("features", {1: WORSE[1]})
    (row,) = table(*lines)
    assert scores(row) == ["ner", "novels test", "31.25 ± 8.84", "37.50", "68.75 ± 8.84"]
    assert row[6].startswith("+37.50 [+")
    assert row[8].startswith("+6.25 [")
    assert row[10] == "+1.3"
    larger = ner_line("both", WORSE, features=LARGE), ner_line("model", BETTER, features=LARGE)
    rows = table(*lines, *larger)
    assert [row[2] for row in rows] == ["small", "large"]
    assert [row[4:7] for row in rows] == [
        ["31.25 ± 8.84", "37.50", "68.75 ± 8.84"],
        ["31.25 ± 8.84", "68.75 ± 8.84", "31.25 ± 8.84"],
    ]
    assert rows[1][7:9] == ["+0.00 [+0.00, +0.00]", ">0.999"], "the same answers"


def test_identical_systems_gain_nothing_whatever_the_rounding(table: Run) -> None:
    uneven = ner_line("vectors", WORSE)
    uneven["counts"] = [[[number / 3 for number in one] for one in seed] for seed in uneven["counts"]]
    (row,) = table(uneven, uneven | {"inputs": "both", "features": LARGE})
    assert row[6:8] == ["+0.00 [+0.00, +0.00]", ">0.999"]


@pytest.mark.parametrize(
    ("inputs", "shown"),
    [
        (["both"], ["–", "–", "68.75 ± 8.84"]),
        (["features"], ["–", "68.75 ± 8.84", "–"]),
        (["vectors"], ["68.75 ± 8.84", "–", "–"]),
        (["features", "both"], ["–", "68.75 ± 8.84", "68.75 ± 8.84"]),
    ],
)
def test_without_a_baseline_or_an_encoder_there_is_no_gain(table: Run, inputs: list[str], shown: list[str]) -> None:
    (row,) = table(*(ner_line(kind, BETTER) for kind in inputs))
    assert row[3:10] == [*shown, "–", "–", "–", "–"]


def test_features_alone_are_compared_with_every_table_of_word_vectors(table: Run) -> None:
    lines = ner_line("vectors", WORSE), ner_line("vectors", BETTER, vectors=OTHER_VECTORS), ner_line("features", BETTER)
    rows = table(*lines)
    assert [(row[1], row[3], row[8][:6]) for row in rows] == [
        ("novels test, lm.bin", "31.25 ± 8.84", "+37.50"),
        ("novels test, other.bin", "68.75 ± 8.84", "+0.00 "),
    ]
    rows = table(*lines, ner_line("both", BETTER))
    assert [scores(row)[1:] for row in rows] == [
        ["novels test, lm.bin", "31.25 ± 8.84", "68.75 ± 8.84", "68.75 ± 8.84"],
        ["novels test, other.bin", "68.75 ± 8.84", "–", "–"],
    ]


def test_runs_with_other_settings_or_data_are_rows_of_their_own(table: Run, capsys: pytest.CaptureFixture[str]) -> None:
    narrow = {"learning_rate": 0.001, "hidden_size": 100, "match_vectors": True, "mix_rate": 10.0}
    half = {
        name: ner_line("vectors", WORSE)[name] | {"train": value}
        for name, value in (("data", {"novels/half.conll": 50}), ("fingerprints", ["f4"]))
    }
    rows = table(
        ner_line("vectors", WORSE),
        ner_line("both", BETTER, settings=narrow),
        ner_line("both", BETTER, settings=narrow | {"learning_rate": 0.002, "mix_rate": 1.0}, preset="published"),
        ner_line("both", BETTER, **half),
        ner_line("both", BETTER, dataset="tweets"),
        ner_line("both", BETTER, dataset="web"),
        ner_line("both", BETTER, dataset="web", reader={"column": 2}),
        ner_line("both", BETTER, dataset="court"),
        ner_line("both", BETTER, dataset="court", fingerprints={"train": ["f4"], "dev": ["f2"], "test": ["f3"]}),
    )
    assert [(row[1], row[6]) for row in rows] == [
        ("novels test, train train.conll (100), small, hidden_size 200", "–"),
        ("novels test, train train.conll (100), small, hidden_size 100", "–"),
        ("novels test, train train.conll (100), published", "–"),
        ("novels test, train half.conll (50), small, hidden_size 200", "–"),
        ("tweets test", "–"),
        ("web test, column -1", "–"),
        ("web test, column 2", "–"),
        ("court test, train f1", "–"),
        ("court test, train f4", "–"),
    ]
    assert "run in several ways (named after the comma)" in capsys.readouterr().out


def test_the_text_says_whether_there_are_several_seeds(table: Run, capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for seeds in ((1,), (1, 2)):
        vectors, both = ({seed: right[seed] for seed in seeds} for right in (WORSE, BETTER))
        table(ner_line("vectors", vectors), ner_line("both", both, mixes=[[0.5, 0.5, 1.0] for _ in seeds]))
        said.append(" ".join(capsys.readouterr().out.split()))
    one, several = said
    assert "Scores are percentages, each of one seed, so without a deviation. A gain is a difference in points" in one
    assert "scalar mix × its scale; of both" in one
    assert "Scores are percentages, mean ± standard deviation over seeds. A gain is a difference of means" in several
    assert "scalar mix × its scale, means over seeds; of both" in several


def test_parts_of_the_training_data_are_rows_in_order(table: Run, fails: Callable[..., str], tmp_path: Path) -> None:
    settings = ner_line("both", BETTER)["settings"]
    parts = [
        {"settings": settings | fraction} for fraction in ({}, {"train_fraction": 0.25}, {"train_fraction": 0.005})
    ]
    lines = [ner_line(kind, right, **part) for part in parts for kind, right in (("vectors", WORSE), ("both", BETTER))]
    rows = table(*lines, ner_line("vectors", BETTER, settings=settings | {"train_fraction": 1.0}))
    assert [(row[1], row[3]) for row in rows] == [
        ("novels test, 0.5 % of train", "31.25 ± 8.84"),
        ("novels test, 25 % of train", "31.25 ± 8.84"),
        ("novels test, 100 % of train", "68.75 ± 8.84"),
    ], "lines of earlier versions are of all training data"
    damaged = write_lines(tmp_path / "x.jsonl", ner_line("both", BETTER, settings={"train_fraction": "half"}))
    assert "line 1: settings.train_fraction must be above 0 and at most 1: run" in fails("table", damaged)


def test_how_layer_states_are_given_belongs_to_the_encoder_and_shares_the_baseline(table: Run) -> None:
    settings = ner_line("both", BETTER)["settings"]
    changed = [settings | {"state_layers": "top"}, settings | {"normalise_states": True, "states_dropout": 0.2}]
    rows = table(
        ner_line("vectors", WORSE),
        ner_line("both", BETTER),
        *(ner_line("both", right, settings=each) for each, right in zip(changed, (BETTER, WORSE), strict=True)),
    )
    assert [(row[1], row[2], row[7][:6]) for row in rows] == [
        ("novels test", "small", "+37.50"),
        ("novels test", "small state_layers top", "+37.50"),
        ("novels test", "small normalise_states True states_dropout 0.2", "+0.00 "),
    ]
    rows = table(
        ner_line("vectors", WORSE),
        ner_line("both", BETTER),
        ner_line("both", WORSE, settings=settings | {"mix_rate": 1.0}),  # as lines of earlier versions
        ner_line("vectors", WORSE, preset="published"),
        ner_line("both", BETTER, settings=settings | {"mix_rate": 1.0}, preset="published"),
    )
    assert sorted({row[2] for row in rows}) == ["small", "small mix_rate 1.0"], "each preset has a rate of its own"


def test_rows_of_one_data_set_stand_together(table: Run) -> None:
    lines = [ner_line(kind, BETTER, dataset=name) for kind, name in (("vectors", "b"), ("both", "a"), ("both", "b"))]
    assert [row[1] for row in table(*lines, ner_line("both", WORSE, dataset="b", features=LARGE))] == [
        "b test",
        "b test",
        "a test",
    ]


def test_encoders_have_names_that_tell_them_apart(table: Run) -> None:
    small = ner_line("both", BETTER)["features"]
    several = [small, LARGE, small | {"model": "eeee5555ffff6666"}, small | {"layers": ["top"]}]
    lines = [ner_line("both", BETTER, features=features) for features in several]
    lines += [ner_line("both", BETTER, features={"file": "elsewhere/elmo.hdf5"})]
    lines += [ner_line("both", BETTER, features=LARGE | {"file": "runs/large2.h5"}, dataset="tweets")]
    assert [row[2] for row in table(*lines)] == [
        "small aaaa1111 layers 0,1",
        "cccc3333",
        "small eeee5555 layers 0,1",
        "small aaaa1111 layers top",
        "elmo",
        "cccc3333",
    ]
    kept = {name: LARGE[name] for name in ("model", "word_vectors", "layers")}
    lines += [ner_line("model", BETTER, features=kept | {"directory": "runs/wide/model"}, dataset="news")]
    assert [row[2] for row in table(*lines[1:3], lines[-1])] == ["wide", "small", "wide"]
    named = table(*lines[1:3], arguments=["--encoder", "cccc=large", "--encoder", "eee=medium"])
    assert [row[2] for row in named] == ["large", "medium"]


def test_dumps_of_one_model_are_told_apart_by_their_options(table: Run) -> None:
    small = ner_line("both", BETTER)["features"]
    others = [{"carry_state": True}, {"pooling": "mean"}, {"word_vectors": "v2"}]
    lines = [ner_line("both", BETTER, features=small | other) for other in ({}, *others)]
    assert [row[2] for row in table(*lines)] == [
        "small aaaa1111 layers 0,1 word vectors v1",
        "small aaaa1111 layers 0,1 carry_state",
        "small aaaa1111 layers 0,1 pooling mean",
        "small aaaa1111 layers 0,1 word vectors v2",
    ]


def test_foreign_encoders_are_told_apart_by_their_whole_path(table: Run) -> None:
    lines = [
        ner_line("both", BETTER, features={"file": f"somewhere/{folder}/elmo.hdf5"}) for folder in ("small", "large")
    ]
    names = ["elmo somewhere/small/elmo.hdf5", "elmo somewhere/large/elmo.hdf5"]
    assert [row[2] for row in table(*lines)] == names
    named = table(*lines, arguments=["--encoder", "somewhere/=mine"])
    assert [row[2] for row in named] == ["mine somewhere/small/elmo.hdf5", "mine somewhere/large/elmo.hdf5"]


def test_a_narrow_terminal_gets_two_tables(
    table: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    table(ner_line("vectors", WORSE), ner_line("features", BETTER), ner_line("both", BETTER))
    out = capsys.readouterr().out
    assert out.startswith("Scores\n\n")
    assert "\n\nGains over word vectors alone\n\n" in out
    assert max(map(len, out.splitlines())) <= 100


def test_what_was_left_out_and_what_is_rough_is_said(table: Run, capsys: pytest.CaptureFixture[str]) -> None:
    table(ner_line("both", WORSE), ner_line("both", {2: BETTER[2]}))
    out = " ".join(capsys.readouterr().out.split())
    assert "ner novels, both, seed 2:" in out
    assert "(75.00 for 25.00)" in out
    assert "Rough intervals, from under 30 items: ner novels test." in out
    assert "Encoder small: model aaaa1111bbbb2222, layers 0, 1, from runs/small.h5." in out


def test_all_figures_are_shown_where_they_are_asked_for(table: Run, tmp_path: Path) -> None:
    table(ner_line("vectors", WORSE), ner_line("both", BETTER), arguments=["--figures"])
    markdown = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "| ner | novels test | entity recall | 31.25 ± 8.84 | – | 68.75 ± 8.84 | +37.50 | – |\n" in markdown


def test_a_metric_that_only_one_side_has_is_shown_for_that_side(table: Run, tmp_path: Path) -> None:
    older = ner_line("vectors", WORSE)
    del older["figures"]["entity recall"]
    table(ner_line("both", BETTER), older, arguments=["--figures"])
    markdown = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "| ner | novels test | entity F1 | 31.25 ± 8.84 | – | 68.75 ± 8.84 | +37.50 | – |\n" in markdown
    assert "| ner | novels test | entity recall | – | – | 68.75 ± 8.84 | – | – |\n" in markdown


def test_json_has_every_number(table: Run, tmp_path: Path) -> None:
    table(ner_line("vectors", WORSE), ner_line("both", BETTER), arguments=["--json", tmp_path / "table.json"])
    written = json.loads((tmp_path / "table.json").read_text())
    assert written["resamples"] == 200
    (row,) = written["rows"]
    assert (row["task"], row["items"], row["encoder"], row["paper"]) == ("ner", 20, "small", PAPER["ner"])
    both, gain = row["scores"]["both"], row["gains"]["both"]
    assert (both["mean"], both["seeds"], both["scores"]) == (68.75, [1, 2], [62.5, 75.0])
    assert both["interval"]["low"] < 68.75 < both["interval"]["high"]
    assert both["figures"]["entity recall"] == 68.75
    assert gain["points"] == 37.5
    assert gain["interval"]["low"] < 37.5 < gain["interval"]["high"]
    assert gain["p_value"] == pytest.approx(1 / 201)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--resamples 9", "--resamples 9 is too few"),
        ("--resamples 1000000000000", "is too many for an interval: give 100 to 1,000,000"),
        ("--json RESULTS", "is named twice"),
        ("--text out --markdown out", "out is named twice"),
        ("--text .", "--text . is a folder: give the name of a file"),
        ("--markdown .", "--markdown . is a folder"),
        ("--json .", "--json . is a folder"),
        ("--plot .", "--plot . is a folder"),
        ("--plot gains.jpg", "gains.jpg: figures are written as .png, .pdf or .svg"),
        ("--curve gains", "gains: figures are written as .png, .pdf or .svg"),
        ("--encoder small", "--encoder small is not possible"),
        ("--encoder ffff=small", "no encoder here has a fingerprint that begins so; there are aaaa1111bbbb2222"),
    ],
)
def test_impossible_options_are_errors(
    tmp_path: Path, fails: Callable[..., str], arguments: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_lines(tmp_path / "a.jsonl", ner_line("both", BETTER))
    before = path.read_bytes()
    assert message in fails("table", path, *arguments.replace("RESULTS", "a.jsonl").split())
    assert [file.name for file in tmp_path.iterdir()] == ["a.jsonl"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("option", ["--text", "--markdown", "--json", "--plot"])
def test_a_second_writer_of_an_output_is_refused_at_once(
    tmp_path: Path, fails: Callable[..., str], option: str
) -> None:
    with hold(tmp_path / "out.png") as first:
        message = fails("table", tmp_path / "missing.jsonl", option, tmp_path / "out.png")
        assert f"another process is writing {tmp_path / 'out.png'}: wait for it, or stop it" in message
        first.kill()


def test_numbers_that_no_run_writes_are_errors(tmp_path: Path, fails: Callable[..., str]) -> None:
    for changes in ({"seconds": [1.7e308, 1.7e308]}, {"counts": [[[1e300, 2, 2]] * 20] * 2}):
        path = write_lines(tmp_path / "a.jsonl", ner_line("both", BETTER) | changes)
        assert f"{path}, line 1: {next(iter(changes))}[0]" in fails("table", path)


def test_layers_of_a_foreign_feature_file_may_be_anything(table: Run) -> None:
    lines = [ner_line("both", BETTER, features={"file": f"{name}.h5", "layers": 3}) for name in "ab"]
    assert len(table(ner_line("vectors", WORSE), *lines)) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "parsing"}, "line 2 is of the task parsing, which is not one of snli, ner, sst5, srl, coref"),
        ({"task": "a" * 10_000}, "line 2 is of the task aaaa"),
        ({"metric": "a" * 10_000}, "a… of seed 1, 62.50, does not follow from its counts"),
        ({"metric": "accuracy"}, "line 2: the accuracy of seed 1, 62.50, does not follow from its counts"),
        ({"scores": [62.5, 75.1]}, "line 2: the entity F1 of seed 2, 75.10, does not follow from its counts"),
        ({"counts": [[[1, 1]] * 20] * 2}, "line 2 has 20 items with 2 counts each, but "),
    ],
)
def test_lines_that_do_not_fit_are_errors(
    tmp_path: Path, fails: Callable[..., str], changes: dict[str, Any], message: str
) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("vectors", WORSE), ner_line("both", BETTER) | changes)
    error = fails("table", path)
    assert message in error
    assert len(error) < 500
