"""Limits: small files that say they are large are refused before anything of that size is allocated."""

import io
import json
import resource
import shutil
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.features.options import MOST_SENTENCES
from elmoc.files.records import MOST_RECORD_BYTES, read_toml
from elmoc.interop.many_langs import read_many_langs
from elmoc.word_vectors.opening import open_word_vectors

from elmoc import ElmoC, FeatureFile

# what a refusal may take: resident memory beyond that before, in bytes, and seconds (of a busy machine)
MOST_MEMORY, MOST_SECONDS = 1 << 29, 60


@pytest.fixture(autouse=True)
def little_is_taken() -> Iterator[None]:
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_MEMORY
    assert time.monotonic() - began < MOST_SECONDS


def zeros(file: h5py.File, name: str, shape: tuple[int, ...], dtype: str) -> None:
    """A dataset of zeros, all of whose chunks, of a million rows, are stored: compressed to a thousandth."""
    chunk = (min(shape[0], 1 << 20), *shape[1:])
    made = file.create_dataset(name, shape, dtype, chunks=chunk, compression="gzip", shuffle=True)
    made[: chunk[0]] = 0
    mask, packed = made.id.read_direct_chunk((0,) * len(shape))
    for start in range(chunk[0], shape[0], chunk[0]):
        made.id.write_direct_chunk((start, *[0] * len(shape[1:])), packed, mask)


def empty_sentences(file: h5py.File) -> None:
    file["states"] = np.zeros((0, 3, 4), "f4")
    zeros(file, "offsets", (200 << 20,), "i8")


def more_sentences_than_the_limit(file: h5py.File) -> None:
    file["states"] = np.zeros((0, 3, 4), "f4")
    zeros(file, "offsets", (MOST_SENTENCES + 2,), "i8")


def many_layers(file: h5py.File) -> None:
    file.create_dataset("states", (0, 1 << 40, 4), "f4")
    file["offsets"] = np.zeros(3, "i8")


def wide_words(file: h5py.File) -> None:
    file.create_dataset("0", (3, 0, 1 << 40), "f4")


def bomb(file: h5py.File) -> None:
    zeros(file, "0", (80 << 20, 3, 4), "f4")


def bomb_of_one_sentence(file: h5py.File) -> None:
    zeros(file, "states", (80 << 20, 3, 4), "f4")
    file["offsets"] = np.array([0, 80 << 20])


def wide_chunk(file: h5py.File) -> None:
    made = file.create_dataset("0", (3, 2, 4), "f4", chunks=(3, 2, 1 << 26), maxshape=(None,) * 3, compression=1)
    made.id.write_direct_chunk((0, 0, 0), b"of 1.6 GB")


def long_map(file: h5py.File) -> None:
    file["0"] = np.zeros((3, 2, 4), "f4")
    made = file.create_dataset("sentence_to_index", (1,), "S2000000000", chunks=(1,), compression=1)
    made.id.write_direct_chunk((0,), b"of 2 GB")


def texts_as_states(file: h5py.File) -> None:  # a thousand references to one text of any length
    file["0"] = np.zeros((3, 2, 4), "f4")
    file.create_dataset("1", (3, 100, 4), h5py.string_dtype())


def many_texts(file: h5py.File) -> None:
    file["0"] = np.zeros((3, 2, 4), "f4")
    file.attrs["layers"] = ["a text"] * 1000


@pytest.mark.parametrize(
    "write",
    [
        *(empty_sentences, more_sentences_than_the_limit, many_layers, wide_words, bomb, bomb_of_one_sentence),
        *(wide_chunk, long_map, texts_as_states, many_texts),
    ],
)
def test_feature_files(tmp_path: Path, write: Callable[[h5py.File], None], error_line: Callable[[int], str]) -> None:
    path = tmp_path / "f.h5"
    with h5py.File(path, "w") as file:
        write(file)
    assert path.stat().st_size < 16 << 20
    assert str(path) in error_line(main(["inspect", str(path)]))
    with pytest.raises(InputError):
        FeatureFile(path).check()


@pytest.mark.parametrize("content", ["[{}]", "[" * 100_000 + "{}", '{{"training": [{}]}}'])
def test_records(model_path: Path, content: str) -> None:
    many = content.format("[],[]," * (MOST_RECORD_BYTES // 5) + "[]")
    (model_path / "config.json").write_text(many)
    with pytest.raises(InputError, match=r"config\.json"):
        ElmoC.from_pretrained(model_path)


@pytest.mark.parametrize(
    "change", [{"words": 1e300}, {"words": -5}, {"words": 9, "units_of_a_word": 0}, {"words": "x"}]
)
def test_training_records(model_path: Path, tmp_path: Path, change: dict, error_line: Callable[[int], str]) -> None:
    record = json.loads((model_path / "config.json").read_text())
    for training in (change, {"words": 1, "started_from": change}):
        (model_path / "config.json").write_text(json.dumps(record | {"training": training}))
        (tmp_path / "in.txt").write_text("a b\n")
        status = main(["dump-features", str(model_path), f"{tmp_path}/in.txt", f"{tmp_path}/f.h5"])
        assert "training record" in error_line(status)


@pytest.mark.parametrize("shape", [[0, 1 << 60], [0] + [1] * (MOST_RECORD_BYTES // 2)], ids=["sizes", "header"])
def test_headers_of_tensors(tmp_path: Path, shape: list[int]) -> None:
    about = {"elmoc": json.dumps({"format": "elmoc-lexicon-vectors", "version": 1})}
    tensors = {"vectors": {"dtype": "F32", "shape": shape}, "words": {"dtype": "U8", "shape": [2]}}
    ends = {"vectors": [0, 0], "words": [0, 2]}
    described = {name: each | {"data_offsets": ends[name]} for name, each in tensors.items()}
    header = json.dumps({"__metadata__": about} | described).encode()
    path = tmp_path / "lexicon.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"[]")
    with pytest.raises(InputError, match="lexicon"):
        open_word_vectors(path)


def test_a_header_of_a_tar_archive(tmp_path: Path) -> None:
    shutil.copytree(Path(__file__).parents[1] / "interop/data/many_langs/characters", tmp_path / "model")
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 1 << 30
    file = tmp_path / "model" / "encoder.pkl"
    with open(file, "wb") as archive:
        archive.write(header.tobuf(tarfile.USTAR_FORMAT))
        archive.seek(1 << 30, io.SEEK_CUR)
        archive.truncate()
    with pytest.raises(InputError, match=r"encoder\.pkl"):
        read_many_langs(tmp_path / "model")


def test_a_long_key_of_a_config(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(f"a{'.a' * 500_000} = 1\n")
    with pytest.raises(InputError, match=r"a\.toml"):
        read_toml(tmp_path / "a.toml")
