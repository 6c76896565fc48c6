"""`elmoc convert` and `elmoc inspect`: every layout becomes every other, and what a file holds is said."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from elmoc.__main__ import main
from elmoc.features.convert import convert_features
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.sentences import states_of, stored, write_features

from elmoc.features.layouts import Entry, FeatureShape

Fails = Callable[[int], str]
LAYOUTS = ("allennlp", "bilm", "e2e-coref", "flat")
DOCUMENTS = {"a:1": ["The cat sat .", "It rained"], "b": ["So it goes .", "The cat sat ."], "c": ["Yes .", "a/b c"]}
SENTENCES = [Entry(len(line.split()), line, key) for key, lines in DOCUMENTS.items() for line in lines]
STATES = [states_of(index, sentence.length) for index, sentence in enumerate(SENTENCES)]
KINDS: dict[str, dict[str, Any]] = {
    **{layout: {"layout": layout} for layout in LAYOUTS},
    "allennlp without a map": {"sentence_map": False},
    "e2e compressed": {"layout": "e2e-coref", "compress": True},
    "flat compressed": {"layout": "flat", "compress": True},
}


def write(path: Path, *, single: bool = False, documents: bool = True, **options: Any) -> Path:
    words = sum(sentence.length for sentence in SENTENCES)
    shape = FeatureShape(layers=1 if single else 3, width=4, dtype="float32", single=single, words=words)
    names = ["top"] if single else ["0", "1", "2"]
    with write_features(path, {"model": "m", "layers": names}, shape=shape, **options) as writer:
        for sentence, states in zip(SENTENCES, STATES, strict=True):
            known = sentence if documents else replace(sentence, document=None)
            writer.add(known, states[0] if single else states)
    return path


@pytest.mark.parametrize("single", [False, True], ids=["all", "top"])
@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_what_is_converted_is_what_a_dump_of_as_much_writes(
    tmp_path: Path, source: str, target: str, single: bool
) -> None:
    has_documents = source in ("e2e-coref", "flat")
    if target == "e2e-coref" and not has_documents:
        return  # which is refused
    first = write(tmp_path / "first.h5", layout=source, single=single)
    options = {"layout": target, "sentence_map": source == "allennlp", "documents": has_documents}
    expected = write(tmp_path / "expected.h5", single=single, **options)
    convert_features(first, tmp_path / "out.h5", layout=target)
    assert stored(tmp_path / "out.h5") == stored(expected)


def test_options(tmp_path: Path) -> None:
    first = write(tmp_path / "f.h5")
    options = {"layers": "2,0", "dtype": "float16", "compress": True}
    convert_features(first, tmp_path / "out.h5", layout="flat", command_line="x", **options)
    with FeatureFile(tmp_path / "out.h5") as file:
        assert (file.dtype, file.compression, file.layers) == (np.float16, "gzip", 2)
        assert list(file.attributes["layers"]) == ["2", "0"]
        for one, two in zip(file, STATES, strict=True):
            np.testing.assert_array_equal(one, two[[2, 0]].astype(np.float16))
    convert_features(tmp_path / "out.h5", tmp_path / "again.h5", layout="allennlp", layers="0")
    with FeatureFile(tmp_path / "again.h5") as file:
        assert (file.dtype, list(file.attributes["layers"])) == (np.float16, ["0"]), "the type is that of the source"


def test_what_cannot_be_converted(tmp_path: Path, error_line: Fails) -> None:
    first, output = write(tmp_path / "first.h5"), tmp_path / "out.h5"
    top = write(tmp_path / "top.h5", single=True)
    large = tmp_path / "large.h5"
    with h5py.File(large, "w") as file:
        file["0"], file["1"] = np.ones((3, 2, 4), "f4"), np.full((3, 2, 4), 7e4, "f4")
    for source, options, named in (
        (first, ["--format", "e2e-coref"], "documents"),
        (first, ["--format", "flat", "--layers", "3"], "--layers 3"),
        (top, ["--format", "flat", "--layers", "0"], "--layers 0"),
        (large, ["--format", "flat", "--dtype", "float16"], "sentence 1"),
    ):
        assert named in error_line(main(["convert", str(source), str(output), *options]))
        assert not output.exists()
    output.write_text("mine")
    assert "exists already" in error_line(main(["convert", str(first), str(output), "--format", "flat"]))
    assert output.read_text() == "mine"


@pytest.mark.parametrize("last", ["e f", ""])
@pytest.mark.parametrize("known", [{}, {"a b": "0"}, {"c d": "1"}])
def test_a_map_of_some_sentences_is_not_filled_up(
    tmp_path: Path, error_line: Fails, known: dict[str, str], last: str
) -> None:
    first, output = tmp_path / "first.h5", tmp_path / "out.h5"
    with h5py.File(first, "w") as file:
        for key in ("0", "1", "2"):
            file[key] = np.ones((3, 2, 4), "f4")
        file["sentence_to_index"] = [json.dumps(known)]
    command = ["convert", str(first), str(output), "--format"]
    assert str(first) in error_line(main([*command, "allennlp"]))
    assert not output.exists()
    assert main([*command, "flat"]) == 0
    output.unlink()
    with h5py.File(first, "r+") as file:
        file["sentence_to_index"][0] = json.dumps(known | {last: "2"})
    assert main([*command, "allennlp"]) == 0
    with FeatureFile(output) as features:
        assert features.lines == {text: int(index) for text, index in known.items()} | {last: 2}


@pytest.mark.parametrize("kind", KINDS)
def test_inspect_says_what_is_in_a_file(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "f.h5", **KINDS[kind])
    assert main(["inspect", str(path)]) == 0
    lines = [line.strip().split("  ", 1) for line in capsys.readouterr().out.splitlines()[1:] if "  " in line.strip()]
    said = {name: value.strip() for name, value in lines}
    assert said["layout"].startswith(str(KINDS[kind].get("layout", "allennlp")))
    assert (said["model"], said["layers"]) == ("m", "0, 1, 2: [3, n, 2P], 2P = 4")
    assert said["sentences"].startswith("6, ")
    assert said["words"] == "18, at most 4 a sentence"
    assert said.get("documents") == ("3" if "e2e" in kind or "flat" in kind else None)


def test_inspect_finds_damage(tmp_path: Path, error_line: Fails) -> None:
    path = write(tmp_path / "f.h5")
    with h5py.File(path, "r+") as file:
        file["1"][0, 1, 3] = np.nan
    assert main(["inspect", "--quick", str(path)]) == 0
    assert "sentence 1 " in error_line(main(["inspect", str(path)]))
    path.write_bytes(path.read_bytes()[:-50])
    assert str(path) in error_line(main(["inspect", "--quick", str(path)]))
