"""What holds for every task: ten examples are learned, a seed gives the same numbers, dropout is for training."""

import json
import re
from collections.abc import Callable
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from downstream.__main__ import main
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import InputSources, WordTable
from elmoc.errors import InputError
from tests.downstream.conftest import columns, write_random_features
from tests.downstream.tasks.coref.test_task import ten_documents
from tests.downstream.tasks.imdb.test_task import json_lines as json_lines_of_reviews
from tests.downstream.tasks.snli.test_task import TEN_PAIRS, json_lines
from tests.downstream.tasks.srl.test_task import document
from tests.downstream.tasks.sst5.test_task import TEN_TREES
from torch import Tensor

from downstream.tasks import TASKS

DATA = {
    "ner": columns(),
    "snli": json_lines(TEN_PAIRS),
    "sst5": TEN_TREES,
    "imdb": json_lines_of_reviews(),
    "srl": document(),
    "coref": ten_documents(),
}
# Options of small and quick probes, and the score that each has to reach on the ten examples it was trained on.
TINY = {
    "ner": "--hidden-size 24 --layers 1 --dropout 0 --learning-rate 0.02 --batch-size 4 --epochs 18",
    "snli": "--hidden-size 24 --dropout 0 --learning-rate 0.01 --batch-size 5 --epochs 20 --patience 8 "
    "--no-halve-on-plateau",
    "sst5": "--subtrees none --feedforward-size 16 --hidden-size 16 --first-output-size 16 --second-output-size 16 "
    "--embedding-dropout 0 --feedforward-dropout 0 --integrator-dropout 0 --first-output-dropout 0 "
    "--second-output-dropout 0 --pool-size 2 --learning-rate 0.02 --batch-size 10 --epochs 20 --patience 20",
    "imdb": "--hidden-size 16 --learning-rate 0.02 --batch-size 5 --epochs 20",
    "srl": "--hidden-size 24 --layers 2 --dropout 0 --recurrent-dropout 0 --flag-size 8 --optimiser adam "
    "--learning-rate 0.02 --batch-size 4 --epochs 30",
    "coref": "--hidden-size 16 --layers 1 --feed-forward-size 24 --feature-size 6 --span-width 2 --lexical-dropout 0 "
    "--lstm-dropout 0 --dropout 0 --learning-rate 0.01 --epochs 6 --span-ratio 2",
}
LEAST = {"ner": 100, "snli": 90, "sst5": 100, "imdb": 100, "srl": 95, "coref": 90}


@pytest.fixture(params=TASKS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def data(tmp_path: Path, name: str) -> Path:
    """A file of ten examples."""
    (tmp_path / "data").write_text(DATA[name], encoding="utf-8")
    return tmp_path / "data"


def test_ten_examples_are_learned_from_every_kind_of_inputs_and_twice_alike(
    tmp_path: Path, name: str, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sentences", name, str(data)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(set(lines))
    size = 50 if name == "snli" else 12
    write_random_features(tmp_path / "f.h5", [line.split() for line in lines], width=size)
    runs = []
    for folder, kinds in (("a", "vectors,both,features"), ("b", "both")):
        inputs = ["--features", tmp_path / "f.h5", "--vectors", f"random:1:{size}"]
        arguments = [name, "--train", data, "--dev", data, *inputs, "--save", tmp_path / "saved"]
        arguments += ["--inputs", kinds, "--seeds", "1", "--results", tmp_path / f"{folder}.jsonl"]
        arguments += ["--predictions", tmp_path / folder, *TINY[name].split()]
        assert main(list(map(str, arguments))) == 0
        records = [json.loads(line) for line in (tmp_path / f"{folder}.jsonl").read_text().splitlines()]
        assert min(record["mean"] for record in records) >= LEAST[name]
        (both,) = (record for record in records if record["inputs"] == "both")
        predictions = {path.name: path.read_bytes() for path in (tmp_path / folder).glob("*.both.*")}
        runs.append(([epoch["loss"] for epoch in both["curves"][0]], both["counts"], predictions))
    assert runs[0] == runs[1]
    assert runs[0][2]
    score = [
        name,
        "--evaluate-only",
        tmp_path / "saved/both.seed1",
        "--test",
        data,
        "--results",
        tmp_path / "saved.jsonl",
    ]
    assert main(list(map(str, [*score, *inputs]))) == 0
    assert json.loads((tmp_path / "saved.jsonl").read_text())["counts"] == both["counts"]


def test_the_contract_of_a_task(name: str, data: Path, tmp_path: Path) -> None:
    """What is read is predicted, counted, scored and written, whatever the task."""
    task: Any = import_module(f"downstream.tasks.{name}.task").TASK
    training = task.training_examples(task.read(data, task.reader, training=True), task.reader)
    examples = task.read(data, task.reader, training=False)
    sentences = [sentence for example in training for sentence in task.sentences(example)]
    assert {(each.file, each.line > 0) for each in sentences} == {(str(data), True)}
    assert all(word and not set(word) & set(" \t\n") for each in sentences for word in each.words)
    vocabulary = task.vocabulary(training)
    assert json.loads(json.dumps(vocabulary)) == vocabulary

    inputs = ProbeInputs(InputSources(words=WordTable("random:1:6", sentences=sentences), states=None))
    probe = task.model(inputs=inputs, settings=task.small, **vocabulary).eval()
    with torch.no_grad():
        predictions = probe.predict(examples)
    counts = np.stack([task.count(*pair) for pair in zip(examples, predictions, strict=True)])
    assert counts.dtype == np.float64
    metrics = task.metrics(counts.sum(axis=0))
    assert task.metric in metrics
    assert all(0 <= float(value) <= 100 for value in metrics.values())
    resamples = task.metrics(np.stack([counts.sum(axis=0), 2 * counts.sum(axis=0)]))
    for metric, values in resamples.items():
        assert values == pytest.approx([float(metrics[metric])] * 2), "of any leading axes, and of any multiple"

    path = tmp_path / f"predictions{task.suffix}"
    task.write_predictions(path, examples, predictions)
    pairs = zip(examples, predictions, strict=True)
    assert path.read_text(encoding="utf-8") == "".join(task.format_prediction(*pair) for pair in pairs)


@pytest.mark.parametrize("content", ["", "\n \n", "\x00 \x7f\n", "[[[[\n"])
def test_what_is_no_data_is_told_with_its_file(name: str, tmp_path: Path, content: str) -> None:
    task: Any = import_module(f"downstream.tasks.{name}.task").TASK
    path = tmp_path / "odd"
    path.write_text(content)
    with pytest.raises(InputError, match=re.escape(str(path))):
        task.read(path, task.reader, training=True)


def test_weights_that_are_too_large_give_no_score(name: str, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if name in ("ner", "imdb"):
        pytest.skip("the scores of its LSTM stay finite: see the test of ner")
    arguments = [name, "--train", str(data), "--dev", str(data), "--vectors", "random:1:4", "--seeds", "1"]
    arguments += [*TINY[name].split(), "--epochs", "1", "--batch-size", "100", "--learning-rate", "1e23"]
    assert main(arguments) == 1
    assert "--learning-rate" in capsys.readouterr().err


def leave_one_dropout(model: torch.nn.Module, name: str, share: float = 0.5) -> None:
    """Put a model in training with all dropouts off but that of one module, by its name in the model.

    A module is a dropout, or has a number `dropout`, as LSTMs do.
    """
    model.train()
    found = []
    for own, module in model.named_modules():
        attribute = "p" if isinstance(module, torch.nn.Dropout) else "dropout"
        if isinstance(getattr(module, attribute, None), float):
            setattr(module, attribute, share if own == name else 0.0)
            found.append(own)
    assert name in found, f"{name} is none of the dropouts {found}"


def differ(compute: Callable[[], Tensor]) -> bool:
    """Whether a computation gives something else the second time."""
    with torch.no_grad():
        return not torch.equal(compute(), compute())


def test_each_dropout_acts_in_training_alone(name: str, data: Path) -> None:
    task: Any = import_module(f"downstream.tasks.{name}.task").TASK
    sizes = [each.name for each in fields(task.published) if "size" in each.name]
    small = {each: min(4, getattr(task.published, each)) for each in sizes}
    settings = replace(task.published, **small)
    examples = task.read(data, task.reader, training=True)
    sentences = [sentence for example in examples for sentence in task.sentences(example)]
    torch.manual_seed(1)
    inputs = ProbeInputs(InputSources(words=WordTable("random:1:6", sentences=sentences), states=None))
    probe = task.model(inputs=inputs, settings=settings, **task.vocabulary(examples))
    chances = {each: getattr(module, "p", getattr(module, "dropout", 0.0)) for each, module in probe.named_modules()}
    dropouts = [each for each, chance in chances.items() if isinstance(chance, float) and chance > 0]
    published = [getattr(task.published, each.name) for each in fields(task.published) if "dropout" in each.name]
    assert {chances[each] for each in dropouts} == {chance for chance in published if chance}
    for each in dropouts:
        leave_one_dropout(probe, each)
        assert differ(lambda: probe.loss(examples)), each
    probe.eval()
    assert not differ(lambda: probe.loss(examples))
