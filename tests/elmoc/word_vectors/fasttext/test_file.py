"""FastText files: all that they say about themselves is checked, and the library reads none that could crash it."""

import os
import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.word_vectors.fasttext.file import vector_width
from elmoc.word_vectors.fasttext.vectors import FastTextVectors
from tests.elmoc.word_vectors.fasttext.files import DIM, FIELDS, KINDS, WORDS


def changed(content: bytes, offset: int, form: str, value: float) -> bytes:
    damaged = bytearray(content)
    struct.pack_into(form, damaged, offset, value)
    return bytes(damaged)


def test_width_of_a_fasttext_file(fasttext_file: Path) -> None:
    assert vector_width(fasttext_file) == 4


@pytest.mark.parametrize("kept", [0, 6, 40, 90, 0.5, 0.999])
def test_truncated_fasttext_files(fasttext_file: Path, tmp_path: Path, kept: float) -> None:
    data = fasttext_file.read_bytes()
    (tmp_path / "v.bin").write_bytes(data[: int(kept * len(data)) if kept < 1 else int(kept)])
    with pytest.raises(InputError, match="truncated"):
        FastTextVectors(tmp_path / "v.bin")


@pytest.mark.parametrize("kind", KINDS)
def test_files_of_every_kind_that_end_anywhere(tmp_path: Path, kind: str) -> None:
    content = KINDS[kind]
    path = tmp_path / "v.bin"
    for kept in [*range(0, len(content), 1 + len(content) // 300), len(content) - 1]:
        path.write_bytes(content[:kept])
        with pytest.raises(InputError, match=r"v\.bin is truncated \([0-9,]+ bytes\): download or train it again"):
            vector_width(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(InputError, match=r"v\.bin is damaged \(1 bytes follow its end\)"):
        vector_width(path)


def test_foreign_and_other_versions_of_fasttext_files(fasttext_file: Path, tmp_path: Path) -> None:
    data = fasttext_file.read_bytes()
    for head in (struct.pack("<2i", 793712314, 13), struct.pack("<2i", 793712314, 10), b"PK\3\4____"):
        (tmp_path / "v.bin").write_bytes(head + data[8:])
        with pytest.raises(InputError, match="is not a fastText"):
            FastTextVectors(tmp_path / "v.bin")


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.bin")
    (tmp_path / "loop.bin").symlink_to("loop.bin")
    with pytest.raises(InputError, match="is not an ordinary file"):
        FastTextVectors(tmp_path / "pipe.bin")
    with pytest.raises(InputError, match="is a directory"):
        FastTextVectors(tmp_path)
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        FastTextVectors(tmp_path / "loop.bin")


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("dim", -1, "dim must be at least 1 and at most 65536, not -1"),
        ("dim", 4, "its input matrix is 24 × 5, where 24 × 4 are expected"),
        ("dim", 2**31 - 1, "dim must be"),
        ("loss", 9, "loss must be at least 1 and at most 4, not 9"),
        ("model", 0, "model must be"),
        ("bucket", 0, "bucket must be at least 1, not 0, with subwords of 3 to 6 letters"),
        ("bucket", -1, "bucket must be at least 0, not -1"),
        ("bucket", 2**31 - 1, "2,147,483,651 rows are more than fastText can have"),
        ("bucket", 10**6, "its input matrix is 24 × 5, where 1,000,004 × 5 are expected"),
        ("maxn", 2**31 - 1, "maxn must be"),
        ("t", float("nan"), "t must be a finite number, not nan"),
        ("entries", 1, "1 entries are not 4 words and 0 labels"),
        ("words", 2**31 - 1, "4 entries are not 2,147,483,647 words and 0 labels"),
        ("pruned", 0, "its dictionary is pruned, but its matrix is not quantised"),
        ("pruned", 2**62, "4,611,686,018,427,387,908 rows are more"),
    ],
)
def test_numbers_of_the_header_that_cannot_be(tmp_path: Path, field: str, value: float, message: str) -> None:
    path = tmp_path / "v.bin"
    path.write_bytes(changed(KINDS["skip-gram"], *FIELDS[field], value))
    with pytest.raises(InputError) as caught:
        vector_width(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_entries_of_the_dictionary_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    word = KINDS["tree"].index(b"cat\0") + 4  # its count is 98, and its type 0
    for offset, form, value, message in (
        (word, "<q", -1, "impossible count"),
        (word, "<q", 2**62, "impossible count"),
        (word, "<q", 100, "do not fall"),
        (word, "<q", 0, "do not fall"),
        (word + 8, "<b", 1, "does not have 4 words and then 0 labels"),
        (word + 8, "<b", 7, "does not have 4 words and then 0 labels"),
    ):
        path.write_bytes(changed(KINDS["tree"], offset, form, value))
        with pytest.raises(InputError, match=message):
            vector_width(path)
    path.write_bytes(KINDS["skip-gram"].replace(b"cat\0", b"cat" * 400_000 + b"\0"))
    with pytest.raises(InputError, match="a word of its dictionary is longer than 1 MiB"):
        vector_width(path)


def test_sizes_of_quantised_matrices_that_cannot_be(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    content = KINDS["quantised whole"]
    pairs = content.index(struct.pack("<2i", 2, 1)) - 8
    flag = pairs + 7 * 8
    codes = 11 * ((DIM + 1) // 2)
    quantiser = flag + 1 + 21 + codes
    for offset, form, value, message in (
        (pairs, "<i", 20, "names buckets that it does not have"),
        (pairs + 4, "<i", 7, "names buckets that it does not have"),
        (pairs, "<i", -1, "names buckets that it does not have"),
        (flag, "<B", 2, "the flag quantised must be 0 or 1, not 2"),
        (flag, "<B", 0, "is pruned, but its matrix is not quantised"),
        (flag + 1, "<B", 9, "bytes of codes"),
        (flag + 2, "<q", 2**40, "its input matrix is 1,099,511,627,776 × 5, where 11 × 5 are expected"),
        (flag + 18, "<i", -1, "its input matrix has -1 bytes of codes"),
        (flag + 18, "<i", 11, "does not fit 5 columns"),
        (quantiser, "<i", 2**31 - 1, "the quantiser of its input matrix does not fit 5 columns"),
        (quantiser + 4, "<i", 4, "does not fit 5 columns"),
        (quantiser + 8, "<i", 0, "does not fit 5 columns"),
        (quantiser + 12, "<i", 5, "does not fit 5 columns"),
    ):
        path.write_bytes(changed(content, offset, form, value))
        with pytest.raises(InputError, match=message):
            vector_width(path)


def test_the_library_reads_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    for kind, content in KINDS.items():
        path.write_bytes(content)
        vectors = FastTextVectors(path)
        rows = vectors.lookup(["the", "theatre", "__label__a", "unseen"])
        assert rows.shape == (4, DIM)
        assert rows[0].any(), kind
        if b"__label__" in content:
            assert not rows[2].any(), "a label is no word"
    alone = KINDS["words alone"]
    path.write_bytes(alone)
    expected = np.frombuffer(alone[input_start(alone) :][: 4 * DIM * 4], np.float32).reshape(4, DIM)
    assert np.array_equal(FastTextVectors(path).lookup(WORDS), expected)


def input_start(alone: bytes) -> int:
    """Where the numbers of the first matrix start, in a file of four words without subwords."""
    return len(alone) - (4 * DIM * 4 + 16 + 1) - 4 * DIM * 4


def test_vectors_that_are_not_finite(tmp_path: Path) -> None:
    content = KINDS["words alone"]
    (tmp_path / "v.bin").write_bytes(changed(content, input_start(content) + 4 * DIM * 2, "<f", float("inf")))
    vectors = FastTextVectors(tmp_path / "v.bin")
    assert np.isfinite(vectors.lookup(["the"])).all()
    with pytest.raises(InputError, match=r"v\.bin: the vector of 'cat' has numbers that are not finite"):
        vectors.lookup(["the", "cat", "cat"])


def test_no_number_crashes_the_library(tmp_path: Path) -> None:
    """Boundary values in every field of every kind of file, and seeded damage elsewhere, in a process of its own."""
    generator = random.Random(0)
    folder = tmp_path / "cases"
    folder.mkdir()
    count = 0
    for content in KINDS.values():
        cases = [
            changed(content, offset, form, value)
            for offset, form in FIELDS.values()
            for value in (-1, 0, 1, 2, 3, 21, 101, 2**31 - 1, -(2**31), *([2**40, 2**63 - 1] if form == "<q" else []))
        ]
        for _ in range(60):
            damaged = bytearray(content)
            for _ in range(generator.choice((1, 2, 8))):
                damaged[generator.randrange(8, min(300, len(content)))] = generator.choice((0, 1, 127, 128, 255))
            cases.append(bytes(damaged))
        for case in cases:
            (folder / f"{count}.bin").write_bytes(case)
            count += 1
    code = """
import resource, sys
from pathlib import Path
from elmoc.errors import InputError
from elmoc.word_vectors.fasttext.vectors import FastTextVectors
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
loaded = 0
for path in sorted(Path(sys.argv[1]).iterdir()):
    print(path, file=sys.stderr)
    try:
        FastTextVectors(path).lookup(["the", "theatre", "__label__b", "", "</s>", "x" * 500])
        loaded += 1
    except InputError as error:
        assert str(path) in str(error), error
print(loaded)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert 0.2 * count < int(done.stdout) < 0.8 * count
