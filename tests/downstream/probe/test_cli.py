"""The command line of a probe: options that are impossible, and what is not given."""

import io
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from downstream.__main__ import TASKS, main
from downstream.inputs.state_settings import SMALL_MIX_RATE
from downstream.probe.cli import parse
from downstream.probe.settings import option_name
from downstream.probe.task import Task
from downstream.tasks.ner.task import TASK, NerReaderOptions
from downstream.tasks.sst5.task import TASK as SST5
from downstream.tasks.sst5.task import Sst5ReaderOptions
from elmoc.errors import InputError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "nothing to read: give --features FILE.h5 or --model DIR, --vectors V, or both"),
        ("--inputs both --vectors random:1:4", "--inputs both needs --features"),
        ("--inputs features,vectors --features FEATURES", "--inputs vectors needs --vectors"),
        ("--inputs elmo --vectors random:1:4", "'elmo' is not a kind of inputs; choose from vectors, both, features"),
        ("--vectors random:x", "random:SEED:SIZE"),
        ("--vectors none.vec", "none.vec does not exist"),
        ("--vectors none.npy", "word vectors are a fastText .bin file"),
        ("--features none.h5", "none.h5 does not exist: write it again with `elmoc dump-features`"),
        ("--features TEN", "is not a whole HDF5 file"),
        ("--vectors random:1:4 --seeds 0", "--seeds 0 is not possible"),
        ("--vectors random:1:4 --seeds 3-2", "--seeds 3-2 is not possible: give their number, such as 3"),
        ("--vectors random:1:4 --seeds 1,2", "--seeds 1,2 is not possible"),
        ("--vectors random:1:4 --optimiser sgd", "--optimiser must be one of adam, adadelta, not 'sgd'"),
        ("--vectors random:1:4 --seeds 9223372036854775808", "--seeds 9223372036854775808 is not possible"),
        ("--vectors random:1:4 --seeds 9223372036854775808-9223372036854775809", "each under 2^63"),
        ("--vectors random:1:4 --seeds 18446744073709551616-18446744073709551616", "each under 2^63"),
        ("--vectors random:1:4 --seeds 20250101", "at most 10,000 of them"),
        (
            "--inputs model,both --vectors random:1:4 --features FEATURES",
            "--inputs model needs --model: with --features that kind is called features, so give --inputs features,",
        ),
        (
            "--inputs vectors,features,both --vectors random:1:4 --model none",
            "needs --features: with --model that kind is called model, so give --inputs vectors,model,both",
        ),
        (
            "--inputs vectors --vectors random:1:4 --features FEATURES",
            "features.h5 is not read by --inputs vectors: leave",
        ),
        ("--inputs vectors --vectors random:1:4 --model none", "--model none is not read by --inputs vectors: leave"),
        (
            "--inputs features --vectors random:1:4 --features FEATURES",
            "--vectors random:1:4 is not read by --inputs features: leave it out, or ask for vectors or both, too",
        ),
        ("--inputs model --vectors random:1:4 --model none", "--vectors random:1:4 is not read by --inputs model"),
        (
            "--features FEATURES --model-vectors random:1:4",
            "--model-vectors says how --model DIR is read, which is not",
        ),
        ("--features FEATURES --pooling mean", "--pooling says how --model DIR is read, which is not given: give it"),
        ("--vectors random:1:4 --memory-limit 1", "--memory-limit says how --model DIR is read, which is not given"),
        ("--model none --memory-limit nan", "--memory-limit nan is not possible: a number of GB from 0 is needed"),
        ("--model none --memory-limit -1", "--memory-limit -1.0 is not possible"),
        ("--vectors random:1:4 --epochs 0", "--epochs must be at least 1 and at most 1000000, not 0"),
        ("--vectors random:1:4 --batch-size -3", "--batch-size must be at least 1 and at most 1000000, not -3"),
        ("--vectors random:1:4 --learning-rate nan", "--learning-rate must be a finite number, not nan"),
        ("--vectors random:1:4 --dropout 1", "--dropout must be at least 0 and below 1, not 1.0"),
        ("--vectors random:1:4 --state-layers 2,0", "--state-layers 2,0 is not possible: give all, top, or numbers"),
        ("--features FEATURES --state-layers 3", "the layers here are 0, 1, 2, and there is no layer 3"),
        ("--features FEATURES --states-dropout 1", "--states-dropout must be at least 0 and below 1, not 1.0"),
        ("--vectors random:1:4 --device gpu", "'gpu' is not a device"),
        ("--vectors random:1:4 --device cuda:99", "cuda:99 is not there"),
        ("--vectors random:1:4 --results FOLDER", "s a directory"),
        ("--vectors random:1:4 --predictions FOLDER", "seed1.dev.conll exists already"),
    ],
)
def test_options_that_cannot_be(
    tmp_path: Path, ten: Path, features: Path, fails: Callable[..., str], arguments: str, message: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "ner.vectors.seed1.dev.conll").write_text("kept")
    names = {"TEN": ten, "FEATURES": features, "FOLDER": folder}
    given = [names.get(argument, argument) for argument in arguments.split()]
    assert message in fails("ner", "--train", ten, "--dev", ten, *given)
    assert (folder / "ner.vectors.seed1.dev.conll").read_text() == "kept"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--small", "does not go with --small: leave it out"),
        ("--epochs 3", "does not go with --epochs: leave it out"),
        ("--no-standardise", "does not go with --no-standardise"),
        ("--seeds 3", "does not go with --seeds"),
        ("--train TEN --small --hidden-size 9", "does not go with --train, --small, --hidden-size: leave them out"),
        ("--save none --inputs both", "does not go with --save, --inputs"),
        ("--features FEATURES --model-vectors random:1:4", "--model-vectors says how --model DIR is read"),
        ("--features FEATURES --pooling mean", "--pooling says how --model DIR is read"),
        ("--model none --memory-limit nan", "--memory-limit nan is not possible"),
    ],
)
def test_options_that_saved_probes_do_not_read(
    ten: Path, features: Path, fails: Callable[..., str], arguments: str, message: str
) -> None:
    names = {"TEN": ten, "FEATURES": features}
    given = [names.get(argument, argument) for argument in arguments.split()]
    assert message in fails("ner", "--evaluate-only", "none/both.seed1", "--test", ten, *given)


def test_what_is_not_given_has_a_value() -> None:
    def options(*arguments: str) -> Namespace:
        return parse(TASK, ["--train", "t", "--dev", "d", *arguments])

    assert options("--vectors", "v").seed_list == [1, 2, 3]
    assert options("--vectors", "v", "--seeds", "4-5").seed_list == [4, 5]
    last = str(2**63 - 1)
    assert options("--vectors", "v", "--seeds", f"{last}-{last}").seed_list == [2**63 - 1]
    assert options("--model", "m").memory_limit == 4.0
    assert options("--model", "m", "--memory-limit", "inf").memory_limit == float("inf")
    assert options("--model", "m", "--memory-limit", "0").memory_limit == 0


def test_inputs_of_all_kinds_go_together() -> None:
    def kinds(*arguments: str) -> list[str]:
        return [kind.name for kind in parse(TASK, ["--train", "t", "--dev", "d", "--vectors", "v", *arguments]).kinds]

    assert kinds("--model", "m", "--inputs", "vectors,model,both") == ["vectors", "model", "both"]
    assert kinds("--features", "f", "--inputs", "vectors,features") == ["vectors", "features"]
    assert kinds("--features", "f", "--inputs", "both") == ["both"]


def test_options_of_a_reader_are_typed_and_checked(ten: Path, fails: Callable[..., str]) -> None:
    def reader(task: Task[Any, Any], *arguments: str) -> object:
        return parse(task, ["--train", "t", "--dev", "d", "--vectors", "v", *arguments]).reader

    assert (reader(TASK), reader(TASK, "--column", "2")) == (NerReaderOptions(), NerReaderOptions(column=2))
    assert reader(SST5, "--subtrees", "none") == Sst5ReaderOptions(subtrees="none")
    message = "--subtrees must be one of all, distinct, none, not 'some'"
    assert message in fails("sst5", "--train", ten, "--dev", ten, "--vectors", "random:1:4", "--subtrees", "some")
    assert message in fails("sentences", "sst5", ten, "--subtrees", "some")


def test_training_data_without_entities(tmp_path: Path, ten: Path, fails: Callable[..., str]) -> None:
    plain = tmp_path / "plain.conll"
    plain.write_text("a\tO\n")
    assert "holds no entity" in fails("ner", "--train", plain, "--dev", ten, "--vectors", "random:1:4")


@pytest.mark.parametrize(
    "arguments",
    [[], ["parse"], ["sentences"], ["sentences", "parse"], ["ner"], ["ner", "--x"], ["ner", "--evaluate-only", "p"]],
)
def test_usage_errors(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: python -m downstream" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--help"], ["ner", "--help"], ["sentences", "ner", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 0
    assert "elmoc dump" in " ".join(capsys.readouterr().out.split())


def test_an_option_goes_before_the_preset() -> None:
    def settings(*arguments: str) -> object:
        return parse(TASK, ["--train", "t", "--dev", "d", "--vectors", "v", *arguments]).settings

    assert settings() == TASK.published
    assert settings("--small") == TASK.small != TASK.published
    given = settings("--small", "--layers", "3")
    assert (given.layers, given.hidden_size) == (3, TASK.small.hidden_size)  # type: ignore[attr-defined]


def test_a_package_of_the_extra_that_is_missing_is_named(ten: Path) -> None:
    code = (
        "import sys; sys.modules['allennlp_light'] = None\n"
        "from downstream.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "sentences", "ner", str(ten)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: the probes need the package allennlp_light, which is not installed")
    assert "install it with `pip install -e '.[downstream]'` in the checkout" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("name", TASKS)
def test_no_number_is_too_absurd_to_be_refused(name: str) -> None:
    task = import_module(f"downstream.tasks.{name}.task").TASK
    for each in fields(task.published):
        value = getattr(task.published, each.name)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            numbers = (-1, 10**12, 10**30) if isinstance(value, int) else (-1, "nan", "inf", "1e999", "1e308")
            for absurd in map(str, numbers):
                option = option_name(each.name)
                with pytest.raises(InputError, match=f"^{option} must be "):
                    parse(task, ["--train", "t", "--dev", "d", "--vectors", "v", option, absurd])


def test_sizes_are_compared_with_the_memory_there_is(
    ten: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["ner", "--train", ten, "--dev", ten, "--vectors", "random:1:4", "--seeds", 1]
    message = fails(*arguments, "--hidden-size", 100_000, "--layers", 100)
    assert "a probe of these sizes needs 476.8 TB for its training, and " in message
    assert message.endswith(" are free: choose smaller layers, or fewer\n")


def test_sentences_are_utf8_whatever_the_terminal_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.conll").write_text("Zoë\tB-PER\n中\tO\n", encoding="utf-8")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["sentences", "ner", str(tmp_path / "a.conll")]) == 0
    assert terminal.buffer.getvalue() == "Zoë 中\n".encode()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", TASKS)
def test_the_mix_of_all_small_presets_learns_as_fast(name: str) -> None:
    task = import_module(f"downstream.tasks.{name}.task").TASK
    assert (task.small.mix_rate, task.published.mix_rate) == (SMALL_MIX_RATE, 1.0), "tables tell encoders by it"


def test_threads_of_a_probe_wait_without_spinning_from_before_pytorch_loads() -> None:
    code = (
        "import os, sys\nos.environ.pop('OMP_WAIT_POLICY', None)\nfrom downstream import __main__ as command\n"
        "from types import SimpleNamespace\n"
        "def run(*_): print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)\n"
        "command._task = str\ncommand._import = lambda _: SimpleNamespace(run_probes=run)\n"
        "command.main(['ner', '--train', 'a'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "passive False\n"
