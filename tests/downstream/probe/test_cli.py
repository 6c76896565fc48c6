"""The command line of a probe: options that are impossible, and what is not given."""

import io
import sys
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from downstream.__main__ import TASKS, main
from downstream.probe.cli import parse
from downstream.probe.task import Task
from downstream.settings import SMALL_MIX_RATE
from downstream.tasks.ner.task import TASK, NerReaderOptions
from downstream.tasks.sst5.task import TASK as SST5
from downstream.tasks.sst5.task import Sst5ReaderOptions
from elmoc.errors import InputError
from elmoc.settings import option_name

GIVEN = ["--train", "t", "--dev", "d", "--vectors", "v"]


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
    assert parse(TASK, GIVEN).seed_list == [1, 2, 3]
    assert parse(TASK, [*GIVEN, "--seeds", "4-5"]).seed_list == [4, 5]
    for arguments, kinds in (
        ([], ["vectors"]),
        (["--model", "m"], ["vectors", "both"]),
        (["--model", "m", "--inputs", "vectors,model,both"], ["vectors", "model", "both"]),
        (["--features", "f", "--inputs", "both"], ["both"]),
    ):
        assert [kind.name for kind in parse(TASK, [*GIVEN, *arguments]).kinds] == kinds


def test_options_of_a_reader_are_typed_and_checked(ten: Path, fails: Callable[..., str]) -> None:
    def reader(task: Task[Any, Any], *arguments: str) -> object:
        return parse(task, [*GIVEN, *arguments]).reader

    assert (reader(TASK), reader(TASK, "--column", "2")) == (NerReaderOptions(), NerReaderOptions(column=2))
    assert reader(SST5, "--subtrees", "none") == Sst5ReaderOptions(subtrees="none")
    assert "--subtrees" in fails("sentences", "sst5", ten, "--subtrees", "some")


@pytest.mark.parametrize("arguments", ["", "parse", "sentences parse", "ner --x", "--evaluate-only p --small"])
def test_usage_errors(arguments: str) -> None:
    words = arguments.split()
    with pytest.raises(SystemExit) as stopped:
        main(["ner", *words, "--test", "t"] if "--evaluate-only" in words else words)
    assert stopped.value.code == 2


@pytest.mark.parametrize("name", TASKS)
def test_help_shows_what_people_use_and_help_all_the_rest(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for option in ("--help", "--help-all"):
        with pytest.raises(SystemExit) as stopped:
            main([name, option])
        assert stopped.value.code == 0
        shown[option] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  -")]
    assert len(shown["--help"]) <= 14
    assert any("--batch-size" in line for line in shown["--help-all"])


@pytest.mark.parametrize("name", TASKS)
def test_no_number_is_too_absurd_to_be_refused(name: str) -> None:
    task = import_module(f"downstream.tasks.{name}.task").TASK
    assert (task.small.mix_rate, task.published.mix_rate) == (SMALL_MIX_RATE, 1.0), "tables tell encoders by it"
    for each in fields(task.published):
        value = getattr(task.published, each.name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            numbers = (-1, 10**12, 10**30) if isinstance(value, int) else (-1, "nan", "inf", "1e308")
            for absurd in map(str, numbers):
                with pytest.raises(InputError, match=option_name(each.name)):
                    parse(task, [*GIVEN, option_name(each.name), absurd])


def test_sentences_are_utf8_whatever_the_terminal_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.conll").write_text("Zoë\tB-PER\n中\tO\n", encoding="utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["sentences", "ner", str(tmp_path / "a.conll")]) == 0
    assert terminal.buffer.getvalue() == "Zoë 中\n".encode()  # type: ignore[attr-defined]
