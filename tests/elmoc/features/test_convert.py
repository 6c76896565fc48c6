"""`elmoc convert` and `elmoc inspect`: every layout becomes every other, and what a file holds is said."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmoc.__main__ import main
from elmoc.features import layouts
from elmoc.features.converting.convert import convert_features
from elmoc.features.dumping.options import DumpOptions
from elmoc.features.join import join_features
from elmoc.features.layout_names import LAYOUT_NAMES, LayoutTraits
from elmoc.features.reader import FeatureFile
from tests.elmoc.features.test_linked import DOCUMENTS, KINDS, SENTENCES, STATES, content, write, write_parts

Fails = Callable[[int], str]
LAYOUTS = ("allennlp", "bilm", "e2e-coref", "flat")


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    path = tmp_path / "documents.jsonl"
    write_documents(path, {key: [line.split() for line in lines] for key, lines in DOCUMENTS.items()})
    return path


def write_documents(path: Path, documents: dict[str, list[list[str]]]) -> None:
    lines = [json.dumps({"doc_key": key, "sentences": each, "clusters": []}) for key, each in documents.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_features_of(path: Path, words: int) -> Path:
    """A file of one sentence without its words."""
    with h5py.File(path, "w") as file:
        file["0"] = np.ones((3, words, 4), "f4")
    return path


def stored(path: Path) -> tuple[Any, dict[str, Any]]:
    with h5py.File(path) as file:
        attributes = {name: np.asarray(value).tolist() for name, value in file.attrs.items()}
    return content(path), {name: value for name, value in attributes.items() if name != "command_line"}


@pytest.mark.parametrize("single", [False, True], ids=["all", "top"])
@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("source", LAYOUTS)
def test_what_is_converted_is_what_a_dump_writes(
    tmp_path: Path, documents: Path, source: str, target: str, single: bool
) -> None:
    first = write(tmp_path / "first.h5", 0, 6, layout=source, single=single)
    expected = write(tmp_path / "expected.h5", 0, 6, layout=target, single=single)
    convert_features(first, tmp_path / "out.h5", layout=target, documents=documents)
    assert stored(tmp_path / "out.h5") == stored(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_back_and_forth(tmp_path: Path, kind: str) -> None:
    first = write(tmp_path / "first.h5", 0, 6, **KINDS[kind])
    layout = str(KINDS[kind].get("layout", "allennlp"))
    by_words = convert_features(first, tmp_path / "out.h5", layout=layout, compress="compressed" in kind)
    assert by_words == (layout == "allennlp" and "without" not in kind)
    if kind != "allennlp with keys":  # a number is the key now
        assert stored(tmp_path / "out.h5") == stored(first)
    elif by_words:
        with FeatureFile(tmp_path / "out.h5") as one, FeatureFile(first) as two:
            assert one.sentence_map == two.sentence_map


def test_options(tmp_path: Path) -> None:
    first = tmp_path / "f.h5"
    join_features(write_parts(first), first, merge=False)
    options = {"layers": "2,0", "dtype": "float16", "compress": True}
    convert_features(first, tmp_path / "out.h5", layout="flat", command_line="x", **options)
    with FeatureFile(tmp_path / "out.h5") as file:
        assert (file.dtype, file.compression, file.layers) == (np.float16, "gzip", 2)
        assert list(file.attributes["layers"]) == ["2", "0"]
        for one, two in zip(file, STATES, strict=True):
            np.testing.assert_array_equal(one, two[[2, 0]].astype(np.float16))
    assert "parts" not in stored(tmp_path / "out.h5")[1]
    convert_features(tmp_path / "out.h5", tmp_path / "again.h5", layout="allennlp", layers="0")
    with FeatureFile(tmp_path / "again.h5") as file:
        assert (file.dtype, list(file.attributes["layers"])) == (np.float16, ["0"]), "the type is that of the source"
        for one, two in zip(file, STATES, strict=True):
            np.testing.assert_array_equal(one, two[[0]].astype(np.float16))


def test_what_cannot_be_converted(tmp_path: Path, documents: Path, error_line: Fails) -> None:
    first, output = write(tmp_path / "first.h5", 0, 6), tmp_path / "out.h5"

    def refused(message: str, *options: object, layout: str = "e2e-coref", source: Path = first) -> None:
        error = error_line(main(["convert", str(source), str(output), "--format", layout, *map(str, options)]))
        assert message in error
        assert not output.exists()

    refused("first.h5 does not say which documents its sentences are, which e2e-coref needs: give --documents")
    refused("has the layers 0, 1, 2; --layers 3 cannot be taken from it", "--layers", "3", layout="flat")
    top = write(tmp_path / "top.h5", 0, 6, single=True)
    refused("one layer, without an axis of layers; --layers 0", "--layers", "0", source=top, layout="flat")
    cases = {
        'sentence 1 of the document "a/1" has 3 words, but sentence 1 of': {
            "a/1": [["The", "cat", "sat", "."], ["x"] * 3]
        },
        'sentence 0 of the document "b" is "The dog sat .", but sentence 3 of': {
            "a": [["The", "cat", "sat", "."], ["It", "rained"], ["So", "it", "goes", "."]],
            "b": [["The", "dog", "sat", "."]],
        },
        "documents.jsonl ends after 1 sentences, but": {"a": [["The", "cat", "sat", "."]]},
        'sentence 6 of the document "a" is more than the 6 sentences of': {
            "a": [list(s.tokens) for s in SENTENCES] + [["x"]]
        },
    }
    for message, each in cases.items():
        write_documents(documents, each)
        refused(message, "--documents", documents)
    write_documents(documents, {"a": [["x", "1 1/2"]]})
    two = write_features_of(tmp_path / "two.h5", 2)
    refused("has a word with white space in it", "--documents", documents, source=two, layout="allennlp")
    for line, message in (
        ("[1]", "documents.jsonl, line 1 cannot be read (Expected `object`"),
        ('{"doc_key": 3, "sentences": []}', "documents.jsonl, line 1 cannot be read (Expected `str`"),
        ('{"doc_key": "a"}', "documents.jsonl, line 1 cannot be read (Object missing required field `sentences`"),
        ("{", "documents.jsonl, line 1 cannot be read"),
        (
            '{"doc_key": "a", "sentences": [["The", "cat", "sat", "."]]}\n' * 2,
            "line 2 has the doc_key of the line before",
        ),
    ):
        documents.write_text(line)
        refused(message, "--documents", documents)
    large = tmp_path / "large.h5"
    with h5py.File(large, "w") as file:
        file["0"] = np.full((3, 2, 4), 7e4, "f4")
    error = f"the states of sentence 0 of {large} are too large for float16, which ends at 65,504: write float32"
    refused(error, "--dtype", "float16", source=large, layout="flat")
    with h5py.File(large, "r+") as file:
        file["1"] = file["2"] = np.full((3, 2, 4), 1e39)
    error = f"sentence 1 of {large} are too large for float32, which ends at 3.4e+38: they cannot be layer states"
    with h5py.File(large, "r+") as file:
        file["0"][...] = 1
    refused(error, source=large, layout="flat")
    flat = write(tmp_path / "flat.h5", 0, 6, layout="flat")
    refused(". is a directory, but a file is needed", "--documents", "", source=flat, layout="allennlp")
    output.write_text("mine")
    assert "out.h5 exists already" in error_line(main(["convert", str(first), str(output), "--format", "flat"]))
    assert output.read_text() == "mine"


@pytest.mark.parametrize("known", [{}, {"a b": "0"}, {"c d": "1"}])
def test_a_map_of_some_sentences_is_not_filled_up(tmp_path: Path, error_line: Fails, known: dict[str, str]) -> None:
    first, output = tmp_path / "first.h5", tmp_path / "out.h5"
    with h5py.File(first, "w") as file:
        for key in ("0", "1", "2"):
            file[key] = np.ones((3, 2, 4), "f4")
        file["sentence_to_index"] = [json.dumps(known)]
    command = ["convert", str(first), str(output), "--format"]
    error = error_line(main([*command, "allennlp"]))
    assert "first.h5: its map lacks the last of the 3 sentences" in error
    assert not output.exists()
    assert main([*command, "flat"]) == 0
    output.unlink()
    with h5py.File(first, "r+") as file:
        file["sentence_to_index"][0] = json.dumps(known | {"e f": "2"})
    assert main([*command, "allennlp"]) == 0
    with FeatureFile(output) as features:
        assert features.sentence_map == {text: int(index) for text, index in known.items()} | {"e f": 2}


def test_a_layout_is_known_by_its_rows_in_the_tables(
    tmp_path: Path, documents: Path, error_line: Fails, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can be chosen on the command line, is asked of what its row says, and its parts become one file."""
    of_both = LayoutTraits(needs_documents=True, found_by_words=True)
    monkeypatch.setitem(LAYOUT_NAMES, "new", of_both)
    monkeypatch.setitem(layouts.LAYOUTS, "new", layouts.LAYOUTS["allennlp"])
    first, output = write(tmp_path / "first.h5", 0, 6), tmp_path / "out.h5"
    command = ["convert", str(first), str(output), "--format", "new"]
    assert "which new needs: give --documents" in error_line(main(command))
    assert main([*command, "--documents", str(documents)]) == 0
    with FeatureFile(output) as file:
        assert (file.layout, file.has_map) == ("new", True)
    assert DumpOptions(layout="new", sentence_keys=True).found_by_words
    monkeypatch.setitem(layouts.LAYOUTS, "new", layouts.LAYOUTS["e2e-coref"])
    for merge in (False, True):
        joined = tmp_path / f"{merge}.h5"
        join_features(write_parts(joined, layout="new"), joined, merge=merge)
        with FeatureFile(joined) as file:
            assert list(file.documents) == [key.replace("/", ":") for key in DOCUMENTS]
            file.check()


@pytest.mark.parametrize(("given", "dtype"), [(">f2", "float16"), (">f4", "float32"), ("<f8", "float32")])
def test_the_type_is_that_of_the_source_where_it_can_be(tmp_path: Path, given: str, dtype: str) -> None:
    first, output = tmp_path / "first.h5", tmp_path / "out.h5"
    with h5py.File(first, "w") as file:
        file["0"] = STATES[0].astype(given)
    convert_features(first, output, layout="flat")
    with FeatureFile(output) as features:
        assert features.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(features[0], STATES[0].astype(dtype))


def test_no_map_without_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, output = write(tmp_path / "first.h5", 0, 6, layout="flat"), tmp_path / "out.h5"
    assert main(["convert", str(first), str(output), "--format", "allennlp"]) == 0
    assert f"those of {output} cannot be found by their words (give --documents)" in capsys.readouterr().out
    with FeatureFile(output) as file:
        assert (len(file), file.has_map) == (6, False)


@pytest.mark.parametrize("kind", KINDS)
def test_inspect_says_what_is_in_a_file(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.h5"
    join_features(write_parts(path, **KINDS[kind]), path, merge=False)
    assert main(["inspect", str(path)]) == 0
    said = dict(
        line.strip().split("  ", 1) for line in capsys.readouterr().out.splitlines()[1:] if "  " in line.strip()
    )
    said = {name: value.strip() for name, value in said.items()}
    assert said["layout"].startswith(str(KINDS[kind].get("layout", "allennlp")))
    assert ("gzip" in said["layout"]) == ("compressed" in kind)
    assert said["model"] == "m"
    assert said["layers"] == "0, 1, 2: [3, n, 2P], 2P = 4"
    assert said["sentences"].startswith("6, ")
    assert said["words"] == "18, at most 4 a sentence"
    assert said.get("documents") == ("3" if "e2e" in kind or "flat" in kind else None)
    assert "rank-0-of-3.h5, rank-1-of-3.h5, rank-2-of-3.h5" in said["parts"]
    assert said["sound"] == "every sentence has been read"


def test_what_a_stranger_has_named_is_printed_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_features_of(tmp_path / "f.h5", 2)
    with h5py.File(path, "r+") as file:
        file.attrs["a\x1b[2J\nb"] = "c\x1b[2J"
        file.attrs["layers"] = ["x\x1b[2J", "y", "z"]
    assert main(["inspect", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "  a\\x1b[2J b   c\\x1b[2J\n" in printed
    assert "  layers       x\\x1b[2J, y, z: [3, n, 2P]" in printed


def test_inspect_finds_damage(tmp_path: Path, error_line: Fails, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "f.h5", 0, 6)
    with h5py.File(path, "r+") as file:
        file["1"][0, 1, 3] = np.nan
    assert main(["inspect", "--quick", str(path)]) == 0
    assert "not checked" in capsys.readouterr().out
    assert "f.h5: sentence 1 has numbers that are not finite" in error_line(main(["inspect", str(path)]))
    path.write_bytes(path.read_bytes()[:-50])
    assert "f.h5 is not a whole HDF5 file" in error_line(main(["inspect", "--quick", str(path)]))
    assert "does not exist" in error_line(main(["inspect", str(tmp_path / "none.h5")]))
