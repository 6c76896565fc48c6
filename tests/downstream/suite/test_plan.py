"""Suite files: what they say is merged and checked before anything is run."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from downstream.__main__ import TASKS
from downstream.suite.data import ProbeData, suite_identity
from downstream.suite.plan import Suite, read_suite
from elmoc.errors import InputError

LOADERS = {name: partial(lambda each: import_module(f"downstream.tasks.{each}.task").TASK, name) for name in TASKS}
FULL = """
vectors = "vectors.bin"
seeds = 4
[[probe]]
task = "ner"
name = "WNUT 17/dev"
train = ["a.conll", "b.conll"]
dev = "dev.conll"
options = { epochs = 9, column = 1, dropout = 0.25 }
vectors = { dropout = 0.5 }
both = { learning_rate = 1 }
baseline_seeds = 5
[probe.quick]
seeds = 1
train_fraction = 0.25
options = { epochs = 2 }
vectors = { patience = 1 }
[[probe]]
task = "snli"
name = "SNLI"
train = "/data/train.jsonl"
dev = "dev.jsonl"
test = "test.jsonl"
preset = "published"
"""
Read = Callable[..., Suite]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def write_and_read(text: str, *, data: Path | None = None, quick: bool = False) -> Suite:
        path = tmp_path / "suite.toml"
        path.write_text(text, encoding="utf-8")
        return read_suite(path, LOADERS, data=data, quick=quick)

    return write_and_read


def test_defaults_options_and_those_of_a_kind_of_inputs(read: Read, tmp_path: Path) -> None:
    suite = read(FULL)
    ner, snli = suite.probes
    assert suite.vectors == [str(tmp_path / "vectors.bin")]
    assert ner.files == {"train": [tmp_path / "a.conll", tmp_path / "b.conll"], "dev": [tmp_path / "dev.conll"]}
    assert list(snli.files) == ["train", "dev", "test"]
    assert snli.files["train"] == [Path("/data/train.jsonl")]
    assert ner.seeds == {"vectors": 5, "features": 4, "both": 4}
    assert snli.seeds == {"vectors": 4, "features": 4, "both": 4}
    vectors, both = ner.settings("vectors"), ner.settings("both")
    assert (vectors.epochs, vectors.learning_rate, vars(vectors)["dropout"]) == (9, 0.001, 0.5)
    assert (both.epochs, both.learning_rate, vars(both)["dropout"]) == (9, 1.0, 0.25)
    assert vars(ner.reader) == {"column": 1}
    assert ner.file_name == "ner-WNUT-17-dev"
    assert snli.settings("both") == snli.task.published


def test_the_quick_suite_has_the_probes_with_a_quick_table(read: Read) -> None:
    (probe,) = read(FULL, quick=True).probes
    assert probe.seeds == {"vectors": 5, "features": 1, "both": 1}
    vectors, both = probe.settings("vectors"), probe.settings("both")
    assert (vectors.epochs, vectors.patience, vectors.train_fraction) == (2, 1, 0.25)
    assert (both.epochs, both.patience, both.train_fraction) == (2, 5, 0.25)
    assert vars(vectors)["dropout"] == 0.5, "options of one kind of inputs go before those of all"


def test_probes_are_compared_by_what_they_are_trained_with(read: Read) -> None:
    (probe,) = read(FULL, quick=True).probes
    other = replace(probe.task, small=replace(probe.task.small, decay=0.5))
    assert replace(probe, task=other).identity != probe.identity, "the preset of another release"
    given = {inputs: {**options, "decay": 0.5} for inputs, options in probe.options.items()}
    assert replace(probe, options=given).identity == replace(probe, task=other).identity
    for inputs, options in probe.options.items():
        changed = {**probe.options, inputs: {**options, "patience": 3}}
        assert replace(probe, options=changed).identity != probe.identity
    layers = {inputs: {**options, "state_layers": "top"} for inputs, options in probe.options.items()}
    assert replace(probe, options=layers).identity == probe.identity, "that is the encoder's"
    kept = suite_identity([probe], {probe.file_name: ProbeData({}, 0, {})}, "v1")
    changed_preset = replace(probe, task=other)
    assert suite_identity([changed_preset], {probe.file_name: ProbeData({}, 0, {})}, "v1") != kept


def test_data_is_where_it_is_said_to_be(read: Read) -> None:
    ner, snli = read(FULL, data=Path("/corpora")).probes
    assert ner.files["dev"] == [Path("/corpora/dev.conll")]
    assert snli.files["train"] == [Path("/data/train.jsonl")]


def test_the_suite_of_the_project_is_whole() -> None:
    path = Path(__file__).parents[3] / "downstream/suite/english.toml"
    suite, quick = read_suite(path, LOADERS), read_suite(path, LOADERS, quick=True)
    assert len(suite.probes) == 8
    assert [probe.name for probe in quick.probes] == ["SNLI, 20k pairs", "SST-5", "WNUT-17", "PropBank EWT", "OntoGUM"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds = 4", "sedes = 4", "unknown key sedes (known: probe, vectors, seeds, baseline_seeds)"),
        ("seeds = 4", "seeds = 0", "seeds: expected `int` >= 1"),
        ('task = "ner"', 'task = "pos"', "probe[0].task must be one of snli, ner, sst5, srl, coref, not 'pos'"),
        ('train = ["a.conll", "b.conll"]', "train = []", "probe[0].train: expected `array` of length >= 1"),
        ('dev = "dev.conll"', "", "the field probe[0].dev is missing"),
        ("epochs = 9", "epoch = 9", "probe[0].options.epoch is no option of the task ner (known: "),
        ("epochs = 9", 'epochs = "9"', "probe[0].options.epochs must be of type int, not '9'"),
        ("epochs = 9", 'state_layers = "2,0"', "probe[0].options.state_layers: --state-layers 2,0 is not possible"),
        ("epochs = 9", "epochs = 0", "probe[0].options.epochs must be at least 1 and at most 1000000, not 0"),
        ("{ dropout = 0.5 }", "{ dropout = 1.5 }", "probe[0].vectors.dropout must be at least 0 and below 1, not 1.5"),
        ("{ dropout = 0.5 }", "{ column = 2 }", "probe[0].vectors.column is no option of the task ner"),
        ("{ dropout = 0.5 }", "{ train_fraction = 0.5 }", "probe[0].vectors.train_fraction is no option of the task"),
        ("train_fraction = 0.25", "train_fraction = 2.0", "probe[0].quick.options.train_fraction must be above 0 and"),
        ("patience = 1", "patients = 1", "probe[0].quick.vectors.patients is no option of the task ner"),
        ('name = "SNLI"', 'name = "SNLI"\nquick = 1', "probe[1].quick must be of type object or null, not 1"),
        ('task = "snli"\nname = "SNLI"', 'task = "ner"\nname = "wnut 17 dev"', "two probes of the task ner are named"),
        ("[[probe]]", "[probe]", "is not valid TOML"),
    ],
)
def test_what_is_not_possible_is_named(read: Read, old: str, new: str, message: str) -> None:
    assert old in FULL
    with pytest.raises(InputError) as error:
        read(FULL.replace(old, new, 1))
    assert message in str(error.value)
    assert "suite.toml" in str(error.value)


def test_a_suite_without_probes_of_that_kind(read: Read) -> None:
    with pytest.raises(InputError, match="has no quick suite: give a probe a"):
        read(
            FULL.replace("[probe.quick]", "[probe.both]")
            .replace("seeds = 1\ntrain_fraction = 0.25\n", "")
            .split("both = {")[0]
            + '[[probe]]\ntask = "snli"\nname = "SNLI"\ntrain = "a"\ndev = "b"\n',
            quick=True,
        )
    with pytest.raises(InputError, match="probe"):
        read("seeds = 1")
