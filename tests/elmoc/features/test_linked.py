"""Linked feature files: several parts are read as one file, here and by h5py, but never what lies elsewhere."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.features.join import join_features
from elmoc.features.layouts.sentence import Sentence
from elmoc.features.linked import parts_folder
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import write_features
from tests.elmoc.features.sentences import shape_of, states_of, write_sentences

DOCUMENTS = {"a/1": ["The cat sat .", "It rained"], "b": ["So it goes ."], "c": ["The cat sat .", "x / y", "%"]}
SENTENCES = [Sentence(line.split(), line, key) for key, lines in DOCUMENTS.items() for line in lines]
STATES = [states_of(index, len(sentence.tokens)) for index, sentence in enumerate(SENTENCES)]
CUTS = ((0, 2), (2, 3), (3, 6))
KINDS: dict[str, dict[str, Any]] = {
    "allennlp": {},
    "allennlp without a map": {"sentence_map": False},
    "allennlp with keys": {"sentence_keys": True},
    "allennlp compressed": {"compress": True},
    "bilm": {"layout": "bilm"},
    "e2e-coref": {"layout": "e2e-coref"},
    "e2e-coref compressed": {"layout": "e2e-coref", "compress": True},
    "flat": {"layout": "flat"},
    "flat compressed": {"layout": "flat", "compress": True},
}


def write(path: Path, start: int, stop: int, *, single: bool = False, **options: Any) -> Path:
    states = [each[0] if single else each for each in STATES[start:stop]]
    shape = shape_of(states[0], words=sum(each.shape[-2] for each in states))
    layers = ["top"] if single else ["0", "1", "2"]
    attributes = {"model": "m", "layers": layers, "command_line": f"rank {start}"}
    with write_features(path, attributes, shape=shape, **options) as writer:
        for sentence, each in zip(SENTENCES[start:stop], states, strict=True):
            writer.add(sentence, each)
    return path


def write_parts(output: Path, **options: Any) -> list[Path]:
    folder = parts_folder(output)
    return [write(folder / f"rank-{i}-of-3.h5", start, stop, **options) for i, (start, stop) in enumerate(CUTS)]


def content(path: Path) -> dict[str, Any]:
    """What h5py alone reads, in the order in which it has it."""

    def read(found: h5py.Group) -> Iterator[tuple[str, Any]]:
        for key in list(found):
            each = found[key]
            yield key, dict(read(each)) if isinstance(each, h5py.Group) else each[()].tolist()

    with h5py.File(path) as file:
        return dict(read(file))


def attributes(path: Path) -> dict[str, Any]:
    with h5py.File(path) as file:
        return {key: np.asarray(value).tolist() for key, value in file.attrs.items()}


@pytest.mark.parametrize("single", [False, True], ids=["all", "top"])
@pytest.mark.parametrize("merge", [False, True], ids=["links", "merged"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_joined_file_is_read_as_one_that_a_single_process_wrote(
    tmp_path: Path, kind: str, merge: bool, single: bool
) -> None:
    whole, output = write(tmp_path / "whole.h5", 0, 6, single=single, **KINDS[kind]), tmp_path / "out" / "f.h5"
    parts = write_parts(output, single=single, **KINDS[kind])
    join_features(parts, output, merge=merge)
    found, expected = content(output), content(whole)
    assert found == expected
    assert list(found) == list(expected)
    with FeatureFile(output) as file, FeatureFile(whole) as other:
        assert (len(file), file.layers, file.width, file.dtype) == (6, other.layers, 4, other.dtype)
        assert (file.layout, file.compression, file.single) == (other.layout, other.compression, single)
        for one, two in zip(file, other, strict=True):
            np.testing.assert_array_equal(one, two)
        assert file.documents == other.documents
        assert file.tokens == other.tokens
        assert file.lengths.tolist() == other.lengths.tolist()
        assert file.has_map == other.has_map
        if file.has_map:
            assert file.sentence_map == other.sentence_map
            assert file.find(["The", "cat", "sat", "."]) == 3
        file.check()
    expected = attributes(whole) | {"command_line": "rank 0"}
    expected |= (
        {}
        if merge
        else {
            "parts": [f"f.h5.parts/rank-{rank}-of-3.h5" for rank in range(3)],
            "part_sentences": [2, 1, 3],
        }
    )
    assert attributes(output) == expected
    assert [path.exists() for path in (*parts, parts_folder(output))] == [not merge] * 4


@pytest.mark.parametrize("merge", [False, True], ids=["links", "merged"])
def test_dumps_of_several_inputs_are_joined(tmp_path: Path, merge: bool) -> None:
    output = tmp_path / "f.h5"
    parts = write_parts(output)
    for part, name in zip(parts, ("a", "b", "b"), strict=True):
        with h5py.File(part, "r+") as file:
            file.attrs["input"], file.attrs["dump"] = name, "same"
    join_features(parts, output, merge=merge)
    with FeatureFile(output) as features:
        assert "input" not in features.attributes
        assert features.attributes["dump"] == "same"
        for one, two in zip(features, STATES, strict=True):
            np.testing.assert_array_equal(one, two)
    if not merge:
        with h5py.File(parts[1], "r+") as file:
            file.attrs["dump"] = "other"
        with pytest.raises(InputError, match=r"rank-1-of-3.h5, where dump is other and not same"):
            FeatureFile(output)


@pytest.mark.parametrize("merge", [False, True], ids=["links", "merged"])
@pytest.mark.parametrize("layout", ["flat", "bilm"])
def test_parts_of_another_form_are_not_joined(tmp_path: Path, layout: str, merge: bool) -> None:
    """Their attributes need not say it; numbers too large for the type of the first part would become infinite."""
    output = tmp_path / "f.h5"
    first, other = (parts_folder(output) / f"{number}.h5" for number in range(2))
    write_sentences(first, {"model": "m"}, [("a", np.ones((3, 1, 4), np.float32))], layout=layout)
    for states, message in (
        (np.ones((3, 1, 4), np.float16), "1.h5 does not fit .*0.h5, its type of numbers is float16 and not float32"),
        (np.ones((3, 1, 5), np.float32), "1.h5 does not fit .*0.h5, its width of vectors is 5 and not 4"),
        (np.ones((2, 1, 4), np.float32), "1.h5 does not fit .*0.h5, its number of layers is 2 and not 3"),
    ):
        write_sentences(other, {"model": "m"}, [("a", states)], layout=layout)
        with pytest.raises(InputError, match=message):
            join_features([first, other], output, merge=merge)
        other.unlink()  # it is still there
    with pytest.raises(InputError, match=r"there are no parts to make .*f\.h5 of"):
        join_features([], output, merge=merge)
    assert (first.exists(), output.exists()) == (True, False)


def test_what_is_packed_stays_packed_behind_an_empty_sentence(tmp_path: Path) -> None:
    output, path = tmp_path / "f.h5", tmp_path / "0.h5"
    shape = shape_of(STATES[0], words=STATES[0].shape[-2])
    with write_features(path, {"model": "m"}, shape=shape, layout="bilm", compress=True) as writer:
        writer.add(Sentence([], "", None), np.zeros((3, 0, 4), np.float32))
        writer.add(SENTENCES[0], STATES[0])
    join_features([path], output, merge=True)
    with h5py.File(output) as file:
        assert file["1"].compression == "gzip"
        np.testing.assert_array_equal(file["1"][()], STATES[0])


def test_a_linked_file_and_its_folder_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "here" / "f.h5"
    join_features(write_parts(output), output, merge=False)
    (tmp_path / "here").rename(tmp_path / "there")
    (tmp_path / "link.h5").symlink_to(tmp_path / "there" / "f.h5")
    monkeypatch.chdir(tmp_path / "there")
    for path in (Path("f.h5"), tmp_path / "there" / "f.h5", tmp_path / "link.h5"):
        with FeatureFile(path) as file:
            np.testing.assert_array_equal(file[4], STATES[4])
        with h5py.File(path) as file:
            np.testing.assert_array_equal(file["4"][()], STATES[4])
            assert json.loads(file["sentence_to_index"][0])["The cat sat ."] == "3"


@pytest.mark.parametrize("layout", ["flat", "bilm"])
@pytest.mark.parametrize("name", ["x%%y.h5", "a%b.h5", "50%.h5", "%d"])
def test_the_name_of_a_linked_file_may_have_percent_signs(tmp_path: Path, name: str, layout: str) -> None:
    whole, output = write(tmp_path / "whole.h5", 0, 6, layout=layout), tmp_path / name
    join_features(write_parts(output, layout=layout), output, merge=False)
    assert content(output) == content(whole)
    with FeatureFile(output) as file:
        file.check()


def test_e2e_corefs_own_loop_reads_a_linked_file(tmp_path: Path) -> None:
    output = tmp_path / "f.h5"
    join_features(write_parts(output, layout="e2e-coref"), output, merge=False)
    with h5py.File(output) as lm_file:  # as `load_lm_embeddings` does
        for doc_key, lines in DOCUMENTS.items():
            group = lm_file[doc_key.replace("/", ":")]
            sentences = [group[str(i)][...] for i in range(len(list(group.keys())))]
            assert [len(sentence) for sentence in sentences] == [len(line.split()) for line in lines]
            assert sentences[0].shape[1:] == (4, 3)


@pytest.mark.parametrize("layout", ["allennlp", "flat"])
def test_parts_that_are_missing_or_others(tmp_path: Path, layout: str) -> None:
    output = tmp_path / "f.h5"
    _, second, _ = write_parts(output, layout=layout)
    join_features(sorted(parts_folder(output).iterdir()), output, merge=False)
    kept = second.read_bytes()

    def refused(message: str) -> None:
        with pytest.raises(InputError, match=message) as caught:
            FeatureFile(output)
        assert "\n" not in str(caught.value)
        assert str(output) in str(caught.value)

    second.unlink()
    refused("rank-1-of-3.h5 does not exist: .*links to it, copy the folder of parts together with the file")
    second.write_bytes(kept[: len(kept) // 2])
    refused("rank-1-of-3.h5 is not a whole HDF5 file")
    second.write_bytes(kept)
    with h5py.File(second, "a") as file:
        file.attrs["model"] = "another"
    refused("where model is another and not m")
    second.unlink()
    write(second, 0, 2, layout=layout)
    refused("links to 1 sentences of .*, which has 2")
    second.unlink()
    shutil.copy(output, second)
    refused("is not a feature file in the .* layout .*other file")
    second.unlink()
    second.symlink_to(write(tmp_path / "elsewhere.h5", 2, 3, layout=layout))
    refused("which is not in a folder beside it")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("parts", ["../f.h5.parts/0.h5"] * 3, "is not in a folder beside it"),
        ("parts", ["/etc/passwd"] * 3, "is not in a folder beside it"),
        ("parts", ["f.h5.parts/../0.h5"] * 3, "is not in a folder beside it"),
        ("parts", ["0.h5"] * 3, "is not in a folder beside it"),
        ("parts", [1, 2, 3], "does not say what its parts are"),
        ("parts", "one", "does not say what its parts are"),
        ("parts", ["f.h5.parts/0.h5"], "does not say what its parts are"),
        ("part_sentences", [2.0, 1.0, 3.0], "does not say what its parts are"),
        ("part_sentences", [2, -1, 3], "does not say what its parts are"),
        ("part_sentences", [], "does not say what its parts are"),
        ("part_sentences", None, "does not say what its parts are"),
    ],
)
def test_attributes_that_name_no_parts(tmp_path: Path, name: str, value: Any, message: str) -> None:
    output = tmp_path / "f.h5"
    join_features(write_parts(output), output, merge=False)
    with h5py.File(output, "a") as file:
        del file.attrs[name]
        if value is not None:
            file.attrs[name] = value
    with pytest.raises(InputError, match=message) as caught:
        FeatureFile(output)
    assert str(output) in str(caught.value)


def replace_link(file: h5py.File, name: str, link: Any) -> None:
    del file[name]
    file[name] = link


@pytest.mark.parametrize(
    ("layout", "change"),
    [
        ("allennlp", lambda file: replace_link(file, "3", h5py.ExternalLink("f.h5.parts/rank-2-of-3.h5", "/1"))),
        ("allennlp", lambda file: replace_link(file, "3", h5py.ExternalLink("/dev/zero", "/0"))),
        ("allennlp", lambda file: replace_link(file, "3", h5py.SoftLink("/2"))),
        ("allennlp", lambda file: replace_link(file, "3", np.zeros((3, 4, 4), "f4"))),
        ("allennlp", lambda file: file.__delitem__("3")),
        ("allennlp", lambda file: file.create_dataset("x", data=1)),
        ("allennlp", lambda file: file["sentence_to_index"].__setitem__(0, "{}")),
        ("bilm", lambda file: replace_link(file, "0", h5py.ExternalLink("f.h5.parts/rank-2-of-3.h5", "/0"))),
        ("e2e-coref", lambda file: replace_link(file, "b", h5py.ExternalLink("f.h5.parts/rank-0-of-3.h5", "/a:1"))),
        ("flat", lambda file: file["offsets"].__setitem__(1, 3)),
        ("flat", lambda file: replace_link(file, "states", np.zeros((19, 3, 4), "f4"))),
        ("flat", lambda file: file["documents"].__setitem__(0, "{}")),
    ],
)
def test_links_that_lead_elsewhere_are_found_by_the_check(tmp_path: Path, layout: str, change: Any) -> None:
    """They are not followed, so that what is read is what the parts have."""
    output = tmp_path / "f.h5"
    join_features(write_parts(output, layout=layout), output, merge=False)
    with h5py.File(output, "a") as file:
        change(file)
    with FeatureFile(output) as features:
        for one, two in zip(features, STATES, strict=True):
            np.testing.assert_array_equal(one, two)
        with pytest.raises(InputError, match="has links that are not those to its parts") as caught:
            features.check()
    assert "\n" not in str(caught.value)


def test_what_cannot_be_joined(tmp_path: Path) -> None:
    output = tmp_path / "f.h5"
    parts = write_parts(output, layout="e2e-coref")
    with pytest.raises(InputError, match='has the document "c", which another part has, too'):
        join_features([*parts, write(parts[0].with_name("3.h5"), 3, 6, layout="e2e-coref")], output, merge=False)
    with pytest.raises(InputError, match=r"0-1.h5 does not fit .*rank-0.*its layout is flat and not e2e-coref"):
        join_features([*parts, write(parts[0].with_name("0-1.h5"), 0, 1, layout="flat")], output, merge=True)
    with pytest.raises(InputError, match=r"is not in .*, where the parts of .* have to be"):
        join_features([write(tmp_path / "0.h5", 0, 2)], output, merge=False)
    parts[1].write_bytes(parts[1].read_bytes()[:500])
    with pytest.raises(InputError, match="is not a whole HDF5 file"):
        join_features(parts, output, merge=True)
    assert not output.exists()
    output.write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        join_features(parts, output, merge=False)
    assert output.read_text() == "mine"
    assert all(path.exists() for path in parts)
