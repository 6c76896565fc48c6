"""Going on from another model: what is taken from it, what starts anew, and models that do not fit."""

from pathlib import Path

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.joined import JoinedVectors
from elmoc.word_vectors.opening import open_joined, open_word_vectors
from elmoc.word_vectors.sources import RandomVectors, VectorSource
from elmoc.word_vectors.stored import LexiconVectors
from elmoc.word_vectors.table import VectorTable
from pretrain.init_from import read_stored_vectors
from pretrain.run.directory import RunDirectory
from tests.conftest import Fails
from tests.pretrain.conftest import TinyRuns, assert_same
from tests.tiny import add_table

from elmoc import ElmoC


def first_checkpoint(run: RunDirectory) -> dict:
    path = run.checkpoints / f"{0:09d}.pt"
    assert path in run.checkpoint_paths()
    return torch.load(path)


def test_a_run_keeps_its_own_copy_of_word_vectors_that_were_moved(tmp_path: Path) -> None:
    """A model has them by another name than the user."""
    stored = LexiconVectors(torch.rand(3, 4), ["a", "b", "c"])
    stored.write(tmp_path / "codes.safetensors")
    source = VectorSource.of(open_word_vectors(tmp_path / "codes.safetensors"), "none")
    (tmp_path / "codes.safetensors").rename(tmp_path / stored.file_name)
    kept = read_stored_vectors(source, tmp_path, None)
    assert kept is not None
    assert kept.fingerprint == source.fingerprint


def test_the_training_record_has_the_recipe_and_what_was_before(runs: TinyRuns) -> None:
    first = runs.run("first", train__updates=1, card__licence="CC0", card__name="")
    second = runs.run("second", "--init-from", str(first.path), train__updates=1, card__name="Ada's")
    before, after = (read_model_directory(run.path).training for run in (first, second))
    assert before["licence"] == "CC0"
    assert "name" not in before
    assert before["recipe"]["encoder.cell_size"] == 12
    assert "train.device" not in before["recipe"]
    assert after["started_from"] == before
    assert after["name"] == "Ada's"
    assert "Ada's" in (second.model / "README.md").read_text()


def test_init_from_takes_one_direction_of_two(runs: TinyRuns, error_line: Fails) -> None:
    model = read_model_directory(runs.run("first").path)
    init = ("--init-from", str(runs.folder / "first"))
    run = runs.run("second", *init, train__directions=["backward"], train__updates=1)
    start = first_checkpoint(run)
    for kind, weights in (("encoder", model.encoder.weights()), ("heads", model.output_layer.weights)):
        own = {name: value for name, value in weights.items() if name.startswith("backward")}
        assert_same(dict(start[kind]), own)
    status = runs.status("third", "--init-from", str(run.path))
    assert "it lacks the forward direction" in error_line(status)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoder__cell_size": 10}, "cell_size"),
        ({"data__input_vectors": "other"}, "word_vector_size"),
        ({"data__input_vectors": "swapped"}, "the table swapped"),
    ],
    ids=["sizes", "width", "vectors"],
)
def test_init_from_a_model_that_does_not_fit(
    runs: TinyRuns, error_line: Fails, settings: dict[str, object], message: str
) -> None:
    runs.run("first", train__updates=1)
    status = runs.status("second", "--init-from", str(runs.folder / "first"), **settings)
    assert message in error_line(status)
    assert not (runs.folder / "second").exists()


def test_a_model_goes_on_with_more_word_vectors_beside_its_own(runs: TinyRuns, tmp_path: Path) -> None:
    first = runs.run("first", train__updates=1)
    corpus = Corpus(runs.corpus)
    parts = [open_word_vectors(VectorTable(corpus, "raw").source.origin), RandomVectors(seed=5, size=3)]
    JoinedVectors(parts, [0.5, 2.0]).write_record(tmp_path / "both.json")
    add_table(corpus, "both", open_joined(str(tmp_path / "both.json")))
    second = runs.run("second", "--init-from", str(first.path), data__input_vectors="both", train__updates=1)
    before, after = read_model_directory(first.path).encoder.weights(), first_checkpoint(second)["encoder"]
    words = corpus.lexicon[:9]
    for name, weight in before.items():
        if name.endswith("input_projection.weight"):
            alone = parts[0].lookup(words) @ weight.numpy().T
            both = open_joined(str(tmp_path / "both.json")).lookup(words) @ after[name].numpy().T
            np.testing.assert_allclose(both, alone, rtol=1e-5, atol=1e-6)
        else:
            assert torch.equal(after[name], weight), name
    assert ElmoC.from_pretrained(second.path).embed(words).shape[1] == 9
