"""The command `layers`: it finds what is in a layer, in that layer, and says what it cannot do."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from downstream.__main__ import main
from downstream.linear import accuracies, classifier, command
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.writer import write_features
from tests.downstream.conftest import TEN_SENTENCES, columns, words_of, write_random_features
from tests.downstream.linear.test_labels import PARSED

TINY = ["--hidden-size", "6", "--layers", "1", "--dropout", "0", "--batch-size", "5", "--epochs", "1", "--seeds", "1"]


@pytest.fixture
def telling(tmp_path: Path) -> Path:
    """A feature file of which layer 1 tells the label of a word, and layer 0 nothing."""
    return write_telling(tmp_path / "telling.h5", ["0", "1"])


def write_telling(path: Path, names: list[str]) -> Path:
    """A feature file of two layers, of which the second tells the label of a word, and the first nothing."""
    generator = np.random.default_rng(3)
    shape = FeatureShape(layers=2, width=4, dtype="float32", single=False)
    with write_features(path, {"model": "m", "layers": names}, shape=shape) as writer:
        for line in TEN_SENTENCES.splitlines():
            pairs = [pair.split("/") for pair in line.split()]
            states = generator.standard_normal(shape.of(len(pairs))).astype(np.float32) * 0.1
            for place, (_, tag) in enumerate(pairs):
                states[0, place] = 0
                states[1, place, "OBI".index(tag[0])] += 1
            writer.add(Sentence([word for word, _ in pairs]), states)
    return path


def test_each_layer_is_asked_by_itself(
    tmp_path: Path, ten: Path, telling: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ten.write_text(columns(TEN_SENTENCES.replace("-PER", "").replace("-LOC", "").replace("-ORG", "")))
    results = tmp_path / "layers.jsonl"
    arguments = ["layers", "--train", ten, "--dev", ten, "--label", "column:1", "--features", telling]
    arguments += ["--vectors", "random:1:2", "--results", results, "--l2", "0.01"]
    assert main(list(map(str, arguments))) == 0
    out = capsys.readouterr().out
    line = json.loads(results.read_text())
    found = {name: accuracy["accuracy"] for name, accuracy in line["accuracies"].items()}
    names = ["most frequent label", "most frequent of the word", "vectors", "layer 0", "layer 1", "all layers"]
    assert list(found) == names
    assert found["layer 1"] == found["all layers"] == 100
    assert found["layer 0"] == found["most frequent label"] < found["most frequent of the word"] < 100
    assert [line["accuracies"][name]["size"] for name in names] == [0, 0, 2, 4, 4, 8]
    assert (line["label"], line["labels"], line["words"]["dev"]) == ("column:1", 3, 44)
    for name in names:
        assert f"{name} " in out
    assert "column:1: 3 labels, 44 words of train, 44 of dev" in out


def test_layers_have_the_numbers_that_the_file_says(tmp_path: Path, ten: Path) -> None:
    results, telling = tmp_path / "layers.jsonl", write_telling(tmp_path / "telling.h5", ["2", "1"])
    arguments = ["layers", "--train", ten, "--dev", ten, "--label", "column:1", "--features", telling]
    assert main(list(map(str, [*arguments, "--results", results, "--l2", "0.01"]))) == 0
    accuracies = json.loads(results.read_text())["accuracies"]
    assert list(accuracies)[2:] == ["layer 2", "layer 1", "all layers"]
    assert accuracies["layer 2"]["accuracy"] < accuracies["layer 1"]["accuracy"]


def test_a_part_of_the_words_is_of_whole_sentences_and_the_same_every_time(
    ten: Path, telling: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["layers", "--train", ten, "--dev", ten, "--label", "column:1", "--features", telling]
    outputs = []
    for most_words in ("20", "20", "1"):
        assert main([*map(str, arguments), "--most-words", most_words]) == 0
        outputs.append(capsys.readouterr())
    first, second, one = (output.out for output in outputs)
    assert first.split("training and")[0] == second.split("training and")[0]
    assert 10 < int(first.split("words")[0].split()[-1]) <= 20
    assert one.startswith("train  1 sentence, ")


def test_states_without_room_are_said_to_have_none(
    ten: Path, telling: Path, fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "free_memory", lambda device: 0)
    message = fails("layers", "--train", ten, "--dev", ten, "--label", "column:1", "--features", telling)
    assert "the layer states of 88 words need " in message
    assert "and 0 B are free: lower --most-words" in message


def test_classifiers_that_were_stopped_are_named(
    ten: Path, telling: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in (accuracies, classifier):
        monkeypatch.setattr(module, "MOST_ITERATIONS", 1)
    arguments = ["layers", "--train", ten, "--dev", ten, "--label", "column:1", "--features", telling]
    assert main(list(map(str, arguments))) == 0
    stopped = [f"column:1 by {name}" for name in ("layer 0", "layer 1", "all layers")]
    said = f"stopped after 1 iterations, before the optimum: {', '.join(stopped)}"
    assert said in capsys.readouterr().out.splitlines()


def test_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.conll"
    path.write_text(PARSED)
    arguments = ["layers", "--train", path, "--dev", path, "--label", "pos", "constituent", "--vectors", "random:1:40"]
    assert main(list(map(str, arguments))) == 0
    out = capsys.readouterr().out
    assert "constituent: 3 labels, 6 words of train, 6 of dev" in out
    assert "pos: 7 labels, 8 words of train, 8 of dev" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--label column:1", "there is nothing to read: give --model DIR or --features FILE.h5"),
        ("--label column:7 --vectors random:1:4", "ten.conll, line 1: there is no column 7 of labels"),
        ("--label pos --vectors random:1:4", "ten.conll, line 1: a word stands outside a document"),
        ("--label colum --vectors random:1:4", "--label colum is not possible: give pos, constituent"),
        ("--label column:1 --vectors random:1:4 --most-words 0", "--most-words 0 is not possible"),
        ("--label column:1 --vectors random:1:4 --l2 nan", "--l2 nan is not possible"),
        ("--label column:1 --vectors random:1:4 --memory-limit 1", "--memory-limit says how --model DIR is read"),
        ("--label column:1 --vectors random:1:4 --pooling mean", "--pooling says how --model DIR is read"),
        ("--label column:1 --vectors none.vec", "none.vec does not exist"),
        ("--label column:1 --features TEN", "is not a whole HDF5 file"),
        ("--label column:1 --features OTHER", 'the sentence "Ada Lovelace met Charles Babbage in London ." '),
        ("--label column:1 --vectors random:1:4 --results TEN.gz", "give a name without .gz"),
        ("--label column:1 --vectors random:1:4 --device cuda:99", "cuda:99 is not there"),
        ("--mix none", "none/probe.json does not exist"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    tmp_path: Path, ten: Path, fails: Callable[..., str], arguments: str, message: str
) -> None:
    write_random_features(tmp_path / "other.h5", [["a"]])
    names = {"TEN": str(ten), "OTHER": str(tmp_path / "other.h5"), "TEN.gz": f"{ten}.gz"}
    given = [names.get(argument, argument) for argument in arguments.split()]
    data = [] if "--mix" in given else ["--train", ten, "--dev", ten]
    assert message in fails("layers", *data, *given)


def test_a_model_of_subwords_is_read_as_it_is_told_to(tmp_path: Path, ten: Path, subword_model: Path) -> None:
    results = tmp_path / "layers.jsonl"
    arguments = ["layers", "--train", ten, "--dev", ten, "--label", "column:1", "--model", subword_model]
    for pooling in ([], ["--pooling", "mean"]):
        assert main([*map(str, arguments), *pooling, "--results", str(results)]) == 0
    first, mean = map(json.loads, results.read_text().splitlines())
    assert [each["features"]["pooling"] for each in (first, mean)] == ["first", "mean"]
    assert first["accuracies"]["layer 0"] != mean["accuracies"]["layer 0"]


def test_mixes_stand_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["layers", "--mix", "both.seed1", "--pooling", "mean"])
    assert "--mix PROBE… stands alone" in capsys.readouterr().err


def test_data_without_such_labels(tmp_path: Path, ten: Path, fails: Callable[..., str]) -> None:
    one = tmp_path / "one.conll"
    one.write_text("Ada\tXX\nmet\tXX\n")
    vectors = ["--vectors", "random:1:4"]
    message = fails("layers", "--train", one, "--dev", ten, "--label", "column:1", *vectors)
    assert "every word of --train has the label XX, as where the files do not annotate it" in message
    documents = tmp_path / "d.conll"
    documents.write_text(PARSED)
    many = ["--train", documents, "--dev", documents, "--label", "constituent:9"]
    assert "--label constituent:9: no word of --train has such a label" in fails("layers", *many, *vectors)
    names = tmp_path / "names.conll"
    names.write_text("".join(f"w\t{number}\n" for number in range(501)))
    message = fails("layers", "--train", names, "--dev", names, "--label", "column:1", *vectors)
    assert "--train has 501 labels, more than 500: choose another label" in message


def test_states_that_are_not_finite(tmp_path: Path, ten: Path, fails: Callable[..., str]) -> None:
    shape = FeatureShape(layers=1, width=2, dtype="float32", single=False)
    with write_features(tmp_path / "nan.h5", {"model": "m"}, shape=shape) as writer:
        for words in words_of():
            writer.add(Sentence(words), np.full(shape.of(len(words)), np.nan, dtype=np.float32))
    message = fails("layers", "--train", ten, "--dev", ten, "--label", "column:1", "--features", tmp_path / "nan.h5")
    assert (
        f"{ten}, line 1: the layer states of the sentence that begins here have numbers that are not finite" in message
    )


def test_mixes_of_probes(
    tmp_path: Path, ten: Path, features: Path, fails: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    probes = []
    for layers in ("all", "0,2", "top"):
        save = tmp_path / layers
        arguments = ["ner", "--train", ten, "--dev", ten, "--features", features, "--vectors", "random:1:4", *TINY]
        arguments += ["--save", save, "--state-layers", layers, "--mix-l2", "1", "--inputs", "vectors,both"]
        assert main(list(map(str, arguments))) == 0
        probes.append(str(save / "both.seed1"))
    capsys.readouterr()
    assert main(["layers", "--mix", *probes]) == 0
    _, _, header, _, *rows = capsys.readouterr().out.splitlines()
    assert header.split() == ["probe", "layer", "0", "layer", "1", "layer", "2", "layer", "top", "γ"]
    weights = [row.split()[1:] for row in rows]
    assert [weight[3] == "–" for weight in weights] == [True, True, False]
    assert sum(map(float, weights[0][:3])) == pytest.approx(1, abs=0.002)
    assert sum(map(float, weights[1][::2][:2])) == pytest.approx(1, abs=0.002)
    assert weights[1][1] == "–"
    assert weights[2][3] == "1.000"
    vectors = tmp_path / "all" / "vectors.seed1"
    assert f"{vectors} reads word vectors alone and mixes no layers" in fails("layers", "--mix", vectors)
    content = json.loads((tmp_path / "top" / "both.seed1" / "probe.json").read_text())
    content["record"]["settings"]["state_layers"] = "all,"
    (tmp_path / "top" / "both.seed1" / "probe.json").write_text(json.dumps(content))
    message = fails("layers", "--mix", probes[2])
    assert "does not fit its probe.json (--state-layers all, is not possible" in message
