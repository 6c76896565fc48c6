"""A whole suite of tiny probes, run in this process: results, table, resuming, and the shared baseline."""

import json
from pathlib import Path

import pytest

import downstream.__main__
from downstream.results.row_names import NamedRow
from downstream.results.table import compared_rows
from downstream.suite import cli, data
from downstream.tasks.ner.task import TASK as NER
from elmoc.features.reader import FeatureFile
from elmoc.files.checksums import fingerprint
from elmoc.files.text import read_lines
from elmoc.model_directory import read_model_directory, write_model_directory
from tests.downstream.conftest import columns, words_of
from tests.downstream.suite.conftest import SUITE, InProcess, Run, report
from tests.tiny import learnable_sentences, write_corpus

VECTORS = ["ner-again.vectors.seed1", "ner-ten-sentences.vectors.seed1", "ner-ten-sentences.vectors.seed2"]
BOTH = [name.replace("vectors", "both") for name in VECTORS]


def test_a_suite_ends_in_a_table_and_a_figure_and_the_next_encoder_has_the_baseline(
    suite: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert suite("--model", "first") == sorted(BOTH + VECTORS)
    out = capsys.readouterr().out
    assert "ner   ten sentences dev  entity F1" in out
    assert out.splitlines()[-1].startswith("figure of merit: ")
    first = report("suite/first")
    assert first["training_words"] == 1000
    assert [row["encoder"] for row in first["rows"]] == ["first", "first"]
    shares = {share["dataset"]: share for share in first["merit"]["shares"]}
    assert shares["again dev"]["seeds_error"] is None
    gains = [row["gains"]["both"]["points"] for row in first["rows"]]
    assert first["merit"]["value"] == pytest.approx(sum(gains) / 2 / 1.3)
    assert len(list(Path("suite/baseline").iterdir())) == 3
    assert suite("--model", "second") == BOTH
    assert suite("--model", "second", "--inputs", "vectors,features") == [
        name.replace("vectors", "features") for name in VECTORS
    ]
    status = downstream.__main__.main(["table", "suite/first/results.jsonl", "suite/second/results.jsonl", "--merit"])
    assert status == 0
    assert "2,000" in capsys.readouterr().out.split("Figure of merit: mean")[1]


def test_what_is_done_is_kept_and_what_failed_is_run_again(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    InProcess.fails = lambda name: name == "ner-ten-sentences.both.seed2"
    assert suite("--model", "first", status=1) == sorted(BOTH + VECTORS)
    printed = capsys.readouterr()
    log = Path("suite/first/logs/ner-ten-sentences.both.seed2.log")
    assert f"ner-ten-sentences.both.seed2 failed (the disk is made of paper: buy another): see {log}" in printed.out
    assert "Missing: ner-ten-sentences.both.seed2." in printed.out.replace("\n  ", " ")
    assert printed.err.splitlines()[-1].startswith("error: 1 of the suite's runs failed, the first of them ner-ten-")
    assert report("suite/first")["notes"][-1] == "Missing: ner-ten-sentences.both.seed2."
    InProcess.fails = lambda name: False
    assert suite("--model", "first") == ["ner-ten-sentences.both.seed2"]
    assert not any(note.startswith("Missing") for note in report("suite/first")["notes"])
    assert suite("--model", "first") == []


def test_other_settings_are_run_anew_and_those_of_one_side_alone_for_that_side(suite: Run) -> None:
    suite("--inputs", "vectors")
    assert suite("--inputs", "vectors") == []
    path = Path("suite.toml")
    path.write_text(SUITE.replace("both = {}", "").replace("dropout = 0.5", "dropout = 0.25"))
    assert suite("--inputs", "vectors") == VECTORS[1:]
    path.write_text(SUITE.replace("[[probe]]", "[[probe]]\nboth = { dropout = 0.1 }", 1))
    assert suite("--inputs", "vectors") == []
    assert suite("--inputs", "vectors", "--vectors", "random:2:6") == VECTORS


def test_encoders_whose_layers_are_read_in_other_ways_share_the_baseline(
    suite: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert suite("--model", "first", "--out", "suite/all") == sorted(BOTH + VECTORS)
    path = Path("suite.toml")
    path.write_text(SUITE.replace("options = { epochs", 'options = { state_layers = "top", epochs'))
    assert suite("--model", "first", "--out", "suite/top") == BOTH
    capsys.readouterr()
    tables = [f"suite/{name}/results.jsonl" for name in ("all", "top")]
    assert downstream.__main__.main(["table", *tables, "--merit", "--resamples", "100"]) == 0
    table = capsys.readouterr().out.split("Figure of merit less that of first,")[1].split("\n\n")[1]
    assert table.splitlines()[-1].split()[:4] == ["first", "state_layers", "top", "2"]


def test_features_of_others_and_the_quick_suite(suite: Run, features: Path) -> None:
    assert suite("--features", str(features), "--quick", "--out", "q/out") == [BOTH[1], VECTORS[1]]
    assert report("q/out")["encoder"]["model"] == "m1"
    assert Path("q/baseline").is_dir()
    data = report("q/out")["rows"][0]["settings"]
    assert data["train_fraction"] == 0.5


def test_the_sentences_of_a_suite(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite("--sentences", "all.txt") == []
    lines = Path("all.txt").read_text().splitlines()
    assert lines[0] == "Ada Lovelace met Charles Babbage in London ."
    assert len(lines) == 10
    suite("--sentences", "all.txt.gz")
    assert list(read_lines("all.txt.gz")) == lines
    Path("all.txt").write_text("mine")
    suite("--sentences", "all.txt", status=1)
    assert "all.txt exists already: remove it or choose another output path" in capsys.readouterr().err
    assert Path("all.txt").read_text() == "mine"


def test_features_are_made_and_probes_trained_on_the_device_that_is_given(
    suite: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumps: list[list[str]] = []
    monkeypatch.setattr(data, "run_child", lambda command, **_: dumps.append(command) or 1)
    suite("--model", "first", "--device", "cpu:0", status=1)
    assert [dump[dump.index("--device") + 1] for dump in dumps] == ["cpu:0"]
    suite("--inputs", "vectors", "--device", "cpu:0")
    lines = Path("suite/vectors/results.jsonl").read_text().splitlines()
    assert {json.loads(line)["device"] for line in lines} == {"cpu:0"}


def test_an_encoder_that_was_trained_further_is_another(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite("--model", "first") == sorted(BOTH + VECTORS)
    write_model_directory("first", read_model_directory("second"))
    capsys.readouterr()
    assert suite("--model", "first") == BOTH
    said = f"suite/first/suite.json has the results of {Path('first').resolve()} as it was before: it will be replaced"
    assert said in capsys.readouterr().out.splitlines()
    assert report("suite/first")["training_words"] == 2000


def test_another_encoder_of_the_same_name_does_not_take_the_place_of_the_first(
    suite: Run, features: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite("--model", "first")
    write_model_directory("other/first/model", read_model_directory("second"))
    with monkeypatch.context() as patched:
        patched.setattr(cli, "read_data", None)
        for encoder in (["--model", "other/first"], ["--features", str(features), "--out", "suite/first"]):
            capsys.readouterr()
            assert suite(*encoder, status=1) == []
            before, now = Path("first").resolve(), Path(encoder[1]).resolve()
            assert capsys.readouterr().err == (
                f"error: suite/first/suite.json has the results of {before}, and would lose them to those of {now}: "
                "give another --out\n"
            )
    assert suite("--model", "other/first", "--out", "suite/other") == BOTH
    Path("first").rename("moved")
    capsys.readouterr()
    assert suite("--model", "moved", "--out", "suite/first") == [], "it is the same, wherever it is"
    assert "replaced" not in capsys.readouterr().out


def test_a_dump_is_not_made_again(suite: Run) -> None:
    suite("--model", "first", "--inputs", "features")
    (file,) = Path("suite/first/features").glob("*/ner-again*.h5")
    attributes = FeatureFile(file).attributes
    assert attributes["training_words"] == 1000
    described = [attributes[name] for name in ("elmoc", "model", "word_vectors", "precision")]
    assert file.parent.name == fingerprint(*(each.encode() for each in described))[:8]
    before = file.stat().st_mtime_ns
    suite("--model", "first", "--inputs", "features")
    assert file.stat().st_mtime_ns == before


def test_a_model_of_subwords_that_is_read_in_other_ways_is_another_encoder(
    suite: Run, subword_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ["--model", str(subword_model)]
    assert suite(*model) == sorted(BOTH + VECTORS)
    assert suite(*model, "--pooling", "first") == []
    capsys.readouterr()
    assert suite(*model, "--pooling", "mean", "--out", "suite/subwords", status=1) == []
    place = subword_model.resolve()
    assert f"the results of {place}, and would lose them to those of {place} (pooling mean)" in capsys.readouterr().err
    assert suite(*model, "--pooling", "mean") == BOTH
    assert suite(*model, "--pooling", "last", "--quick") == [BOTH[1], VECTORS[1]]
    assert sorted(path.name for path in Path("suite").iterdir()) == [
        "baseline",
        "subwords",
        "subwords-last-quick",
        "subwords-mean",
    ]
    assert report("suite/subwords-mean")["encoder"]["pooling"] == "mean"
    assert suite(*model) == []
    capsys.readouterr()
    results = [f"suite/{name}/results.jsonl" for name in ("subwords", "subwords-mean")]
    assert downstream.__main__.main(["table", *results, "--resamples", "100"]) == 0
    table = capsys.readouterr().out
    assert all(f"layers 0,1,2 pooling {pooling}" in table for pooling in ("first", "mean"))


def test_suites_whose_results_stand_in_one_table_are_told_from_others(suite: Run, features: Path) -> None:
    suite("--inputs", "vectors")
    identity = report("suite/vectors")["identity"]
    suite("--features", str(features))
    assert report("suite/features")["identity"] == identity, "of whatever encoder"
    suite("--inputs", "vectors", "--quick")
    found = {identity, report("suite/vectors-quick")["identity"]}
    path = Path("suite.toml")
    path.write_text(SUITE.replace("epochs = 1", "epochs = 2", 1))
    suite("--inputs", "vectors")
    found.add(report("suite/vectors")["identity"])
    path.write_text(SUITE)
    suite("--inputs", "vectors", "--vectors", "random:2:6")
    found.add(report("suite/vectors")["identity"])
    Path("ten.conll").write_text(columns() + "again\tO\n")
    suite("--inputs", "vectors")
    found.add(report("suite/vectors")["identity"])
    assert len(found) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "the suite has no encoder: give --model DIR, or --features FILE.h5"),
        (["--model", "first", "--inputs", "vectors,glove"], "--inputs: 'glove' is not a kind of inputs"),
        (["--model", "first", "--jobs", "0"], "--jobs 0 is not possible"),
        (["--model", "first", "--device", "cuda:99"], "cuda:99 is not there"),
        (["--model", "none"], "none is not a model directory"),
        (["--model", "first", "--pooling", "mean"], "reads whole words, and not subwords: leave pooling out"),
        (["--features", "none.h5", "--pooling", "mean"], "--pooling says how --model DIR is read, which is not given"),
        (["--features", "none.h5", "--model-vectors", "v.bin"], "--model-vectors says how --model DIR is read"),
        (["--features", "none.h5"], "none.h5 does not exist"),
        (["--inputs", "vectors", "--vectors", "none.vec"], "none.vec does not exist"),
        (["--inputs", "vectors", "--data", "nowhere"], "nowhere/ten.conll does not exist"),
        (["--sentences", "ten.conll/x"], "ten.conll"),
    ],
)
def test_what_cannot_be_is_said(
    suite: Run, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    suite(*options, status=1)
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--vectors", "none.vec"], "none.vec does not exist"),
        (["--vectors", "random:1:6", "none.bin"], "none.bin does not exist"),
        (["--corpus", "none"], "none is not a finished corpus directory"),
        (["--model-vectors", "none.vec"], "none.vec does not exist"),
        (["--baseline", "ten.conll"], "ten.conll: File exists"),
        (["--baseline", "ten.conll/x"], "ten.conll/x: Not a directory"),
    ],
)
def test_what_cannot_be_is_said_before_data_are_read_and_features_made(
    suite: Run,
    options: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cli, "read_data", None)
    monkeypatch.setattr(cli, "dump_features", None)
    assert suite("--model", "first", *options, status=1) == []
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_nothing_is_run_where_a_result_could_not_be_kept(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert suite("--model", "first", "--baseline", "/proc", status=1) == []
    assert "results cannot be written to /proc (" in capsys.readouterr().err.splitlines()[-1]
    write_corpus(Path("seen"), [words_of()[:1]], [learnable_sentences(2, 2)])
    options = ("--model", "first", "--baseline", "/proc", "--inputs", "both", "--corpus", "seen")
    assert suite(*options) == BOTH, "nothing is to be kept there"
    assert report("suite/first")["notes"][0].startswith("WARNING: 1 sentence of the pretraining text (seen) overlaps")


def test_results_of_files_that_changed_meanwhile_are_not_kept(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    ten, vectors = Path("ten.conll"), Path("words.vec")
    vectors.write_text("Ada 1 2\nmet 3 4\n")
    options = ("--inputs", "vectors", "--vectors", str(vectors))
    labels, numbers = ten.read_text(), vectors.read_text()
    changes = [(ten, labels.replace("B-PER", "B-LOC"), "data"), (vectors, numbers.replace("3", "5"), "word vectors")]
    for path, content, what in changes:
        InProcess.fails = lambda _, path=path, content=content: not path.write_text(content)  # type: ignore[misc]
        suite(*options, status=1)
        assert f"its {what} changed while the suite was running: run the suite again" in capsys.readouterr().out
        ten.write_text(labels)
        vectors.write_text(numbers)
    InProcess.fails = lambda _: False
    assert suite(*options) == VECTORS, "of those files nothing was kept"


def test_results_of_versions_before_are_pooled_where_the_settings_are_the_same(
    suite: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first", "second"):
        suite("--model", name, "--quick")
    before = Path("suite/first-quick/results.jsonl")
    lines = [json.loads(line) for line in before.read_text().splitlines()]
    for line in lines:
        line["compared_as"] = line.pop("compared_before_as")
    before.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    tables = [str(before), "suite/second-quick/results.jsonl"]
    assert [row.gains.keys() for row in rows_of(tables)] == [{"both"}, {"both"}]
    lines = [line | {"settings": line["settings"] | {"hidden_size": 999}} for line in lines]
    before.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert sorted(row.dataset for row in rows_of(tables)) == [
        "ten sentences dev, hidden_size 6",
        "ten sentences dev, hidden_size 999",
    ], "the preset has changed in between"


def rows_of(results: list[str]) -> list[NamedRow]:
    return compared_rows(list(map(Path, results)), {"ner": lambda: NER}, resamples=100, encoders={})[0]


def test_a_suite_without_vectors(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("suite.toml").write_text(SUITE.replace('vectors = "random:1:6"', ""))
    suite("--model", "first", status=1)
    assert "suite.toml names no word vectors: give --vectors FILE" in capsys.readouterr().err


def test_word_vectors_alone_do_not_take_the_place_of_an_encoder(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--model", "first", "--inputs")
    assert suite(*options, "vectors,both") == sorted(VECTORS + BOTH)
    assert suite(*options, "vectors") == []
    assert report("suite/vectors")["encoder"] is None
    assert suite(*options, "vectors", "--out", "suite/first", status=1) == []
    assert "suite/first has the results of an encoder" in capsys.readouterr().err
    assert report("suite/first")["merit"] is not None


def test_a_result_that_is_damaged_is_named(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    suite("--inputs", "vectors")
    (file,) = Path("suite/baseline").glob("ner-again*")
    file.write_bytes(file.read_bytes()[:100])
    suite("--inputs", "vectors", status=1)
    assert f"{file} is not valid JSON" in capsys.readouterr().err


def test_a_result_of_which_a_digit_has_changed_is_named(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    suite("--inputs", "vectors")
    (file,) = Path("suite/baseline").glob("ner-again*")
    line = json.loads(file.read_text())
    line["scores"][0] += 0.1
    file.write_text(json.dumps(line))
    suite("--inputs", "vectors", status=1)
    assert f"{file} is damaged (its content is not what was written)" in capsys.readouterr().err
