"""The tables in miniature: every row is trained and probed by the project's commands, and what was done is kept."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import elmoc.__main__
from data_scripts.build_subwords import build_subwords
from data_scripts.build_vectors import build_vectors
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.records import read_json
from elmoc.model_directory import read_model_directory
from pretrain.execution import memory
from pretrain.recipe import steps
from pretrain.recipe.tables import main
from pretrain.recipe.tables_report import parameters_of, text_of, training_of
from pretrain.recipe.tables_rows import SYSTEMS, GivenSettings
from pretrain.run.directory import RunDirectory, read_checkpoint, read_metrics
from pretrain.word_accuracy.__main__ import measure_word_accuracy
from tests.downstream.conftest import columns
from tests.downstream.suite.in_process import run_jobs_here
from tests.tiny import learnable_sentences, write_corpus

SIZES = {
    "encoder.projection_size": 8,
    "encoder.cell_size": 12,
    "train.streams": 4,
    "train.window": 5,
    "train.device": '"cpu"',
    "evaluation.words": 60,
    "evaluation.candidates": 20,
}
PROBES = """
seeds = 1
[[probe]]
task = "ner"
name = "ten sentences"
train = "ten.conll"
dev = "ten.conll"
options = { epochs = 1, hidden_size = 4, layers = 1 }
"""
SUITE = {
    "notes": ["Missing: a run.", "Something else."],
    "rows": [
        {
            "dataset": "Tweets",
            "scores": {"vectors": {"mean": 40.0}, "both": {"mean": 43.215}},
            "gains": {"both": {"interval": {"low": 1.5, "high": 4.25}}},
        },
        {"dataset": "Pairs", "scores": {"vectors": {"mean": 70.0}, "both": {"mean": 70.0}}, "gains": {}},
    ],
}


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    shards = [learnable_sentences(count, seed) for seed, count in enumerate((150, 40, 40))]
    write_corpus(tmp_path / "corpus", shards[:2], shards[2:])
    (tmp_path / "suite.toml").write_text("")
    sets = [f"--set={name}={value}" for name, value in SIZES.items()]
    options = ["--vectors", "random:5:8", "--suite", str(tmp_path / "suite.toml"), "--words", "200", *sets]
    return [str(tmp_path / "corpus"), str(tmp_path / "out"), *options]


@pytest.fixture
def lines_run(steps_here: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Steps are run here, and a suite is not run: its report is written, of the identity that the suite file names."""
    run_here = steps.run_module

    def run(words: list[object]) -> None:
        if words[0] != "downstream":
            run_here(words)
            return
        steps_here.append(list(map(str, words)))
        out = Path(str(words[words.index("--out") + 1]))
        out.mkdir(parents=True, exist_ok=True)
        (out / "suite.json").write_text(json.dumps({"identity": Path(str(words[2])).read_text(), **SUITE}))

    monkeypatch.setattr(steps, "run_module", run)
    return steps_here


def test_rows_are_trained_for_the_same_words_and_probed(
    arguments: list[str], tmp_path: Path, lines_run: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["--rows", "elmo_sub,elmo_c,contrastive,elmo_c_rnd"]
    assert main([*arguments, *rows]) == 0
    assert [line[0] for line in lines_run] == [
        *["data_scripts.build_vectors"] * 3,
        "data_scripts.build_subwords",
        "downstream",
        *["pretrain", "pretrain.word_accuracy", "downstream"],
        *["pretrain", "downstream"] * 3,
    ]
    printed = capsys.readouterr().out
    assert "43.22 [+1.50, +4.25]" in printed
    assert "elmo_c: Missing: a run." in printed
    names = rows[1].split(",")
    runs = [RunDirectory(tmp_path / "out/runs" / name) for name in names]
    words = [read_checkpoint(run.checkpoint_paths()[-1])["words"] for run in runs]
    assert dict(zip(names, words, strict=True)) == dict.fromkeys(names, 200), "each of these words is one subword"
    of_words = read_json(runs[0].path / "word_accuracy.json", advice="")
    row = next(line.split() for line in printed.splitlines() if line.startswith("elmo_sub"))
    assert row[8:10] == [f"{of_words[metric]:.3f}" for metric in ("accuracy_at_1", "accuracy_at_10")]
    assert row[10].endswith("†"), "the perplexity of a word of any spelling"
    assert printed.count("†") == 2, "there, and where it is explained"
    record = read_model_directory(runs[0].path).training
    in_words = record["corpus_tokens"] * 1_230_000 // 200
    report = tmp_path / "out/probes/elmo_sub/suite.json"
    words_read = training_of(runs[0].path, report, in_words)[2]
    assert words_read == "1.23M", "of the text in words, whatever a word's subwords are"
    lines_run.clear()
    assert main([*arguments, *rows]) == 0
    assert [line[0] for line in lines_run] == ["downstream"] * 5, "a suite passes over what it has done"
    for damage in (Path.unlink, lambda path: measure_word_accuracy(path.parent, words=10, candidates=3)):
        damage(runs[0].path / "word_accuracy.json")
        capsys.readouterr()
        assert main([*arguments, "--rows", "elmo_c"]) == 0
        printed = capsys.readouterr().out
        assert "elmo_sub: whole words were not looked for" in printed, "or not those that others are scored by"
        row = next(line.split() for line in printed.splitlines() if line.startswith("elmo_sub "))
        assert len(row[: row.index("43.22")]) == 9, "name, sizes, words, time and a perplexity"
    assert main([*arguments, *rows]) == 0
    assert "whole words were not" not in capsys.readouterr().out
    lines_run.clear()
    build_vectors(Corpus(tmp_path / "corpus"), "random:9:300", name="random", replace=True)
    assert main([*arguments, *rows]) == 1
    assert "vectors/random.npy was not made from random:1:300: remove it" in capsys.readouterr().err
    (tmp_path / "out/runs/elmo/model").mkdir(parents=True)  # as it is there before the first update
    assert main([*arguments, "--rows", "elmo_c_cnn"]) == 1
    assert "--rows: elmo_c_cnn reads the character CNN of elmo: put elmo before it" in capsys.readouterr().err
    assert main([*arguments, "--rows", "elmo,elmo_c_cnn", "--set=input_layer.filters=[[1, 8]]"]) == 1, "begun otherwise"


def test_a_suite_that_cannot_be_is_named_before_anything_is_trained(
    arguments: list[str],
    tmp_path: Path,
    steps_here: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And the right one is taken then; all of it is run, and the baseline once for all rows."""
    monkeypatch.setattr("downstream.suite.cli.run_jobs", run_jobs_here)
    monkeypatch.setattr("downstream.suite.data.run_child", lambda command, **_: elmoc.__main__.main(command[3:]))
    suite = tmp_path / "suite.toml"
    (tmp_path / "README.md").write_text("A suite")
    wrong = {
        "README.md is not valid TOML": ["--suite", str(tmp_path / "README.md")],
        "nowhere/ten.conll does not exist": ["--data", str(tmp_path / "nowhere"), "--quick"],
        "ten.conll does not exist": [],
    }
    for message, options in wrong.items():
        suite.write_text(f"{PROBES}[probe.quick]\n" if "--quick" in options else PROBES)
        assert main([*arguments, "--rows", "elmo_c_oneb", *options]) == 1, "before fastText, too"
        assert message in capsys.readouterr().err
    assert {line[0] for line in steps_here} == {"data_scripts.build_vectors", "downstream"}
    (tmp_path / "ten.conll").write_text(columns())
    steps_here.clear()
    assert main([*arguments, "--rows", "elmo_c,contrastive"]) == 0, capsys.readouterr().err
    assert [line[0] for line in steps_here] == ["downstream", *["pretrain", "downstream"] * 2]
    header, alone, *others = capsys.readouterr().out.split("all 8 steps are done")[1].splitlines()[2:6]
    assert header.endswith("  ten sentences")
    assert alone.startswith("word vectors alone")
    assert [line.split()[0] for line in others] == ["elmo_c", "contrastive"]
    assert len(list((tmp_path / "out/probes/baseline").glob("ner-*"))) == 1


def test_another_suite_in_the_same_directory_is_another_table(
    arguments: list[str], tmp_path: Path, lines_run: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--rows", "elmo_c,contrastive"]) == 0
    assert "Not shown" not in capsys.readouterr().out
    (tmp_path / "other.toml").write_text("another")
    lines_run.clear()
    other = ["--suite", str(tmp_path / "other.toml"), "--data", str(tmp_path), "--quick"]
    assert main([*arguments, "--rows", "elmo_c", *other]) == 0
    assert [line[0] for line in lines_run] == ["downstream"] * 2, "nothing is trained again"
    printed = capsys.readouterr().out.split("steps are done")[1]
    assert "\nelmo_c " in printed
    assert "\ncontrastive " not in printed
    assert "Not shown, as their probes are of another suite, or not known to be of this: contrastive\n(give" in printed
    assert main([*arguments, "--rows", "contrastive", *other]) == 0
    printed = capsys.readouterr().out.split("steps are done")[1]
    assert all(f"\n{name} " in printed for name in ("elmo_c", "contrastive"))
    assert "Not shown" not in printed


def test_a_row_that_has_lost_its_checkpoints_can_be_made_again(
    arguments: list[str], tmp_path: Path, lines_run: list[list[str]], error_line: Callable[[int], str]
) -> None:
    assert main([*arguments, "--rows", "elmo_c"]) == 0
    run, probes = tmp_path / "out/runs/elmo_c", tmp_path / "out/probes/elmo_c"
    shutil.rmtree(run / "checkpoints")
    said = error_line(main([*arguments, "--rows", "elmo_c"]))
    assert f"{run} has no checkpoint, or no evaluation of its model: remove it and its probes ({probes}), and" in said
    for folder in (run, probes):
        shutil.rmtree(folder)
    assert main([*arguments, "--rows", "elmo_c"]) == 0


def test_rows_of_another_corpus_are_not_mixed_with_those_of_this(
    arguments: list[str], tmp_path: Path, lines_run: list[list[str]], error_line: Callable[[int], str]
) -> None:
    """Of a corpus that was built anew under the same name, in words or in subwords."""
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    assert main([*arguments, "--rows", "elmo_c"]) == 0
    build_subwords(corpus, out / "subwords", units=262)
    before = Corpus(corpus).train_tokens
    shutil.rmtree(corpus)
    now = write_corpus(corpus, [learnable_sentences(200, 7)], [learnable_sentences(40, 8)]).train_tokens
    lines_run.clear()
    said = error_line(main([*arguments, "--rows", "contrastive"]))
    assert f"{out}/subwords was made of another corpus than {corpus} is now: take that one, or choose" in said
    shutil.rmtree(out / "subwords")
    said = error_line(main([*arguments, "--rows", "contrastive"]))
    assert f"the row elmo_c was trained on {before:,} tokens, and {corpus} has {now:,}: " in said
    assert not lines_run


def test_what_was_begun_before_suites_could_change_goes_on(
    arguments: list[str], tmp_path: Path, lines_run: list[list[str]]
) -> None:
    assert main([*arguments, "--rows", "elmo_c"]) == 0
    begun = tmp_path / "out/begun.json"
    begun.write_text(json.dumps({**json.loads(begun.read_text()), "suite": "suite.toml", "quick": True}))
    assert main([*arguments, "--rows", "elmo_c"]) == 0


def test_settings_of_one_row(
    arguments: list[str], tmp_path: Path, lines_run: list[list[str]], error_line: Callable[[int], str]
) -> None:
    """A row may come with settings of its own later, but one that is there may not get others."""
    assert main([*arguments, "--rows", "elmo_c"]) == 0
    rows = ["--rows", "elmo_c,elmo_a", "--set", "train.seed=1"]
    own = ["--set", "elmo_a:output_layer.cutoffs=[4]", "--set", "elmo_a:train.seed=3"]
    assert "out was begun with other values of sets" in error_line(main([*arguments, *rows, *own]))
    arguments = [*arguments[:1], str(tmp_path / "other"), *arguments[2:]]
    said = error_line(main([*arguments, *rows]))
    assert main([*arguments, "--rows", "elmo_c", "--set", "train.seed=1"]) == 0
    assert main([*arguments, *rows, *own]) == 0
    configs = [RunDirectory(tmp_path / "other/runs" / name).read_config() for name in ("elmo_c", "elmo_a")]
    assert [config.train.seed for config in configs] == [1, 3]
    assert vars(configs[1].output_layer)["cutoffs"] == (4,)
    lines_run.clear()
    said = error_line(main([*arguments, *rows, *own, "--set=elmo_a:train.seed=4"]))
    assert "the row elmo_a: it was begun with other values of train.seed (was 3, is 4): give the same to go on" in said
    assert not lines_run, "although it is done"
    assert main([*arguments, "--rows", "elmo_c", "--set", "train.seed=1"]) == 0


def test_settings_of_rows_are_told_from_those_of_all() -> None:
    given = GivenSettings.parse(["a.b=x:1", "elmo:c.d=random:1:2", "e.f=1", "elmo:g.h=2"])
    assert given.of("elmo_c") == ("a.b=x:1", "e.f=1")
    assert given.of("elmo") == ("a.b=x:1", "e.f=1", "c.d=random:1:2", "g.h=2")


def test_another_directory_makes_vectors_of_its_own(
    arguments: list[str], tmp_path: Path, lines_run: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the same corpus: equal time in one, equal words in another."""
    rows = ["--rows", "elmo,elmo_c_cnn"]
    for name in ("out", "other"):
        arguments[1] = str(tmp_path / name)
        assert main([*arguments, *rows]) == 0, capsys.readouterr().err
    tables = {path.stem for path in (tmp_path / "corpus/vectors").glob("*.json")}
    assert len(tables) == 4
    first, second = (read_model_directory(tmp_path / name / "runs/elmo_c_cnn") for name in ("out", "other"))
    assert first.word_vectors.fingerprint == second.word_vectors.fingerprint, "the row elmo has the same seed"
    evaluations = [each["update"] for each in read_metrics(tmp_path / "out/runs/elmo_c_cnn", "evaluation")]
    assert evaluations == [0, 10], "at the beginning and at the end"


def test_a_row_that_cannot_be_is_named_before_the_others_are_made(
    arguments: list[str], lines_run: list[list[str]], error_line: Callable[[int], str]
) -> None:
    said = error_line(main([*arguments, "--rows", "elmo_c,elmo_a"]))
    assert "the row elmo_a: output_layer.cutoffs=[4000, 40000] are not below the number of classes" in said
    assert [line[0] for line in lines_run] == ["data_scripts.build_vectors"] * 2


@pytest.mark.parametrize("row", ["elmo_sub", "elmo_c_cnn"])
def test_a_row_that_does_not_fit_into_memory_is_named_before_the_others_are_made(
    row: str, arguments: list[str], lines_run: list[list[str]], error_line: Callable[[int], str]
) -> None:
    huge = [f"--set={row}:encoder.{name}={2**20}" for name in ("projection_size", "cell_size")]
    said = error_line(main([*arguments, "--rows", f"elmo,{row}", *huge]))
    assert f"the row {row}: the run needs about " in said
    assert said.endswith(" are free: use smaller sizes, or a machine with more memory")
    subwords = ["data_scripts.build_subwords"] * (row == "elmo_sub")
    assert [line[0] for line in lines_run] == ["data_scripts.build_vectors"] * 2 + subwords


def test_rows_that_are_done_need_no_memory(
    arguments: list[str], lines_run: list[list[str]], monkeypatch: pytest.MonkeyPatch, error_line: Callable[[int], str]
) -> None:
    assert main([*arguments, "--rows", "elmo_c"]) == 0
    monkeypatch.setattr(memory, "free_memory", lambda device: 0)
    assert main([*arguments, "--rows", "elmo_c"]) == 0
    assert "the row elmo_sub: the run needs about" in error_line(main([*arguments, "--rows", "elmo_c,elmo_sub"]))


def test_a_table_that_was_post_processed_is_refused(
    arguments: list[str], tmp_path: Path, lines_run: list[list[str]], error_line: Callable[[int], str]
) -> None:
    build_vectors(Corpus(tmp_path / "corpus"), "random:5:8", name="target", transform="whiten")
    said = error_line(main([*arguments, "--rows", "elmo_c"]))
    assert "vectors/target.npy was post-processed (whiten), and these rows take vectors as they are: build" in said
    assert not lines_run


def test_every_row_names_a_config() -> None:
    assert all(system.path.is_file() for system in SYSTEMS.values())


def test_parameters_are_those_that_were_trained(
    arguments: list[str], tmp_path: Path, lines_run: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--rows", "elmo,elmo_c_cnn,elmo_sub"]) == 0
    for name in ("elmo", "elmo_c_cnn", "elmo_sub"):
        model = read_model_directory(tmp_path / "out/runs" / name)
        checkpoint = read_checkpoint(RunDirectory(tmp_path / "out/runs" / name).checkpoint_paths()[-1])
        trained = [weight for part in ("encoder", "heads", "input") for weight in checkpoint[part].values()]
        assert parameters_of(model) == sum(weight.numel() for weight in trained), name


def test_what_cannot_be_is_refused(arguments: list[str], tmp_path: Path, error_line: Callable[[int], str]) -> None:
    assert "--rows: 'bert' is not a row; choose from elmo, " in error_line(main([*arguments, "--rows", "elmo,bert"]))
    assert "--words must be at least 1" in error_line(main([*arguments, "--words", "0"]))
    missing = [*arguments[:4], "--suite", str(tmp_path / "none.toml"), "--max-time", "5m"]
    assert "none.toml does not exist: check the name" in error_line(main(missing))
    said = error_line(main([*arguments, "--set", "bert:output_layer.samples=9"]))
    assert "--set bert:output_layer.samples=9: 'bert' is not a row; choose from elmo, elmo_a, " in said


@pytest.mark.parametrize("given", ["data.corpus=other", "elmo_c: data.corpus=other"])
def test_another_corpus_is_refused(given: str, arguments: list[str], error_line: Callable[[int], str]) -> None:
    said = error_line(main([*arguments, "--rows", "elmo_c", "--set", given]))
    assert f"--set data.corpus: all rows are trained on the text of CORPUS ({arguments[0]}): leave it out" in said
    assert not Path(arguments[1]).exists()


def test_a_damaged_report_is_named(tmp_path: Path) -> None:
    report = tmp_path / "suite.json"
    for content in ('{"rows": [{"dataset": "x"}]}', "[]"):
        report.write_text(content)
        with pytest.raises(InputError, match=r"suite.json is not what a suite writes: remove it"):
            text_of({"elmo_c": (tmp_path, report)}, alone=report, tokens=1)
