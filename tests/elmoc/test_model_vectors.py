"""Word vectors of model directories: found where they are, bundled where asked, and kept."""

import shutil
from pathlib import Path

import pytest
import torch
from elmoc.errors import InputError
from elmoc.model import ElmoC
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.word_vectors.sources import TextVectors
from tests.tiny import edit_json, tiny_model


def vec_model(folder: Path, name: str = "words.vec") -> Path:
    """A model that reads a text file of vectors, which is beside the model directory."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("2 3\ncat 1 0 2\nsat 0.5 1 0\n")
    write_model_directory(folder / "model", tiny_model(vectors=TextVectors(folder / name)))
    return folder / "model"


def test_other_word_vectors_are_refused(tmp_path: Path) -> None:
    model = vec_model(tmp_path)
    (tmp_path / "other.vec").write_text("2 3\ncat 1 0 2\nsat 0.5 1 1\n")
    (tmp_path / "wide.vec").write_text("2 4\ncat 1 0 2 3\nsat 0.5 1 1 4\n")
    for name in ("other.vec", "wide.vec", "none.vec"):
        with pytest.raises(InputError, match=name):
            ElmoC.from_pretrained(model, vectors=str(tmp_path / name))
    edit_json(model / "config.json", lambda config: config["word_vectors"].update(origin="random:2:-1"))
    with pytest.raises(InputError, match="random:2:-1"):
        ElmoC.from_pretrained(model)


def test_word_vectors_go_with_a_model_where_asked(tmp_path: Path) -> None:
    model = ElmoC.from_pretrained(vec_model(tmp_path / "here"))
    expected = model.embed(["cat", "sat"])
    model.save_pretrained(tmp_path / "alone")
    model.save_pretrained(tmp_path / "whole", bundle_vectors=True)
    assert not (tmp_path / "alone/words.vec").exists()
    assert (tmp_path / "whole/words.vec").exists()
    shutil.rmtree(tmp_path / "here")
    with pytest.raises(InputError, match=r"words\.vec"):
        ElmoC.from_pretrained(tmp_path / "alone")
    (tmp_path / "whole").rename(tmp_path / "moved")
    whole = ElmoC.from_pretrained(tmp_path / "moved")
    torch.testing.assert_close(whole.embed(["cat", "sat"]), expected)
    whole.save_pretrained(tmp_path / "moved")
    assert (tmp_path / "moved/words.vec").exists(), "what is replaced keeps the word vectors that it had"
    torch.testing.assert_close(ElmoC.from_pretrained(tmp_path / "moved").embed(["cat", "sat"]), expected)
    (tmp_path / "moved/words.vec").write_text("2 3\ncat 1 0 2\nsat 0.6 1 0\n")
    with pytest.raises(InputError, match=r"words\.vec is damaged: its content"):
        read_model_directory(tmp_path / "moved")


@pytest.mark.parametrize("place", ["beside", "beside the run"])
def test_a_model_is_moved_with_its_word_vectors(tmp_path: Path, place: str) -> None:
    model = ElmoC.from_pretrained(vec_model(tmp_path / "here"))
    expected = model.embed(["cat", "sat"])
    saved = "there/run/model" if place == "beside the run" else "there/model"
    model.save_pretrained(tmp_path / saved)
    shutil.copy(tmp_path / "here/words.vec", tmp_path / "there")
    (tmp_path / "there").rename(tmp_path / "moved")
    if place == "beside":
        (tmp_path / "here/words.vec").write_text("2 3\ncat 9 9 9\nsat 0.5 1 0\n")
    else:
        shutil.rmtree(tmp_path / "here")
    moved = ElmoC.from_pretrained(tmp_path / saved.replace("there", "moved"))
    assert torch.equal(moved.embed(["cat", "sat"]), expected)


def test_what_is_shared_has_no_paths_of_this_machine(tmp_path: Path) -> None:
    private = tmp_path / "Ada's data"
    path = vec_model(private)
    record = {
        "corpus": str(private / "letters"),
        "sources": [f"letters={private}/a=b/1843.txt", "notes.txt", "https://example.org/a/b"],
        "started_from": {
            "corpus": str(private),
            "recipe": {"input_layer.vectors": f"{private}/words.vec"},
            "keep": ["/.+"],
        },
        "licence": "CC0 / public domain",
        "keep": [r"/[ru]/\w+", r"<DATE=/\d+>"],
    }
    targets = {"kind": "continuous", "origin": str(private / "words.vec")}
    edit_json(path / "config.json", lambda config: config.update(training=record, output_layer=targets))
    ElmoC.from_pretrained(path).save_pretrained(tmp_path / "shared")
    shared = read_model_directory(tmp_path / "shared")
    assert all(str(tmp_path) not in (tmp_path / "shared" / name).read_text() for name in ("config.json", "README.md"))
    assert shared.training["sources"] == ["letters=1843.txt", "notes.txt", "https://example.org/a/b"]
    assert shared.training["started_from"] == {
        "corpus": private.name,
        "recipe": {"input_layer.vectors": "words.vec"},
        "keep": ["/.+"],
    }
    assert shared.training["keep"] == record["keep"]
    assert (shared.training["corpus"], shared.training["licence"]) == ("letters", record["licence"])
    assert (shared.word_vectors.origin, shared.output_layer.config["origin"]) == ("words.vec", "words.vec")
    with pytest.raises(InputError, match=rf"{shared.word_vectors.fingerprint}.*words\.vec.*vectors=") as raised:
        ElmoC.from_pretrained(tmp_path / "shared")
    assert "Ada" not in str(raised.value)
    ElmoC.from_pretrained(tmp_path / "shared", vectors=str(private / "words.vec")).embed(["cat"])
