"""`build_vectors --like MODEL`: a new corpus's vectors are transformed as the model's were."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data_scripts.build_vectors import main
from elmoc.corpus import Corpus
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.table import VectorTable
from elmoc.word_vectors.transform import VectorTransform
from tests.tiny import tiny_model


def model_with_transform(path: Path) -> VectorTransform:
    """A model directory that reads `random:3:6`, processed by a transform that no corpus would give."""
    model = tiny_model()
    generator = np.random.default_rng(2)
    model.transform = VectorTransform(
        boundary=generator.standard_normal((2, 6), dtype=np.float32),
        mean=generator.standard_normal(6, dtype=np.float32),
        matrix=generator.standard_normal((6, 6), dtype=np.float32),
    )
    model.word_vectors = type(model.word_vectors)("random:3:6", "random:3:6", 6, "whiten")
    write_model_directory(path, model)
    return model.transform


def test_the_models_transform_is_used(small_corpus: Corpus, tmp_path: Path) -> None:
    transform = model_with_transform(tmp_path / "model")
    command = [str(small_corpus.path), "random:3:6", "--name", "input", "--dtype", "float32"]
    assert main([*command, "--like", str(tmp_path / "model")]) == 0
    table = VectorTable(small_corpus, "input")
    assert table.transform.same_as(transform)
    assert table.source.post_processing == "whiten"
    expected = transform.lookup(small_corpus.lexicon, RandomVectors(seed=3, size=6))
    np.testing.assert_allclose(table.rows, expected, rtol=1e-5, atol=1e-5)


def test_other_vectors_or_two_transforms_are_refused(
    small_corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line
) -> None:
    model_with_transform(tmp_path / "model")
    monkeypatch.setattr(RandomVectors, "lookup", None)  # before anything is looked up
    like = ["--name", "input", "--like", str(tmp_path / "model")]
    assert "are not the word vectors of this model" in error_line(main([str(small_corpus.path), "random:4:6", *like]))
    both = main([str(small_corpus.path), "random:3:6", *like, "--post-process", "centre"])
    assert "give one of them" in error_line(both)
    assert not list((small_corpus.path / "vectors").glob("*.json"))


def test_the_targets_transform_is_used(small_corpus: Corpus, tmp_path: Path, error_line) -> None:
    transform = model_with_transform(tmp_path / "of_inputs")
    model = tiny_model()
    config = model.output_layer.config | {"post_processing": "whiten"}
    model.output_layer = replace(model.output_layer, config=config, transform=transform)
    write_model_directory(tmp_path / "model", model)
    command = [str(small_corpus.path), "random:3:6", "--name", "target", "--like-targets", str(tmp_path / "model")]
    assert main(command) == 0
    table = VectorTable(small_corpus, "target")
    assert table.transform.same_as(transform)
    assert table.source.post_processing == "whiten"
    other = [*command[:1], "random:4:6", *command[2:], "--replace"]
    assert "are not the word vectors of this model" in error_line(main(other))
    assert "give one of them" in error_line(main([*command, "--like", str(tmp_path / "model")]))


def test_a_model_that_does_not_say_how_its_targets_were_processed(
    small_corpus: Corpus, tmp_path: Path, error_line
) -> None:
    write_model_directory(tmp_path / "model", tiny_model())
    command = [str(small_corpus.path), "random:3:6", "--name", "target", "--like-targets", str(tmp_path / "model")]
    assert "does not say how its target vectors were processed" in error_line(main(command))
