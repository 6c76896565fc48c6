"""The command `layers`: it finds what is in a layer, in that layer, by the logistic regression that it says it is."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from downstream.__main__ import main
from downstream.layers import classify, read_words
from elmoc.features.layouts.allennlp import AllennlpWriter
from scipy.optimize import minimize
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from tests.downstream.conftest import TEN_SENTENCES, columns
from tests.downstream.readers.test_columns import TREES
from tests.downstream.readers.test_conll2012 import TWO_PARTS

from downstream import layers
from elmoc.features.layouts import Entry, FeatureShape

Fails = Callable[..., str]


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
            writer.add(Entry(len(pairs), " ".join(word for word, _ in pairs)), states)
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
    names = ["most frequent label", "vectors", "layer 0", "layer 1", "all layers"]
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
    assert list(found)[1:] == ["layer 2", "layer 1", "all layers"]
    assert float(found["layer 2"][1]) < float(found["layer 1"][1])


def test_a_part_of_the_words_is_of_whole_sentences_and_the_same_every_time(ten: Path) -> None:
    first, second, one = (read_words([ten], ["column:1"], most_words=most) for most in (20, 20, 1))
    assert first.sentences == second.sentences
    assert 10 < len(first.labels["column:1"]) <= 20
    assert len(one.sentences) == 1


def plain_accuracy(x: np.ndarray, labels: np.ndarray, test: np.ndarray, test_labels: np.ndarray, l2: float) -> float:
    """By the loss as it is written, and its gradient, in float64."""
    inputs, others = (((one - x.mean(axis=0)) / x.std(axis=0)).astype(np.float64) for one in (x, test))
    names = sorted(set(labels.tolist()))
    gold = np.array(names)[:, None] == labels  # [K, N]
    shape = len(names), x.shape[1] + 1

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weight, bias = parameters.reshape(shape)[:, 1:], parameters.reshape(shape)[:, :1]
        logs = log_softmax(weight @ inputs.T + bias, axis=0)  # [K, N]
        error = np.exp(logs) - gold
        gradient = np.concatenate([error.sum(axis=1, keepdims=True), error @ inputs + l2 * weight], axis=1)
        return -logs[gold].sum() + l2 / 2 * (weight**2).sum(), gradient.ravel()

    best = minimize(loss, np.zeros(shape).ravel(), jac=True, method="BFGS").x.reshape(shape)
    predicted = (best[:, 1:] @ others.T + best[:, :1]).argmax(axis=0)
    return 100 * float(np.mean(np.array(names)[predicted] == test_labels))


def test_a_classifier_is_the_logistic_regression_that_it_says_it_is() -> None:
    generator = np.random.default_rng(0)
    true = generator.standard_normal((6, 4))
    x, test = (generator.standard_normal((rows, 6)).astype(np.float32) * 3 + 1 for rows in (400, 2_000))
    labels, others = (
        np.array(list("abcd"))[(one @ true + 2 * generator.gumbel(size=(len(one), 4))).argmax(axis=1)]
        for one in (x, test)
    )
    for l2 in (0.01, 30.0):
        expected = plain_accuracy(x, labels, test, others, l2)
        accuracy = classify(x.copy(), labels, test=test.copy(), test_labels=others, l2=l2)
        assert accuracy == pytest.approx(expected, abs=0.3)


def test_scale_constants_and_labels_never_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([[1e-9, 5], [-1e-9, 5], [2e-9, 5], [-2e-9, 5]], dtype=np.float32)
    labels = np.array(["a", "b", "a", "b"])
    assert classify(x.copy(), labels, test=x.copy(), test_labels=np.array(["a", "b", "c", "b"])) == 75
    monkeypatch.setattr(layers, "MOST_ITERATIONS", 1)
    with pytest.warns(ConvergenceWarning):
        classify(x.copy(), labels, test=x.copy(), test_labels=labels, l2=1e-6)


def labels(path: Path, *kinds: str) -> list[list[str | None]]:
    split = read_words([path], kinds, most_words=1_000)
    return [split.labels[kind] for kind in kinds]


def test_labels_of_documents_and_of_columns(tmp_path: Path, ten: Path) -> None:
    path = tmp_path / "d.conll"
    path.write_text(TWO_PARTS)
    assert labels(path, "pos") == [["DT", "NNS", "VBD", "RP", "VBG", ".", "UH", "UH"]]
    assert read_words([path], ["pos"], most_words=9).sentences[1].words == ("Yes",)
    assert labels(ten, "column:1", "column:-1")[0][-3:] == ["O", "B-LOC", "O"]


def test_labels_of_dependency_trees(tmp_path: Path) -> None:
    path = tmp_path / "d.conllu"
    path.write_text(TREES)
    assert labels(path, "deprel", "upos", "xpos") == [
        ["nsubj", "root", "case", "obl", "punct", "root"],
        ["PRON", "VERB", "ADP", "PROPN", "PUNCT", "INTJ"],
        [None] * 4 + [":", None],
    ]


@pytest.mark.parametrize(
    ("kind", "text", "place"),
    [
        ("tense", "", "--label tense"),
        ("column:2", "Ada\tO\n", "line 1"),
        ("pos", "Ada\tO\n", "line 1"),
    ],
)
def test_labels_that_cannot_be_read(tmp_path: Path, fails: Fails, kind: str, text: str, place: str) -> None:
    path = tmp_path / "d.conll"
    path.write_text(text)
    assert place in fails("layers", "--train", path, "--dev", path, "--vectors", "random:1:4", "--label", kind)
