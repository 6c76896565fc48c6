"""Suite files: what they say is merged and checked before anything is run."""

from collections.abc import Callable
from pathlib import Path

import pytest
from downstream.suite.plan import SuitePlan, read_suite
from elmoc.errors import InputError

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
options = { epochs = 2, train_fraction = 0.25 }
vectors = { patience = 1 }
[[probe]]
task = "snli"
name = "SNLI"
train = "/data/train.jsonl"
dev = "dev.jsonl"
test = "test.jsonl"
preset = "published"
"""
Read = Callable[..., SuitePlan]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def write_and_read(text: str, *, data: Path | None = None, quick: bool = False) -> SuitePlan:
        path = tmp_path / "suite.toml"
        path.write_text(text, encoding="utf-8")
        return read_suite(path, data=data, quick=quick)

    return write_and_read


def test_defaults_options_and_those_of_a_kind_of_inputs(read: Read, tmp_path: Path) -> None:
    plan = read(FULL)
    ner, snli = plan.probes
    assert plan.vectors == [str(tmp_path / "vectors.bin")]
    assert ner.files == {"train": [tmp_path / "a.conll", tmp_path / "b.conll"], "dev": [tmp_path / "dev.conll"]}
    assert list(snli.files) == ["train", "dev", "test"]
    assert snli.files["train"] == [Path("/data/train.jsonl")]
    assert ner.seeds == {"vectors": 5, "features": 4, "both": 4}
    assert snli.seeds == {"vectors": 4, "features": 4, "both": 4}
    vectors, both = ner.settings["vectors"], ner.settings["both"]
    assert (vectors.epochs, vectors.learning_rate, vars(vectors)["dropout"]) == (9, 0.001, 0.5)
    assert (both.epochs, both.learning_rate, vars(both)["dropout"]) == (9, 1.0, 0.25)
    assert vars(ner.reader) == {"column": 1, "word_column": -1, "tag_names": ""}
    assert ner.file_name == "ner-WNUT-17-dev"
    assert snli.settings["both"] == snli.task.published


def test_the_quick_suite_has_the_probes_with_a_quick_table(read: Read) -> None:
    (probe,) = read(FULL, quick=True).probes
    assert probe.seeds == {"vectors": 5, "features": 1, "both": 1}
    vectors, both = probe.settings["vectors"], probe.settings["both"]
    assert (vectors.epochs, vectors.patience, vectors.train_fraction) == (2, 1, 0.25)
    assert (both.epochs, both.patience, both.train_fraction) == (2, 5, 0.25)
    assert vars(vectors)["dropout"] == 0.5, "options of one kind of inputs go before those of all"


def test_probes_are_compared_by_what_they_are_trained_with(read: Read) -> None:
    probe, _ = read(FULL).probes
    assert read(FULL.replace("WNUT 17/dev", "tweets")).probes[0].identity == probe.identity
    assert read(FULL.replace("epochs = 9", 'epochs = 9, state_layers = "top"')).probes[0].identity == probe.identity
    for other in ("epochs = 8", "epochs = 9, decay = 0.5"):
        assert read(FULL.replace("epochs = 9", other)).probes[0].identity != probe.identity
    assert read(FULL.replace("{ dropout = 0.5 }", "{ dropout = 0.25 }")).probes[0].identity != probe.identity


def test_the_suite_of_the_project_is_whole() -> None:
    path = Path(__file__).parents[3] / "downstream/suite/english.toml"
    assert len(read_suite(path).probes) == 8
    assert [probe.name for probe in read_suite(path, quick=True).probes] == [
        "SNLI, 20k pairs",
        "SST-5",
        "WNUT-17",
        "PropBank EWT",
        "OntoGUM",
    ]


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("seeds = 4", "sedes = 4", "sedes"),
        ('task = "ner"', 'task = "pos"', "task"),
        ('dev = "dev.conll"', "", "probe[0].dev is missing"),
        ("epochs = 9", "epoch = 9", "epoch"),
        ("{ dropout = 0.5 }", "{ dropout = 1.5 }", "dropout"),
        ("{ dropout = 0.5 }", "{ column = 2 }", "column"),
        ("{ dropout = 0.5 }", "{ train_fraction = 0.5 }", "vectors.train_fraction"),
        ('task = "snli"\nname = "SNLI"', 'task = "ner"\nname = "wnut 17 dev"', "name"),
    ],
)
def test_what_cannot_be_is_named(read: Read, tmp_path: Path, old: str, new: str, key: str) -> None:
    with pytest.raises(InputError) as error:
        read(FULL.replace(old, new, 1))
    assert str(error.value).startswith(str(tmp_path / "suite.toml"))
    assert key in str(error.value)
