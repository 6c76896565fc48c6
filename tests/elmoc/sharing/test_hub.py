"""Models by their name on a hub: found in a local snapshot, and what is said where there is none."""

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from elmoc.errors import InputError
from elmoc.model_directory import write_model_directory
from elmoc.sharing.hub import is_hub_name
from elmoc.word_vectors.sources import TextVectors
from tests.tiny import tiny_model

from elmoc import ElmoC

huggingface_hub = pytest.importorskip("huggingface_hub", reason="the extra hub is not installed")
constants, errors = (import_module(f"huggingface_hub.{name}") for name in ("constants", "errors"))
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of the library, in its own layout, with the model `ada/tiny`; without a network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "words.vec").write_text("2 3\ncat 1 0 2\nsat 0.5 1 0\n")
    vectors = TextVectors(tmp_path / "words.vec")
    write_model_directory(tmp_path / "model", tiny_model(vectors=vectors), vectors=tmp_path / "words.vec")
    (tmp_path / "words.vec").unlink()
    folder = tmp_path / "cache/models--ada--tiny"
    for inner in ("blobs", "refs", f"snapshots/{COMMIT}"):
        (folder / inner).mkdir(parents=True)
    for number, file in enumerate(sorted((tmp_path / "model").iterdir())):
        file.rename(folder / f"blobs/{number}")
        (folder / f"snapshots/{COMMIT}/{file.name}").symlink_to(f"../../blobs/{number}")
    (tmp_path / "model").rmdir()
    for revision in ("main", "v1"):
        (folder / f"refs/{revision}").write_text(COMMIT)
    return tmp_path / "cache"


def test_a_snapshot_is_a_model_with_its_vectors(cache: Path) -> None:
    expected = ElmoC.from_pretrained(cache / f"models--ada--tiny/snapshots/{COMMIT}").embed(["cat", "sat"])
    for name, revision in (("ada/tiny", None), ("ada/tiny", "v1"), ("ada/tiny@v1", None), (f"ada/tiny@{COMMIT}", None)):
        torch.testing.assert_close(ElmoC.from_pretrained(name, revision=revision).embed(["cat", "sat"]), expected)


def test_directories_win_over_names(cache: Path) -> None:
    os.makedirs("ada/tiny")
    with pytest.raises(InputError, match="ada/tiny"):
        ElmoC.from_pretrained("ada/tiny")
    for revision, said in ((None, "ada/other"), ("v1", "ada/other@v1")):
        with pytest.raises(InputError, match=said):
            ElmoC.from_pretrained("ada/other", revision=revision)


def test_what_looks_like_a_name() -> None:
    named = ["ada/tiny", "ada/tiny@v1", "ada/tiny@refs/pr/1", "ada.b-c/t_1.2", Path("ada/tiny")]
    not_named = ["tiny", "a/b/c", "./tiny", "../tiny", "/ada/tiny", "ada/", "ada/tiny@", "ada/tiny\n", "ädä/tiny"]
    assert all(map(is_hub_name, named))
    assert not any(map(is_hub_name, not_named))


def test_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match="extra hub"):
        ElmoC.from_pretrained("ada/tiny")
