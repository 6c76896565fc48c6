"""The command `layers`: it finds what is in a layer, in that layer."""

from pathlib import Path

import numpy as np
import pytest

from downstream.__main__ import main
from downstream.linear import classifier
from downstream.linear.command import read_words
from elmoc.features.layouts.allennlp import AllennlpWriter
from elmoc.features.layouts.interface import FeatureShape, Sentence
from tests.downstream.conftest import TEN_SENTENCES, columns

TINY = ["--hidden-size", "6", "--layers", "1", "--dropout", "0", "--batch-size", "5", "--epochs", "1", "--seeds", "1"]


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    """A feature file of which layer 1 tells the label of a word, and layer 0 nothing."""
    return write_telling(tmp_path / "telling.h5", ["0", "1"])


def write_telling(path: Path, names: list[str]) -> Path:
    generator = np.random.default_rng(3)
    shape = FeatureShape(layers=2, width=4, dtype="float32", single=False)
    with AllennlpWriter.open(path, {"model": "m", "layers": names}, shape=shape) as writer:
        for line in TEN_SENTENCES.splitlines():
            pairs = [pair.split("/") for pair in line.split()]
            states = generator.standard_normal(shape.of(len(pairs))).astype(np.float32) * 0.1
            for place, (_, tag) in enumerate(pairs):
                states[0, place] = 0
                states[1, place, "OBI".index(tag[0])] += 1
            writer.add(Sentence([word for word, _ in pairs]), states)
    return path


def table_of(out: str) -> dict[str, list[str]]:
    """Input → numbers and accuracies, of the printed table."""
    lines = out.split("Accuracy of")[1].split("\n\n")[1].splitlines()[2:]
    return {line[: line.index("  ")]: line[line.index("  ") :].split() for line in lines}


def test_each_layer_is_asked_by_itself(ten: Path, telling: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ten.write_text(columns(TEN_SENTENCES.replace("-PER", "").replace("-LOC", "").replace("-ORG", "")))
    arguments = ["layers", "--train", ten, "--dev", ten, "--label", "column:1", "--features", telling]
    assert main(list(map(str, [*arguments, "--vectors", "random:1:2"]))) == 0
    out = capsys.readouterr().out
    found = table_of(out)
    names = ["most frequent label", "most frequent of the word", "vectors", "layer 0", "layer 1", "all layers"]
    assert list(found) == names
    assert found["layer 1"] == ["4", "100.00"]
    assert found["all layers"] == ["8", "100.00"]
    assert found["layer 0"][1] == found["most frequent label"][0]
    assert "column:1: 3 labels, 44 words of train, 44 of dev" in out


def test_layers_have_the_names_that_the_file_says(
    tmp_path: Path, ten: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    telling = write_telling(tmp_path / "telling.h5", ["2", "1"])
    assert (
        main(["layers", "--train", str(ten), "--dev", str(ten), "--label", "column:1", "--features", str(telling)]) == 0
    )
    found = table_of(capsys.readouterr().out)
    assert list(found)[2:] == ["layer 2", "layer 1", "all layers"]
    assert float(found["layer 2"][1]) < float(found["layer 1"][1])


def test_a_part_of_the_words_is_of_whole_sentences_and_the_same_every_time(ten: Path) -> None:
    first, second, one = (read_words([ten], ["column:1"], most_words=most) for most in (20, 20, 1))
    assert first.sentences == second.sentences
    assert 10 < len(first.words) <= 20
    assert len(one.sentences) == 1


def test_classifiers_that_were_stopped_are_marked(
    ten: Path, telling: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(classifier, "MOST_ITERATIONS", 1)
    arguments = ["layers", "--train", ten, "--dev", ten, "--label", "column:1", "--features", telling]
    assert main(list(map(str, arguments))) == 0
    assert table_of(capsys.readouterr().out)["layer 1"][1].endswith("*")


def test_mixes_of_probes(tmp_path: Path, ten: Path, features: Path, capsys: pytest.CaptureFixture[str]) -> None:
    probes = []
    for layers in ("all", "0,2", "top"):
        save = tmp_path / layers
        arguments = ["ner", "--train", ten, "--dev", ten, "--features", features, "--vectors", "random:1:4", *TINY]
        arguments += ["--save", save, "--state-layers", layers, "--mix-l2", "1", "--inputs", "both"]
        assert main(list(map(str, arguments))) == 0
        probes.append(str(save / "both.seed1"))
    capsys.readouterr()
    assert main(["layers", "--mix", *probes]) == 0
    _, _, header, _, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["probe", "layer", "0", "layer", "1", "layer", "2", "γ"]
    weights = [row.split()[1:] for row in rows]
    assert sum(map(float, weights[0][:3])) == pytest.approx(1, abs=0.002)
    assert sum(map(float, weights[1][:3:2])) == pytest.approx(1, abs=0.002)
    assert weights[1][1] == "–"
    assert weights[2][:3] == ["–", "–", "1.000"]
