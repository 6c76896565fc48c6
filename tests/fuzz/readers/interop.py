"""Readers of models of other tools: original ELMo, ELMoForManyLangs, and what is imported from them."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmoc.interop.imported import ImportedModel
from elmoc.interop.many_langs import read_many_langs
from elmoc.interop.original_elmo import export_original_elmo, read_original_elmo
from elmoc.model import ElmoC
from elmoc.word_vectors.character_cnn import FILE_NAME, CharacterCnnVectors
from elmoc.word_vectors.opening import open_word_vectors
from tests.elmoc.interop.conftest import DATA, write_original
from tests.fuzz.mutations.arrays import SAFETENSORS, change_checkpoint, change_member
from tests.fuzz.mutations.hdf5_weights import HDF5_WEIGHTS
from tests.fuzz.mutations.json_tree import JSON
from tests.fuzz.mutations.raw import RAW, Mutation
from tests.fuzz.mutations.text import TEXT
from tests.fuzz.readers.reader import Reader, same

WORDS = ["w1", "Zürich", "unseen"]
ARCHIVE = (*[change_checkpoint, change_checkpoint, change_member] * (len(RAW) // 2), *RAW)
PICKLE = (*[change_checkpoint] * len(RAW), *RAW)


def write_elmo(folder: Path) -> None:
    """An original ELMo, what is imported from it, its word vectors alone, and a model of ELMoForManyLangs.

    Of that, one file of weights is as PyTorch writes it now, and one as it did before release 1.6.
    """
    (folder / "elmo").mkdir()
    write_original(folder / "elmo/options.json", folder / "elmo/weights.hdf5")
    read_original_elmo(Path("elmo/options.json"), Path("elmo/weights.hdf5")).write(Path("elmo/model"))
    shutil.copy(folder / "elmo/model" / FILE_NAME, folder / "elmo/alone.safetensors")
    shutil.copytree(DATA / "many_langs/words_and_characters", folder / "languages")
    (folder / "languages/expected.npz").unlink()
    path = folder / "languages/token_embedder.pkl"
    torch.save(torch.load(path, weights_only=True), path, _use_new_zipfile_serialization=False)


def shapes_and_vectors(model: ImportedModel) -> tuple[Any, np.ndarray]:
    """The shapes of the weights, all of which have to be finite, and some word vectors."""
    vectors = CharacterCnnVectors(model.character_cnn, origin=model.source).lookup(WORDS)
    tensors = {**model.weights, **model.character_cnn.weights}
    assert all(bool(tensor.isfinite().all()) for tensor in tensors.values())
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}, vectors


def possible(result: Any, expected: Any) -> bool:
    """Of the same shapes, and finite: what has no checksum may be another number."""
    return bool(result[0] == expected[0] and result[1].shape == expected[1].shape and np.isfinite(result[1]).all())


def read_original(folder: Path) -> Any:
    return shapes_and_vectors(read_original_elmo(folder / "elmo/options.json", folder / "elmo/weights.hdf5"))


def read_languages(folder: Path) -> Any:
    return shapes_and_vectors(read_many_langs(folder / "languages"))


def read_imported(folder: Path) -> Any:
    """Layer states; and what can be used can be exported, too."""
    states = ElmoC.from_pretrained(folder / "elmo/model").embed(WORDS).numpy()
    for name in ("o.json", "w.hdf5"):
        (folder / "out" / name).unlink(missing_ok=True)
    export_original_elmo(folder / "elmo/model", folder / "out/o.json", folder / "out/w.hdf5")
    return states.shape, states


def read_alone(folder: Path) -> Any:
    vectors = open_word_vectors(str(folder / "elmo/alone.safetensors")).lookup(WORDS)
    return vectors.shape[:1], vectors[:, :1]


def reader(
    target: str,
    mutations: tuple[Mutation, ...],
    read: Callable[[Path], Any],
    right: Callable[[Any, Any], bool] = possible,
) -> Reader:
    folder = target.rpartition("/")[0]
    return Reader(
        name=target.replace("elmo/", "elmo "),
        target=target,
        mutations=mutations,
        read=read,
        right=right,
        names=(f"sample/{folder}",),
        share=0.5,
    )


READERS = (
    reader("elmo/options.json", JSON, read_original),
    reader("elmo/weights.hdf5", HDF5_WEIGHTS, read_original),
    reader("elmo/alone.safetensors", SAFETENSORS, read_alone),
    reader("elmo/model/config.json", JSON, read_imported),
    reader("elmo/model/model.safetensors", SAFETENSORS, read_imported, same),
    reader(f"elmo/model/{FILE_NAME}", SAFETENSORS, read_imported, same),
    reader("languages/config.json", JSON, read_languages),
    reader("languages/tiny.json", JSON, read_languages),
    reader("languages/char.dic", TEXT, read_languages),
    reader("languages/word.dic", TEXT, read_languages),
    reader("languages/encoder.pkl", ARCHIVE, read_languages),
    reader("languages/token_embedder.pkl", PICKLE, read_languages),
)
