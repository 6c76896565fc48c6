"""HDF5 files: what is damaged, elsewhere or not there is refused in words, and nothing crashes or runs for ever."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.features.converting.convert import convert_features
from elmoc.features.converting.describe import describe
from elmoc.features.layouts.sentence import Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import write_features
from tests.elmoc.features.sentences import LINES, shape_of, states_of, write_sentences

Change = Callable[[h5py.File], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "features.h5"
    sentences = [(line, states_of(index, len(line.split()))) for index, line in enumerate(LINES)]
    write_sentences(target, {"model": "abc", "layers": ["0", "1", "2"]}, sentences)
    return target


def external_link(file: h5py.File) -> None:
    with h5py.File(Path(file.filename).with_name("other.h5"), "w") as other:
        other["0"] = states_of(7, 4)
    file["1"] = h5py.ExternalLink("other.h5", "0")


def external_storage(file: h5py.File) -> None:
    raw = Path(file.filename).with_name("raw.bin")
    states_of(7, 4).tofile(raw)
    file.create_dataset("1", (3, 4, 4), "f4", external=[(str(raw), 0, raw.stat().st_size)])


def virtual_dataset(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((3, 4, 4), "f4")
    layout[:] = h5py.VirtualSource("other.h5", "0", (3, 4, 4))
    file.create_virtual_dataset("1", layout)


def sparse(file: h5py.File) -> None:
    file.create_dataset("1", (3, 10**12, 4), "f4", chunks=(3, 100, 4))[:, 5] = 1


def half_of_the_chunks(file: h5py.File) -> None:
    file.create_dataset("1", (3, 4, 4), "f4", chunks=(3, 2, 4))[:, :2] = 1


def missing_filter(file: h5py.File) -> None:
    file.create_dataset("1", data=states_of(1, 3), compression="gzip")
    file.flush()
    path = Path(file.filename)
    content = path.read_bytes()
    place = content.index(b"deflate\0") - 8  # the number of the filter stands before its name
    path.write_bytes(content[:place] + (32000).to_bytes(2, "little") + content[place + 2 :])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (external_link, '"1" is a link, which may lead to another file'),
        (lambda file: file.__setitem__("1", h5py.SoftLink("/0")), '"1" is a link'),
        (external_storage, 'the data of "1" are in other files'),
        (virtual_dataset, 'the data of "1" are in other files'),
        (sparse, '"1" says that it has 48.0 TB, which the file does not hold'),
        (half_of_the_chunks, '"1" says that it has 192 B, which the file does not hold'),
        (lambda file: file.create_dataset("1", (3, 1000, 4), "f4"), '"1" says that it has 48.0 KB'),
        (missing_filter, "filter"),
        (lambda file: file.create_dataset("1", data=np.ones((3, 2, 4), "i4")), "no floating-point numbers"),
        (lambda file: file.create_dataset("1", data=["a", "b"]), "no floating-point numbers"),
        (lambda file: file.create_dataset("1", data=np.ones(3, [("a", "f4"), ("b", "i2")])), "no floating-point"),
        (
            lambda file: file.create_dataset("1", data=np.full((3, 2, 4), file.ref, h5py.ref_dtype)),
            "no floating-point numbers",
        ),
        (lambda file: file.create_dataset("1", data=np.ones((3, 2, 4), "longdouble")), "no floating-point numbers"),
        (lambda file: file.create_dataset("1", data=states_of(1, 3, width=5)), "the shape 3 × 3 × 5, not 3 layers"),
        (lambda file: file.create_dataset("1", data=states_of(1, 3, layers=2)), "the shape 2 × 3 × 4, not 3 layers"),
        (lambda file: file.create_dataset("1", data=np.ones(4, "f4")), "the shape 4, not 3 layers of width 4"),
        (lambda file: file.create_dataset("1", data=np.float32(1)), "not 3 layers of width 4"),
        (lambda file: file.create_group("1"), "sentence 1 that cannot be read"),
        (lambda file: file.create_dataset("1", data=np.full((3, 2, 4), np.nan, "f4")), "numbers that are not finite"),
        (lambda file: file.create_dataset("1", data=np.full((3, 2, 4), np.inf, ">f8")), "numbers that are not finite"),
    ],
)
def test_a_sentence_that_is_elsewhere_or_not_whole(path: Path, change: Change, message: str) -> None:
    with h5py.File(path, "a") as file:
        del file["1"]
        change(file)
    with FeatureFile(path) as features:
        np.testing.assert_array_equal(features[0], states_of(0, 4))
        with pytest.raises(InputError, match=message) as caught:
            features[1]
        with pytest.raises(InputError, match=message):
            features.check()
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).endswith("write it again with `elmoc dump-features`")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [external_link, sparse, virtual_dataset])
def test_the_first_sentence_is_looked_at_when_the_file_is_opened(path: Path, change: Change) -> None:
    with h5py.File(path, "a") as file:
        del file["1"], file["0"]
        change(file)
        file.move("1", "0")
    with pytest.raises(InputError, match=r'has no dataset "0" of numbers.*not a feature file'):
        FeatureFile(path)


def test_a_map_that_is_elsewhere(path: Path) -> None:
    with h5py.File(path, "a") as file:
        del file["sentence_to_index"]
        file["sentence_to_index"] = h5py.SoftLink("/0")
    with FeatureFile(path) as features, pytest.raises(InputError, match="is a link, which may lead to another file"):
        features.find(["a"])


@pytest.mark.parametrize("value", [np.arange(3), True, "ü", ["a", "b"]])
def test_attributes_are_text_or_numbers(path: Path, value: Any) -> None:
    with h5py.File(path, "a") as file:
        file.attrs["other"] = value
    with FeatureFile(path) as features:
        assert np.array_equal(features.attributes["other"], value)


ODD_ATTRIBUTES: dict[str, tuple[Any, Any]] = {
    "fixed length": (np.bytes_(b"x\xff \xc3\xa9"), "x\\xff é"),
    "letters": (np.array([[b"a", b"b"]]), [["a", "b"]]),
    "strings": (np.array([b"\xff", "é".encode()], h5py.string_dtype()), ["\\xff", "é"]),
    "NUL": (np.bytes_(b"a\0b"), "a\\x00b"),
    "no strings": (np.array([], h5py.string_dtype()), []),
    "long": (np.longdouble(1) / 4, 0.25),
    "longs": (np.ones(2, np.longdouble), [1.0, 1.0]),
}
"""What other tools write, and what it is read as."""


def test_attributes_of_other_tools_can_be_written_again(path: Path, tmp_path: Path) -> None:
    with h5py.File(path, "a") as file:
        for name, (value, _) in ODD_ATTRIBUTES.items():
            file.attrs.create(name, value, dtype=value.dtype)
        file.attrs["empty"] = h5py.Empty("f4")
        number = h5py.h5a.create(file.id, b"\xff", h5py.h5t.NATIVE_INT32, h5py.h5s.create(h5py.h5s.SCALAR))
        number.write(np.array(3, "i4"))
        file.attrs["layers"] = np.array([b"0", b"1", b"2"])
    expected = {name: found for name, (_, found) in ODD_ATTRIBUTES.items()} | {"\\xff": 3, "layers": ["0", "1", "2"]}
    convert_features(path, tmp_path / "again.h5", layout="flat")
    for each in (path, tmp_path / "again.h5"):
        with FeatureFile(each) as features:
            assert features.attributes["empty"] == h5py.Empty("f4")
            assert {name: np.asarray(features.attributes[name]).tolist() for name in expected} == expected
            assert dict(describe(features, count_words=False))["layers"].startswith("0, 1, 2: ")


@pytest.mark.parametrize("dtype", [h5py.ref_dtype, h5py.vlen_dtype("i4"), np.dtype([("a", "i4")])])
def test_attributes_of_other_types_are_refused(path: Path, dtype: np.dtype) -> None:
    with h5py.File(path, "a") as file:
        space = h5py.h5s.create_simple((1,))
        h5py.h5a.create(file.id, b"other", h5py.h5t.py_create(dtype, logical=True), space)
    with pytest.raises(InputError, match="other is neither text nor numbers"):
        FeatureFile(path)


def test_damaged_strings_neither_crash_nor_hang(path: Path, tmp_path: Path) -> None:
    """The library itself runs for ever, or past the end, on sizes of zero and on sizes beyond a collection's end."""
    code = """
import sys
from pathlib import Path
from elmoc.errors import InputError
from elmoc.features.converting.convert import convert_features
from elmoc.features.converting.describe import describe
from elmoc.features.reader import FeatureFile
content, target = Path(sys.argv[1]).read_bytes(), Path(sys.argv[2])
heaps = [place for place in range(len(content)) if content[place:].startswith(b"GCOL")]
assert heaps
refused = 0
for heap in heaps:
    last = heap + int.from_bytes(content[heap + 8:heap + 16], "little")
    for place in [*range(heap, heap + 96), *range(last - 40, last)]:
        for byte in (0, 1, 127, 255):
            target.write_bytes(content[:place] + bytes([byte]) + content[place + 1:])
            try:
                with FeatureFile(target) as file:
                    file.find(["a"])
            except InputError as error:
                assert str(target) in str(error)
                refused += 1
print(refused)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "damaged.h5")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 100


def test_files_that_no_one_closes(path: Path) -> None:
    """The library would read them at the end of the process, when there is no Python left to read through."""
    code = "import sys; from elmoc import FeatureFile; file = FeatureFile(sys.argv[1]); view = file.view(0)"
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h5")
    (tmp_path / "empty.h5").touch()
    with pytest.raises(InputError, match="is a directory"):
        FeatureFile(tmp_path)
    with pytest.raises(InputError, match="is not an ordinary file"):
        FeatureFile(tmp_path / "pipe.h5")
    with pytest.raises(InputError, match=r"empty\.h5 is not a whole HDF5 file"):
        FeatureFile(tmp_path / "empty.h5")


@pytest.mark.parametrize(("function", "number"), [("builtins.open", errno.EACCES), ("mmap.mmap", errno.EMFILE)])
def test_an_error_of_the_system_is_no_damage(
    path: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int
) -> None:
    """Nobody is told to write a file again that only the permission to read is missing of."""

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(function, refuse)
    with pytest.raises(OSError, match=os.strerror(number)) as raised:
        FeatureFile(path)
    monkeypatch.undo()
    assert raised.value.filename == str(path)


def test_a_whole_file_is_checked(path: Path, tmp_path: Path) -> None:
    seen: list[int] = []
    with FeatureFile(path) as features:
        features.check(seen.append)
    assert sum(seen) == len(LINES)
    with write_features(tmp_path / "other.h5", {}, shape=shape_of(states_of(0, 1))) as writer:
        for index, line in enumerate(LINES):
            tokens = line.split() + ["more"] * (index == 2)
            writer.add(Sentence(tokens, line), states_of(index, len(tokens)))
    with FeatureFile(tmp_path / "other.h5") as features, pytest.raises(InputError) as caught:
        features.check()
    assert 'its map says that sentence 2 is "Zürich — naïve 😀", of 4 words, but it has 5' in str(caught.value)
    write_sentences(tmp_path / "no map.h5", {}, [("a", states_of(0, 1))], sentence_map=False)
    with FeatureFile(tmp_path / "no map.h5") as features:
        features.check()
