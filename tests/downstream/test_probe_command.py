"""What does a probe's command say about options that cannot be?"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from downstream.__main__ import main
from downstream.command import parse
from downstream.ner import TASK
from downstream.options import chosen_settings


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
        ("--features none.h5", "none.h5 does not exist: write it with `elmoc dump-features`"),
        ("--features TEN", "is not a whole HDF5 file"),
        ("--vectors random:1:4 --seeds 0", "--seeds 0 is not possible"),
        ("--vectors random:1:4 --seeds 3-2", "--seeds 3-2 is not possible: give their number, such as 3"),
        ("--vectors random:1:4 --seeds 1,2", "--seeds 1,2 is not possible"),
        ("--vectors random:1:4 --optimiser sgd", "--optimiser 'sgd' is not possible: choose from adam, adadelta"),
        ("--inputs model --features FEATURES", "--inputs model needs --model"),
        ("--vectors random:1:4 --epochs 0", "--epochs 0 is not possible: a whole number from 1 is needed"),
        ("--vectors random:1:4 --batch-size -3", "--batch-size -3 is not possible"),
        ("--vectors random:1:4 --learning-rate nan", "--learning-rate nan is not possible: a number from 0"),
        ("--vectors random:1:4 --dropout 1", "--dropout 1.0 is not possible: a number from 0 and under 1 is needed"),
        ("--vectors random:1:4 --device gpu", "'gpu' is no device"),
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
        options = parse(TASK, ["--train", "t", "--dev", "d", "--vectors", "v", *arguments])
        return chosen_settings(options, published=TASK.published, small=TASK.small)

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
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: the probes need the package allennlp_light, which is not installed")
    assert "pip install 'elmoc[downstream]'" in ran.stderr
    assert ran.stderr.count("\n") == 1
