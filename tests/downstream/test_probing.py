"""The call `run_probe` and its command: they give the same, and what is impossible is named."""

import json
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest
from downstream.__main__ import main
from downstream.inputs.options import AS_THEY_ARE
from downstream.results.records import Result
from downstream.settings import SMALL_INPUTS, with_changes
from downstream.tasks.ner.task import TASK, NerReaderOptions
from downstream.tasks.sst5.task import TASK as SST5
from downstream.tasks.sst5.task import Sst5ReaderOptions
from elmoc.errors import InputError, quiet
from elmoc.settings import option_name

from downstream import InputOptions, ProbeData, ProbeOptions, run_probe
from downstream.tasks import TASKS


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ("", "--vectors"),
        ("--inputs both --vectors random:1:4", "--features"),
        ("--inputs elmo --vectors random:1:4", "--inputs"),
        ("--vectors none.vec", "none.vec"),
        ("--features TEN", "TEN"),
        ("--vectors random:1:4 --seeds 0", "--seeds"),
        ("--vectors random:1:4 --optimiser sgd", "--optimiser"),
        ("--features FEATURES --state-layers 3", "--state-layers"),
        ("--vectors random:1:4 --train-fraction 0", "--train-fraction"),
        ("--vectors random:1:4 --device cuda:99", "cuda:99"),
        ("--vectors random:1:4 --results FOLDER", "FOLDER"),
        ("--vectors random:1:4 --results TEN", "TEN"),
        ("--vectors random:1:4 --save TEN", "TEN"),
        ("--vectors random:1:4 --dev TEN TEN", "TEN"),
    ],
)
def test_options_that_cannot_be(
    tmp_path: Path, ten: Path, features: Path, fails: Callable[..., str], arguments: str, key: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    names = {"TEN": str(ten), "FEATURES": str(features), "FOLDER": str(folder)}
    given = [names.get(argument, argument) for argument in arguments.split()]
    assert names.get(key, key) in fails("ner", "--train", ten, "--dev", ten, *given)


def test_what_is_not_given_has_a_value() -> None:
    assert ProbeOptions().seed_list() == [1, 2, 3]
    assert ProbeOptions(seeds="4-5").seed_list() == [4, 5]
    for options, given, kinds in (
        (ProbeOptions(), InputOptions(vectors=["v"]), ["vectors"]),
        (ProbeOptions(), InputOptions(vectors=["v"], model=Path("m")), ["vectors", "both"]),
        (
            ProbeOptions(inputs="vectors,features,both"),
            InputOptions(vectors=["v"], model=Path("m")),
            ["vectors", "features", "both"],
        ),
        (ProbeOptions(inputs="both"), InputOptions(vectors=["v"], features=Path("f")), ["both"]),
        (ProbeOptions(), InputOptions(model=Path("m")), ["features"]),
    ):
        assert [kind.name for kind in options.kinds(given)] == kinds


def test_options_of_a_reader_are_typed_and_checked(ten: Path, fails: Callable[..., str]) -> None:
    assert with_changes(TASK.reader, {"column": 2}) == NerReaderOptions(column=2)
    assert with_changes(SST5.reader, {"subtrees": "none"}) == Sst5ReaderOptions(subtrees="none")
    assert "--subtrees" in fails("sentences", "sst5", ten, "--subtrees", "some")
    assert "--column" in fails("ner", "--train", ten, "--dev", ten, "--vectors", "random:1:4", "--column", "-2")
    with pytest.raises(InputError, match="--train"):
        run_probe("ner", ProbeData(), InputOptions(vectors=["random:1:4"]), ProbeOptions())


TINY = {"hidden_size": 12, "layers": 1, "learning_rate": 0.02, "batch_size": 4, "epochs": 3}


def test_the_call_gives_what_the_command_gives(
    tmp_path: Path, ten: Path, features: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["ner", "--train", ten, "--dev", ten, "--features", features, "--vectors", "random:1:12"]
    arguments += ["--small", "--seeds", "1-2", "--results", tmp_path / "results.jsonl"]
    arguments += [part for name, value in TINY.items() for part in (option_name(name), value)]
    assert main([str(one) for one in arguments]) == 0
    printed = capsys.readouterr().out
    before = sorted(tmp_path.iterdir())
    with quiet():
        result = run_probe(
            "ner",
            ProbeData(train=[ten], dev=[ten]),
            InputOptions(vectors=["random:1:12"], features=features),
            ProbeOptions(preset="small", seeds=2, settings=TINY),
        )
    assert capsys.readouterr() == ("", ""), "a quiet call prints nothing"
    assert sorted(tmp_path.iterdir()) == before, "nothing is written"
    written = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    for line, ours in zip(written, map(Result.as_json, result.lines), strict=True):
        kind = line["inputs"]
        assert result.mean[kind] == line["mean"]
        for of_time in ("seconds", "examples_per_second", "curves"):
            del line[of_time], ours[of_time]
        assert ours == line
    assert (result.task, result.metric, result.split) == ("ner", "entity F1", "dev")
    assert f"both      {result.mean['both']:.2f}" in printed
    assert f"gain {result.mean['both'] - result.mean['vectors']:+.2f}" in printed
    assert "counts" not in repr(result)


@pytest.mark.parametrize("name", TASKS)
def test_no_number_is_too_absurd_to_be_refused(name: str) -> None:
    task = import_module(f"downstream.tasks.{name}.task").TASK
    for preset, expected in ((task.small, SMALL_INPUTS), (task.published, vars(AS_THEY_ARE))):
        assert {each: getattr(preset, each) for each in expected} == expected, "tables tell encoders by it"
    for each in fields(task.published):
        value = getattr(task.published, each.name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            numbers = (-1, 10**12, 10**30) if isinstance(value, int) else (-1, "nan", "inf", "1e308")
            for absurd in numbers:
                with pytest.raises(InputError, match=option_name(each.name)):
                    with_changes(task.published, {each.name: float(absurd)})
