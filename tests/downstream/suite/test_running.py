"""A whole suite of tiny probes, run in this process: results, table, resuming, overlap, and the shared baseline."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import downstream.__main__
import pytest
from downstream.inputs.options import INPUT_KINDS
from downstream.suite.jobs import Job, run_jobs
from downstream.suite.overlap import overlap_notes
from elmoc.corpus import Corpus
from elmoc.errors import InputError, quiet
from elmoc.features.reader import FeatureFile
from elmoc.files.text import read_lines
from elmoc.jobs import start_job
from elmoc.model_directory import read_model_directory, write_model_directory
from tests.downstream.conftest import words_of
from tests.downstream.suite.conftest import SUITE, InProcess, Run, report
from tests.tiny import learnable_sentences, tiny_model, write_corpus

from downstream import SuiteOptions, read_suite, run_suite
from downstream.suite import jobs

VECTORS = ["ner-again.vectors.seed1", "ner-ten-sentences.vectors.seed1", "ner-ten-sentences.vectors.seed2"]
WHOLE = '{"fingerprints": {}}'
BOTH = [name.replace("vectors", "both") for name in VECTORS]


def test_a_suite_ends_in_a_table_and_a_figure_and_the_next_encoder_has_the_baseline(
    suite: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert suite("--model", "first") == sorted(BOTH + VECTORS)
    out = capsys.readouterr().out
    assert "| ner | ten sentences dev | entity F1 |" in " ".join(out.split())
    assert out.splitlines()[-1].startswith("figure of merit: ")
    first = report("suite/first")
    assert first["rows"][0]["features"]["training_words"] == 1000
    assert [row["encoder"] for row in first["rows"]] == ["first", "first"]
    shares = {share["dataset"]: share for share in first["merit"]["shares"]}
    assert shares["again dev"]["seeds_error"] is None
    gains = [row["gains"]["both"]["points"] for row in first["rows"]]
    assert first["merit"]["value"] == pytest.approx(sum(gains) / 2 / 1.3)
    assert len(list(Path("suite/baseline").glob("*.json"))) == 3
    assert suite("--model", "first", "--inputs", "vectors") == []
    assert report("suite/first") == first, "what was run before is reported again"
    assert suite("--model", "second") == BOTH
    assert suite("--model", "second", "--inputs", "vectors,features") == [
        name.replace("vectors", "features") for name in VECTORS
    ]
    status = downstream.__main__.main(["table", "suite/first/results.jsonl", "suite/second/results.jsonl", "--merit"])
    assert status == 0
    assert "− first (data sets of both)" in capsys.readouterr().out.split("Figure of merit: mean")[1]


def test_what_is_done_is_kept_and_what_failed_is_run_again(suite: Run, capsys: pytest.CaptureFixture[str]) -> None:
    InProcess.fails = lambda name: name == "ner-ten-sentences.both.seed2"
    assert suite("--model", "first", status=1) == sorted(BOTH + VECTORS)
    log = Path("suite/first/logs/ner-ten-sentences.both.seed2.log")
    assert f"(error: the disk is made of paper): see {log}" in capsys.readouterr().out
    assert len(Path("suite/first/results.jsonl").read_text().splitlines()) == 5
    InProcess.fails = lambda name: False
    assert suite("--model", "first") == ["ner-ten-sentences.both.seed2"]
    assert suite("--model", "first") == []


def test_a_result_of_data_that_changed_before_it_was_read_is_not_kept(
    suite: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    data = Path("ten.conll")
    before = data.read_text()

    def edit(name: str) -> bool:
        data.write_text(f"{before}\nOne\tO\n")
        return False

    InProcess.fails = edit
    assert suite("--inputs", "vectors", status=1) == VECTORS
    assert capsys.readouterr().out.count("failed: its data changed before it was read") == 3
    InProcess.fails = lambda name: False
    data.write_text(before)
    assert suite("--inputs", "vectors") == VECTORS


def test_other_settings_are_run_anew_and_those_of_one_side_alone_for_that_side(suite: Run) -> None:
    suite("--inputs", "vectors")
    assert suite("--inputs", "vectors") == []
    path = Path("suite.toml")
    path.write_text(SUITE.replace("both = {}", "").replace("dropout = 0.5", "dropout = 0.25"))
    assert suite("--inputs", "vectors") == VECTORS[1:]
    path.write_text(SUITE.replace("[[probe]]", "[[probe]]\nboth = { dropout = 0.1 }", 1))
    assert suite("--inputs", "vectors") == []
    assert suite("--inputs", "vectors", "--vectors", "random:2:6") == VECTORS


def test_a_probe_of_another_name_with_the_same_files_is_compared(suite: Run) -> None:
    suite("--model", "first")
    Path("suite.toml").write_text(SUITE.replace("ten sentences", "ten, sentences"))
    assert suite("--model", "second") == BOTH
    assert sorted(row["dataset"] for row in report("suite/second")["rows"]) == ["again", "ten, sentences"]


def test_features_of_others_and_the_quick_suite(suite: Run, features: Path) -> None:
    assert suite("--features", str(features), "--quick", "--out", "q/out") == [BOTH[1], VECTORS[1]]
    assert report("q/out")["rows"][0]["features"]["model"] == "m1"
    assert Path("q/baseline").is_dir()
    for result in report("q/out")["rows"][0]["scores"].values():
        assert result["settings"]["train_fraction"] == 0.5


def test_the_sentences_of_a_suite(suite: Run) -> None:
    assert suite("--sentences", "all.txt") == []
    lines = Path("all.txt").read_text().splitlines()
    assert lines[0] == "Ada Lovelace met Charles Babbage in London ."
    assert len(lines) == 10
    suite("--sentences", "all.txt.gz")
    assert list(read_lines("all.txt.gz")) == lines
    Path("all.txt").write_text("mine")
    suite("--sentences", "all.txt", status=1)
    assert Path("all.txt").read_text() == "mine"


def test_an_encoder_that_was_trained_further_is_another_wherever_it_is(suite: Run) -> None:
    assert suite("--model", "first") == sorted(BOTH + VECTORS)
    (file,) = Path("suite/first/features").glob("*.h5")
    assert FeatureFile(file).attributes["training_words"] == 1000
    before = file.stat().st_mtime_ns
    Path("first").rename("moved")
    assert suite("--model", "moved", "--out", "suite/first") == [], "it is the same"
    assert file.stat().st_mtime_ns == before, "features are not made again"
    write_model_directory("first", read_model_directory("second"))
    assert suite("--model", "first") == BOTH
    assert report("suite/first")["rows"][0]["features"]["training_words"] == 2000


def test_development_parts_in_the_pretraining_text_are_a_warning(suite: Run, tmp_path: Path) -> None:
    seen = [*words_of()[:2], ["Somebody", "met", "Charles", "Babbage", "in", "London", "."]]
    corpus = write_corpus(Path("seen"), [seen], [words_of()[2:3]])
    write_corpus(Path("other"), [learnable_sentences(10, 1)], [learnable_sentences(2, 2)])
    options = ("--inputs", "vectors", "--corpus")
    suite(*options, "other")
    assert not any("WARNING" in note for note in report("suite/vectors")["notes"])
    suite(*options, "seen")
    assert any(note.startswith("WARNING: 2 sentences ") for note in report("suite/vectors")["notes"])
    model = tiny_model()
    model.training |= {"words": 10, "corpus": "seen", "corpus_tokens": corpus.train_tokens}
    model.training |= {"started_from": {"corpus": "x"}}
    write_model_directory(tmp_path / "mine", model)
    suite("--model", "mine", "--quick")
    missing, found = report("suite/mine-quick")["notes"][-2:]
    assert missing.startswith("Not checked")
    assert found.startswith("WARNING: 2 sentences ")


def job(folder: Path, name: str, seconds: float = 0.0) -> Job:
    """A job that is a short program (see `stand_in`)."""
    probe: Any = None
    result = folder / f"{name}.json"
    command = {"options": {"seconds": seconds, "out": result}}
    return Job(probe, INPUT_KINDS["both"], name, command, result, round(10 * seconds) + 1, data={})


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of `downstream` a package that writes its results, sleeps, and prints what process it is."""
    package = tmp_path / "stand_in" / "downstream"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(
        "import json, sys, time\nfrom pathlib import Path\nassert sys.argv[1:] == ['--json', '-']\n"
        "options = json.load(sys.stdin)['options']\nout = Path(options['out'])\n"
        "assert not out.exists()\nprint('begun', flush=True)\n"
        "time.sleep(options['seconds'])\npartial = Path(f'{out}.partial')\n"
        f"partial.write_text({WHOLE!r})\npartial.rename(out)\n"
    )
    monkeypatch.chdir(package.parent)


def test_the_call_and_jobs_in_processes_give_what_the_command_gives(
    suite: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite("--inputs", "vectors", "--quick")
    rows = report("suite/vectors-quick")["rows"]
    monkeypatch.setattr(jobs, "start_job", start_job)
    capsys.readouterr()
    with quiet():
        result = run_suite(read_suite("suite.toml", quick=True), None, "called/out", SuiteOptions(inputs="vectors"))
    assert capsys.readouterr() == ("", ""), "a quiet call prints nothing"
    assert len(list(Path("called/baseline").glob("*.json"))) == 1
    ours = report("called/out")["rows"]
    for row in (*rows, *ours):
        del row["scores"]["vectors"]["seconds"]
    assert ours == rows
    assert (result.merit, len(result.rows)) == (None, 1)
    with pytest.raises(InputError, match="encoder"):
        run_suite(read_suite("suite.toml"), None, "called/out")


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_suite_ends_its_jobs_and_goes_on_later(tmp_path: Path, number: signal.Signals) -> None:
    quick, slow = job(tmp_path, "quick"), job(tmp_path, "slow", 60)

    def interrupt() -> None:
        slow_log = tmp_path / "logs/slow.log"
        while not (quick.result.exists() and slow_log.exists() and slow_log.stat().st_size):
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        run_jobs([quick, slow], at_once=2, logs=tmp_path / "logs")
    assert quick.result.read_text() == WHOLE
    assert not list(tmp_path.glob("**/*slow*.json*"))
    assert run_jobs([quick, job(tmp_path, "slow")], at_once=1, logs=tmp_path / "logs") == 0
    assert slow.result.read_text() == WHOLE


def test_a_corpus_of_subwords_is_not_searched(tiny_subwords: Corpus) -> None:
    training = {"corpus": tiny_subwords.path, "corpus_tokens": tiny_subwords.train_tokens}
    assert ["Not checked" in note for note in overlap_notes([], ["a b"], training)] == [True]
