"""Foreign files given for word vectors: each is called what it is, and damaged vectors are left to their readers."""

import gzip
import io
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from elmoc.errors import InputError
from elmoc.word_vectors.foreign import describe_foreign
from elmoc.word_vectors.opening import open_word_vectors

VECTORS = b"the 0.5 -1e-3 2\ncat 1 2 3\n"
TEXT = "It rained all day in 1984 .\nWe – and they – left .\n".encode()
PAGE = b"\n<!doctype HTML><title>Not found</title>"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
PICKLE = pickle.dumps({"vectors": [1.0]}, protocol=4)


def name_of(value: str | bytes) -> str:
    """Of a parameter in a test's name, which leaves contents out: those of archives have the time in them."""
    return value if isinstance(value, str) else "content"


def word2vec() -> bytes:
    rows = np.random.default_rng(1).normal(size=(40, 50)).astype("<f4")
    return b"40 50\n" + b"".join(f"w{index} ".encode() + row.tobytes() + b"\n" for index, row in enumerate(rows))


def zipped() -> bytes:
    with zipfile.ZipFile(content := io.BytesIO(), "w") as archive:
        archive.writestr("v.vec", VECTORS)
    return content.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "v.bin",
            word2vec(),
            "v.bin is of word2vec's binary format: write it as text, in Python with Gensim by `Keyed",
        ),
        ("v.vec", word2vec(), "v.vec is of word2vec's binary format"),
        ("v.bin.gz", gzip.compress(word2vec()), "v.bin.gz is of word2vec's binary format"),
        ("v.bin", VECTORS, "v.bin holds word vectors as text: let its name end in .vec"),
        ("v", b"2 3\n" + VECTORS, "v holds word vectors as text: let its name end in .vec"),
        ("v.bin", TEXT, "v.bin is text, but not of word vectors"),
        ("v.txt", TEXT, "v.txt is text, but not of word vectors"),
        ("v.vec.gz", gzip.compress(TEXT), "v.vec.gz is text, but not of word vectors"),
        ("v.bin", gzip.compress(VECTORS), "v.bin is compressed with gzip: unpack it"),
        ("v.vec", zipped(), "v.vec is a zip archive: unpack it"),
        ("v.zip", zipped(), "v.zip is a zip archive: unpack it"),
        ("v.bin", PAGE, "v.bin is a page of HTML: download the file itself"),
        ("v.txt", PAGE, "v.txt is a page of HTML: download the file itself"),
        ("v.bin", POINTER, "v.bin is a pointer of Git LFS, in place of the file: download that (git lfs pull)"),
        ("v.vec", POINTER, "v.vec is a pointer of Git LFS"),
        ("v.vec", b"the\t0.5 .5 1\n", "v.vec has words and numbers that are not separated by single spaces"),
        ("v.vec", VECTORS.replace(b" ", b"\t"), "v.vec has words and numbers that are not separated by single spaces"),
        ("v.bin", VECTORS.replace(b" ", b","), "v.bin has words and numbers that are not separated by single spaces"),
        ("v.txt", b"2;3\nthe; .5; -.25; +1\n", "v.txt has words and numbers that are not separated by single spaces"),
        ("v.vec", b"the  .5  -.25  +1\n", "v.vec has words and numbers that are not separated by single spaces"),
        ("v.txt", b"it rained, in 1984, 5 times\n", "v.txt is text, but not of word vectors"),
        ("v.model", PICKLE, "v.model is a pickle, as Gensim saves models: write its vectors as text"),
    ],
    ids=name_of,
)
def test_foreign_files(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        open_word_vectors(tmp_path / name)
    assert str(caught.value).startswith(f"{tmp_path}/{message}")


def test_fasttext_files_by_other_names(fasttext_file: Path, tmp_path: Path) -> None:
    (tmp_path / "v.vec").write_bytes(fasttext_file.read_bytes())
    (tmp_path / "v.bin.gz").write_bytes(gzip.compress(fasttext_file.read_bytes()))
    for name, advice in (("v.vec", ""), ("v.bin.gz", "unpack it (gunzip), and ")):
        with pytest.raises(InputError) as caught:
            open_word_vectors(tmp_path / name)
        assert str(caught.value) == f"{tmp_path}/{name} is a file of fastText: {advice}let its name end in .bin"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.vec", b"2 3\n" + VECTORS[:-4], "1 numbers where 3 are expected, the file may be truncated"),
        ("v.vec", b"2 3\nthe .5 -.25 +0.5\ncat .5 -.25\n", "line 3: 2 numbers where 3 are expected"),
        ("v.vec", b"the +1 -.5e-3 5.\ncat .5 -.25 x\n", "line 2: could not convert string to float: 'x'"),
        ("v.vec", b"2 3\n" + VECTORS.replace(b"c", b"\xff"), "line 3: byte 0xff is not valid UTF-8"),
        ("v.vec", b"2 3\n" + VECTORS.replace(b"1e", b"\x00"), "could not convert string to float"),
        ("v.txt", b"the nan 1\n", "line 1 has numbers that are not finite"),
        ("v.txt", b"", "holds no vectors"),
        ("v.vec.gz", gzip.compress(VECTORS * 99)[:-9], "the gzip data is truncated or damaged"),
        ("v.bin", struct.pack("<2i", 793712314, 13), "is not a fastText .bin file (of version 11 or 12)"),
        ("v.bin", struct.pack("<2i", 793712314, 12), "is truncated (8 bytes)"),
        ("v.bin", bytes(range(256)), "is not a fastText .bin file"),
        ("v.npy", bytes(range(256)), "word vectors are a fastText .bin file, a text .vec"),
    ],
    ids=name_of,
)
def test_what_is_as_its_name_says_or_unknown(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert describe_foreign(str(tmp_path / name)) is None
    with pytest.raises(InputError) as caught:
        open_word_vectors(tmp_path / name)
    assert message in str(caught.value)
