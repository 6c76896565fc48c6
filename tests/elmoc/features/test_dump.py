"""`elmoc dump-features`: what it writes is what readers of AllenNLP's files expect, else one sentence says why not."""

import gzip
import json
import signal
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
from elmoc.__main__ import main
from elmoc.errors import InputError, quiet
from elmoc.jobs import run_job
from tests.conftest import Fails
from tests.elmoc.features.sentences import dumped, stored

from elmoc import DumpOptions, ElmoC, dump_features
from elmoc.features import dump

LINES = ["The cat sat .", "  a/b \t and/or  ", "Zürich — naïve 😀", "The cat sat .", "/", "x " * 40, "</s> <s>"]


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    path = tmp_path / "sentences.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def test_layout_is_that_of_the_allennlp_elmo_command(model_path: Path, sentences: Path, tmp_path: Path) -> None:
    dumped(model_path, sentences, tmp_path / "f.h5")
    with h5py.File(tmp_path / "f.h5") as file:
        assert set(file) == {"sentence_to_index", *map(str, range(len(LINES)))}
        for index, line in enumerate(LINES):
            assert file[str(index)].dtype == np.float32
            assert file[str(index)].shape == (3, len(line.split()), 10)
        # as readers of these files find a sentence
        sentence_to_index = json.loads(file["sentence_to_index"][0])
        assert sentence_to_index == {line.strip(): str(index) for index, line in enumerate(LINES)}
        assert sentence_to_index["The cat sat ."] == "3", "of duplicate lines the last index"
        model = ElmoC.from_pretrained(model_path, precision="float32")
        for index, states in enumerate(model.embed_batch([line.split() for line in LINES])):
            np.testing.assert_allclose(file[str(index)][()], states.numpy(), atol=1e-5)
        assert file.attrs["model"] == model.fingerprint
        assert file.attrs["word_vectors"] == "random:3:6"
        assert list(file.attrs["layers"]) == ["0", "1", "2"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.h5", "f.h5.xxh3", "model", "sentences.txt"]


@pytest.mark.parametrize(
    ("options", "choose"),
    [
        (["--all"], lambda layers: layers),
        (["--top"], lambda layers: layers[-1]),
        (["--average"], lambda layers: layers.mean(axis=0)),
        (["--layers", "2,0"], lambda layers: layers[[2, 0]]),
        (["--layers", "1"], lambda layers: layers[[1]]),
        (["--dtype", "float16"], lambda layers: layers.astype(np.float16)),
        (["--top", "--dtype", "float16"], lambda layers: layers[-1].astype(np.float16)),
    ],
)
def test_chosen_layers_are_those_of_all(
    model_path: Path, sentences: Path, tmp_path: Path, options: list[str], choose: Callable[[np.ndarray], np.ndarray]
) -> None:
    everything = dumped(model_path, sentences, tmp_path / "all.h5")
    for array, layers in zip(dumped(model_path, sentences, tmp_path / "f.h5", *options), everything, strict=True):
        np.testing.assert_array_equal(array, choose(layers), strict=True)


def test_a_call_and_a_job_write_what_the_command_writes(model_path: Path, sentences: Path, tmp_path: Path) -> None:
    dumped(model_path, sentences, tmp_path / "command.h5", "--format", "flat", "--top")
    model, handler = ElmoC.from_pretrained(model_path, precision="float32"), signal.getsignal(signal.SIGTERM)
    with quiet():
        dump_features(model, [(sentences, tmp_path / "call.h5")], DumpOptions(layout="flat", layers="top"))
    assert signal.getsignal(signal.SIGTERM) is handler
    how = {"layout": "flat", "layers": "top"}
    given = {"model": model_path, "files": [sentences, tmp_path / "job.h5"], "precision": "float32", "dump": how}
    run_job("elmoc dump-features", given)
    for name in ("call.h5", "job.h5"):
        assert stored(tmp_path / name) == stored(tmp_path / "command.h5")
    with pytest.raises(InputError, match="layout is 'npz': Expected one of"):
        dump_features(model, [(sentences, tmp_path / "f.h5")], DumpOptions(layout="npz"))  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [["--batch-size", "1"], ["--batch-size", "3", "--batch-words", "30"], []])
def test_order_and_batches_change_nothing(
    model_path: Path, sentences: Path, tmp_path: Path, options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = dumped(model_path, sentences, tmp_path / "all.h5")
    order = [5, 2, 0, 6, 4, 1, 3]
    shuffled = tmp_path / "shuffled.txt.gz"
    shuffled.write_bytes(gzip.compress("\n".join(LINES[index] for index in order).encode()))
    monkeypatch.setattr(dump, "words_of_a_part", lambda *_: 6)  # several parts
    arrays = dumped(model_path, shuffled, tmp_path / "f.h5", *options)
    for array, index in zip(arrays, order, strict=True):
        np.testing.assert_allclose(array, expected[index], atol=1e-5)


@pytest.mark.parametrize(
    "options", [["--layers", "3"], ["--device", "cuda:77"], ["--precision", "bf16"], ["--vectors", "random:4:6"]]
)
def test_impossible_options(
    model_path: Path, sentences: Path, error_line: Fails, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.setattr("elmoc.devices.has_bf16", lambda device: False)
    before = set(sentences.parent.iterdir())
    status = main(["dump-features", str(model_path), str(sentences), f"{sentences.parent}/f.h5", *options])
    assert options[1] in error_line(status)
    assert set(sentences.parent.iterdir()) == before


def test_cuda_alone_is_the_device_of_the_local_rank(
    model_path: Path, sentences: Path, tmp_path: Path, error_line: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", "77")
    for device, asked in (("cuda", "cuda:77"), ("cuda:88", "cuda:88")):
        status = main(["dump-features", str(model_path), str(sentences), str(tmp_path / "f.h5"), "--device", device])
        assert f"{asked} is not there" in error_line(status)


def test_an_existing_output_stays(model_path: Path, sentences: Path, tmp_path: Path, error_line: Fails) -> None:
    output = tmp_path / "f.h5"
    output.write_text("mine")
    status = main(["dump-features", str(model_path), str(sentences), str(output)])
    assert "f.h5 exists already" in error_line(status)
    assert output.read_text() == "mine"


def test_the_room_for_all_files_is_looked_for_before_the_first_is_made(
    model_path: Path, sentences: Path, tmp_path: Path, error_line: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 4 * sum(len(line.split()) for line in LINES) * 3 * 10 * 4  # enough for each and its parts, not for all
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": size}))
    inputs = [tmp_path / f"{name}.txt" for name in "abc"]
    for path in inputs:
        path.write_bytes(sentences.read_bytes())
    status = main(["dump-features", str(model_path), *map(str, inputs), "--output-dir", str(tmp_path / "out")])
    assert " free" in error_line(status)
    assert not list((tmp_path / "out").glob("*.h5"))


def test_numbers_that_a_type_does_not_have() -> None:
    with pytest.raises(InputError):
        dump.converted(np.full((3, 4), 7e4, np.float32), "float16")
    assert dump.converted(np.full((3, 4), 6e4, np.float32), "float16").dtype == np.float16
