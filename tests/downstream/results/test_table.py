"""The table of results: it compares what can be compared, in Markdown and JSON."""

import json
from pathlib import Path
from typing import Any

import pytest
from downstream.__main__ import main
from downstream.results.rows import PAPER
from tests.downstream.results.result_lines import BETTER, SETTINGS, WORSE, ner_line, rows_of, write_lines

LARGE = {"file": "runs/large.h5", "model": "cccc3333dddd4444", "word_vectors": "v1", "layers": ["0", "1"]}
OTHER_VECTORS = {"origin": "runs/other.bin", "fingerprint": "v2", "size": 300}


def test_all_that_the_command_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(tmp_path / "a.jsonl", ner_line("vectors", WORSE), ner_line("both", BETTER))
    written = tmp_path / "table.json"
    assert main(["table", str(path), "--json", str(written)]) == 0
    out = capsys.readouterr().out
    assert "0.25 0.75 × 2.50" in out, "the mean of the mixes"
    shown = " ".join(out.split())
    assert all(cells in shown for cells in ("| 31.25 ± 8.84 | – | 68.75 ± 8.84 |", "| +37.50 ["))
    (row,) = json.loads(written.read_text())["rows"]
    assert (row["task"], row["items"], row["encoder"], row["paper"]) == ("ner", 20, "small", PAPER["ner"])
    both, gain = row["scores"]["both"], row["gains"]["both"]
    assert (both["mean"], both["seeds"], both["scores"]) == (68.75, [1, 2], [62.5, 75.0])
    assert both["figures"]["entity recall"] == [62.5, 75.0]
    assert both["interval"][0] < 68.75 < both["interval"][1]
    assert gain["points"] == 37.5
    assert gain["interval"][0] < 37.5 < gain["interval"][1]


def test_identical_systems_gain_nothing_whatever_the_rounding(tmp_path: Path) -> None:
    uneven = ner_line("vectors", WORSE)
    uneven["counts"] = [[[number / 3 for number in one] for one in seed] for seed in uneven["counts"]]
    (row,) = rows_of(tmp_path, uneven, uneven | {"inputs": "both", "features": LARGE})
    assert str(row.gains["both"]) == "+0.00 [+0.00, +0.00]"


def test_features_alone_are_compared_with_every_table_of_word_vectors(tmp_path: Path) -> None:
    lines = ner_line("vectors", WORSE), ner_line("vectors", BETTER, vectors=OTHER_VECTORS), ner_line("features", BETTER)
    rows = rows_of(tmp_path, *lines)
    assert [(row.dataset, row.gains["features"].points) for row in rows] == [
        ("novels test, lm.bin", 37.5),
        ("novels test, other.bin", 0),
    ]
    rows = rows_of(tmp_path, *lines, ner_line("both", BETTER))
    assert [(row.dataset, list(row.results)) for row in rows] == [
        ("novels test, lm.bin", ["vectors", "features", "both"]),
        ("novels test, other.bin", ["vectors"]),
    ]


def test_runs_with_other_settings_or_data_are_rows_of_their_own(tmp_path: Path) -> None:
    narrow = SETTINGS | {"hidden_size": 100}
    half: dict[str, Any] = {
        name: ner_line("vectors", WORSE)[name] | {"train": value}
        for name, value in (("data", {"novels/half.conll": 50}), ("fingerprints", ["f4"]))
    }
    rows = rows_of(
        tmp_path,
        ner_line("vectors", WORSE),
        ner_line("both", BETTER, settings=narrow),
        ner_line("both", BETTER, settings=narrow | {"learning_rate": 0.002, "mix_rate": 1.0}, preset="published"),
        ner_line("both", BETTER, **half),
        ner_line("both", BETTER, dataset="tweets"),
        ner_line("both", BETTER, dataset="web"),
        ner_line("both", BETTER, dataset="web", reader={"column": 2}),
        *(
            ner_line(kind, BETTER, dataset="court", settings=SETTINGS | {"train_fraction": fraction})
            for fraction in (1.0, 0.25, 0.005)
            for kind in ("vectors", "both")
        ),
    )
    assert [(row.dataset, bool(row.gains)) for row in rows] == [
        ("novels test, small, train train.conll (100, f1), hidden_size 200", False),
        ("novels test, small, train train.conll (100, f1), hidden_size 100", False),
        ("novels test, published", False),
        ("novels test, small, train half.conll (50, f4), hidden_size 200", False),
        ("tweets test", False),
        ("web test, column -1", False),
        ("web test, column 2", False),
        ("court test, 0.5 % of train", True),
        ("court test, 25 % of train", True),
        ("court test, 100 % of train", True),
    ]


def test_how_layer_states_are_given_belongs_to_the_encoder_and_shares_the_baseline(tmp_path: Path) -> None:
    changed = [SETTINGS | {"state_layers": "top"}, SETTINGS | {"match_vectors": False, "mix_rate": 1.0}]
    rows = rows_of(
        tmp_path,
        ner_line("vectors", WORSE),
        ner_line("both", BETTER),
        *(ner_line("both", right, settings=each) for each, right in zip(changed, (BETTER, WORSE), strict=True)),
    )
    assert [(row.dataset, row.encoder, row.gains["both"].points) for row in rows] == [
        ("novels test", "small", 37.5),
        ("novels test", "small, state_layers top", 37.5),
        ("novels test", "small, mix_rate 1.0, match_vectors False", 0),
    ]


def test_encoders_have_names_that_tell_them_apart(tmp_path: Path) -> None:
    small = ner_line("both", BETTER)["features"]
    wide = {name: LARGE[name] for name in ("word_vectors", "layers")} | {"model": "w", "directory": "runs/wide/model"}
    several = [small, LARGE, wide, *(small | other for other in ({"layers": ["top"]}, {"pooling": "mean"}))]
    several += [{"file": f"{folder}/elmo.hdf5", "file_size": 1, "file_time": 2} for folder in "ab"]
    rows = rows_of(tmp_path, *(ner_line("both", BETTER, features=features) for features in several))
    assert [row.encoder for row in rows] == [
        "small, layers 0,1",
        "large",
        "wide",
        "small, layers top",
        "small, layers 0,1, pooling mean",
        "elmo, file a/elmo.hdf5",
        "elmo, file b/elmo.hdf5",
    ]
