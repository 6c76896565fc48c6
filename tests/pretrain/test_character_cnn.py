"""Imported ELMo: tables filled by its character CNN, training that goes on from it, and models that keep the CNN."""

import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from elmoc.__main__ import main as elmoc
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.character_cnn import CharacterCnnVectors
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.table import VectorTable
from tests.elmoc.interop.conftest import write_original
from tests.pretrain.conftest import TinyRuns
from tests.tiny import learnable_sentences, write_corpus

from data_scripts import build_vectors
from elmoc import ElmoC

# the settings of the imported encoder, and short training on its word vectors
ENCODER = {
    "encoder__projection_size": 5,
    "encoder__cell_size": 6,
    "encoder__cell_clip": 1.0,
    "encoder__projection_clip": 0.5,
    "encoder__layer_norm": False,
    "encoder__residual": False,
    "encoder__input_layer": "identity",
    "data__input_vectors": "cnn",
    "data__target_vectors": "cnn",
    "train__updates": 4,
    "evaluation__every_updates": 4,
}
WORDS = ["w1", "unseen", "Zürich"]


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """A model directory."""
    files = tmp_path / "options.json", tmp_path / "weights.hdf5"
    write_original(*files, char_cnn={"max_characters_per_token": 8})
    write_model_directory(tmp_path / "imported", read_original_elmo(*files))
    return tmp_path / "imported"


@pytest.fixture
def cnn_runs(tmp_path: Path, imported: Path) -> TinyRuns:
    """Runs on a corpus with a table that the imported character CNN has filled."""
    corpus = write_corpus(tmp_path / "corpus", [learnable_sentences(60, 0)], [learnable_sentences(30, 1)])
    assert fill(corpus.path, imported) == 0
    return TinyRuns(tmp_path, corpus.path)


def fill(corpus: Path, vectors: Path, *options: str) -> int:
    return build_vectors.main([str(corpus), str(vectors), "--name", "cnn", "--dtype", "float32", *options])


@pytest.mark.parametrize(("workers", "file"), [("1", ""), ("2", CharacterCnnVectors.file_name)])
def test_a_table_is_filled_from_a_model_or_its_file(tmp_path: Path, imported: Path, workers: str, file: str) -> None:
    corpus = write_corpus(tmp_path / "corpus", [learnable_sentences(60, 0)], [learnable_sentences(30, 1)])
    vectors = open_word_vectors(imported)
    assert fill(corpus.path, imported / file, "--workers", workers) == 0
    table = VectorTable(Corpus(corpus.path), "cnn")
    np.testing.assert_allclose(table.rows, vectors.lookup(corpus.lexicon), rtol=1e-6, atol=1e-6)
    assert table.source.fingerprint == vectors.fingerprint
    assert Path(table.source.origin) == imported / CharacterCnnVectors.file_name
    assert table.zero_rows == 0


def test_training_goes_on_and_its_models_keep_the_character_cnn(
    cnn_runs: TinyRuns, imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = cnn_runs.run("run", "--init-from", str(imported), **ENCODER)
    assert "they start anew" in capsys.readouterr().out
    before = ElmoC.from_pretrained(imported)
    cnn = (imported / CharacterCnnVectors.file_name).read_bytes()
    shutil.rmtree(imported)
    after = ElmoC.from_pretrained(run.path)
    assert (run.model / CharacterCnnVectors.file_name).read_bytes() == cnn
    ours, theirs = after.embed(WORDS), before.embed(WORDS)
    assert torch.equal(ours[0], theirs[0]), "the word vectors"
    assert 1e-4 < (ours[2] - theirs[2]).abs().max() < 0.5, "trained on, but not from the start"
    arguments = [str(cnn_runs.folder / name) for name in ("run", "o.json", "w.hdf5")]
    assert elmoc(["export-elmo", *arguments]) == 0
    write_model_directory(cnn_runs.folder / "again", read_original_elmo(*arguments[1:]))
    torch.testing.assert_close(ElmoC.from_pretrained(cnn_runs.folder / "again").embed(WORDS), ours)
    with h5py.File(cnn_runs.folder / "weights.hdf5") as first, h5py.File(arguments[2]) as second:
        assert np.array_equal(first["CNN_proj/W_proj"], second["CNN_proj/W_proj"])


def test_a_resumed_run_has_the_character_cnn_of_its_own_model(
    cnn_runs: TinyRuns, imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = ENCODER | {"evaluation__every_updates": 2, "log__checkpoint_updates": 2, "log__keep": 9}
    run = cnn_runs.run("run", "--init-from", str(imported), **settings)
    record = (run.model / "config.json").read_text()
    shutil.rmtree(imported)
    last = run.checkpoint_paths()[-1]
    last.unlink()
    cnn_runs.run("run", "--resume", **settings)
    assert last.exists()
    assert "warning" not in capsys.readouterr().err
    assert (run.model / "config.json").read_text() == record


def test_a_character_cnn_that_is_gone_is_a_warning(
    cnn_runs: TinyRuns, imported: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = imported.rename(imported.with_name("elsewhere"))
    run = cnn_runs.run("run", **ENCODER)
    assert "warning" in capsys.readouterr().err
    with pytest.raises(InputError, match=str(run.model)):
        ElmoC.from_pretrained(run.path)
    assert ElmoC.from_pretrained(run.path, vectors=str(elsewhere)).embed(WORDS).isfinite().all()
    # found by way of the model that training goes on from
    moved = cnn_runs.run("moved", "--init-from", str(elsewhere), **ENCODER)
    assert "warning" not in capsys.readouterr().err
    assert ElmoC.from_pretrained(moved.path).embed(WORDS).isfinite().all()
