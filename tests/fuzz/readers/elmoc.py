"""Readers of `elmoc`: word vectors, feature files, sentences and compiled kernels."""

import io
import os
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import h5py
import numpy as np

from downstream.inputs.feature_states import FeatureStates
from downstream.inputs.sentence import make_sentence
from elmoc.features.dump import dump_features
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import write_features
from elmoc.kernels import cpu
from elmoc.kernels.compiling import KernelBuildError
from elmoc.looking.uses import find_uses
from elmoc.model import ElmoC
from elmoc.word_vectors.sources import open_word_vectors
from tests.fuzz.mutations.hdf5 import HDF5, MAP
from tests.fuzz.mutations.json_tree import JSON
from tests.fuzz.mutations.raw import INTEGERS, RAW, header_integers
from tests.fuzz.mutations.text import TEXT, compressed
from tests.fuzz.readers.reader import Reader, consistent, same

UNFINISHED = {"progress.json": JSON, "notes.jsonl": RAW, "changes.0": RAW, "changes.1": RAW}
WORDS = ["w1", "w2", "unseen"]
FASTTEXT_HEADER = header_integers(*range(0, 56, 4), *range(64, 76, 4))
FASTTEXT_LONGS = header_integers(56, 76, 84, size=8)


def read_vectors(file: str) -> Any:
    def read(folder: Path) -> np.ndarray:
        return open_word_vectors(str(folder / "vectors" / file)).lookup(WORDS)

    return read


def finite(result: np.ndarray, expected: np.ndarray) -> bool:
    """Vectors of some width: a damaged number is another number, which nothing tells apart."""
    return result.dtype == np.float32 and len(result) == len(expected) and bool(np.isfinite(result).all())


def read_features(folder: Path) -> Any:
    """Every sentence, mapped into memory, has to be what HDF5 itself reads."""
    path = folder / "features/layers.h5"
    with FeatureFile(path) as features:
        views = [features.view(index) for index in range(min(4, len(features)))]
        found = [features.find(words.split()) for words in ("Stop", "no such sentence")]
        with h5py.File(path) as file:
            assert len(features) == len(file) - (MAP in file)
            for index, view in enumerate(views):
                np.testing.assert_array_equal(view, file[str(index)][()])
    states = FeatureStates(path, sentences=[make_sentence(["Stop"], file=path, line=1)])
    states.lookup([make_sentence(["Stop"], file=path, line=1)])
    states.describe()
    return views, found


def write_unfinished(path: Path, *, stop_after: int | None = None) -> None:
    """Write a feature file, or go on with it; or stop, and leave what was written up to the last checkpoint."""
    shape = FeatureShape(layers=2, width=4, dtype="float32", single=False)
    with suppress(KeyboardInterrupt), write_features(path, {"model": "m"}, shape=shape, resume=True) as writer:
        for index in range(writer.sentences, 5):
            writer.add(Sentence([f"w{index}", "."]), np.full((2, 2, 4), index, np.float32))
            writer.checkpoint()
            if index == stop_after:
                raise KeyboardInterrupt


def read_layout(name: str) -> Any:
    """Every sentence has to be what HDF5 itself reads, and the documents have all of them."""

    def read(folder: Path) -> None:
        path = folder / f"features/{name}.h5"
        with FeatureFile(path) as features, h5py.File(path) as file:
            documents = features._layout.documents() or {"": range(len(features))}
            assert sum(map(len, documents.values())) == len(features)
            for document, indices in documents.items():
                for place, index in enumerate(indices):
                    array, words = features[index], features._layout.words(index)
                    assert array.shape[-2] == words
                    if name == "flat":
                        start = int(file["offsets"][index])
                        theirs = np.moveaxis(file["states"][start : start + words], 1, 0)
                    else:
                        theirs = np.moveaxis(file[document][str(place)][()], 2, 0)
                    np.testing.assert_array_equal(array, theirs)

    return read


def set_attribute_only(data: bytes, random: Random) -> bytes:
    """Change an attribute that says how the file is read."""
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as opened:
        name = random.choice(("layout", "format_version", "single"))
        values = ("allennlp", "bilm", "e2e-coref", "flat", "x", 1, 2, 0.5, True, [1, 2], b"flat", h5py.Empty("f4"))
        opened.attrs[name] = random.choice(values)
    return file.getvalue()


def go_on_with_features(folder: Path) -> Any:
    """All sentences, as if nobody had stopped."""
    path = folder / "features/left.h5"
    write_unfinished(path)
    with FeatureFile(path) as features:
        found = [features.find([f"w{index}", "."]) for index in range(len(features))]
        return [features[index] for index in range(len(features))], found


def right_features(result: Any, expected: Any) -> bool:
    """The sentence that was looked for has its shape."""
    views, (index, nothing) = result
    return nothing is None and views[index].shape[-2] == 1


@lru_cache
def model_in(folder: Path) -> ElmoC:
    return ElmoC.from_pretrained(folder / "run")


def read_sentences(name: str) -> Any:
    def read(folder: Path) -> None:
        source, output = folder / "text" / name, folder / "out/features.h5"
        dump_features(model_in(folder), source, output, allow_empty=True)
        lines = [line.split() for line in text_lines(source)]
        with FeatureFile(output) as features:
            assert len(features) == len(lines)
            assert [features.view(index).shape[1] for index in range(len(lines))] == list(map(len, lines))

    return read


def read_uses(folder: Path) -> Any:
    """The uses of a word have to be where the lines have them."""
    source = folder / "text/tokenised.txt"
    found = find_uses(source, "w1", most=10**6)
    lines = [line.split() for line in text_lines(source)]
    assert found.count == sum(line.count("w1") for line in lines)
    for use in found.uses:
        line = lines[use.line - 1]
        assert use.tokens[use.position] == "w1"
        assert any(use.tokens == tuple(line[start : start + len(use.tokens)]) for start in range(len(line)))


def text_lines(path: Path) -> list[str]:
    """The lines of a text file, as the documentation defines them."""
    import gzip

    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    lines = text.split("\n")
    return [line.rstrip("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def load_kernels(folder: Path) -> Any:
    """The cache stands in a new place, as the system knows a library by its path."""
    cache = tempfile.mkdtemp(dir=folder / "out")
    os.rename(folder / "cache/elmoc", f"{cache}/elmoc")
    try:
        with patch.dict(os.environ, XDG_CACHE_HOME=cache):
            loaded, _ = cpu.load.__wrapped__("sh compiler", cpu.SOURCE)
    except KernelBuildError:  # the reference is run instead
        return True
    loaded.has_threads()
    return Path(loaded._name).read_bytes() == (folder / "good.so").read_bytes()


READERS = (
    Reader(
        name="fastText",
        target="vectors/small.bin",
        mutations=(*[FASTTEXT_HEADER] * len(INTEGERS), *[FASTTEXT_LONGS] * 4, *RAW),
        read=read_vectors("small.bin"),
        right=finite,
    ),
    Reader(
        name="fastText quantised",
        target="vectors/quantised.bin",
        mutations=(*[FASTTEXT_HEADER] * len(INTEGERS), *[FASTTEXT_LONGS] * 4, *RAW),
        read=read_vectors("quantised.bin"),
        right=finite,
        share=0.5,
    ),
    Reader(
        name="fastText index",
        target="vectors/small.bin.index",
        mutations=RAW,
        read=read_vectors("small.bin"),  # with a damaged index, too
        right=same,
        share=0.5,
    ),
    Reader(
        name="text vectors", target="vectors/small.vec", mutations=TEXT, read=read_vectors("small.vec"), right=finite
    ),
    Reader(
        name="text vectors gz",
        target="vectors/small.vec.gz",
        mutations=(compressed,),
        read=read_vectors("small.vec.gz"),
        right=finite,
    ),
    Reader(name="features", target="features/layers.h5", mutations=HDF5, read=read_features, right=right_features),
    *(
        Reader(
            name=f"features {layout}",
            target=f"features/{layout}.h5",
            mutations=(*RAW, *RAW, set_attribute_only),
            read=read_layout(layout),
            right=consistent,
        )
        for layout in ("flat", "documents")
    ),
    *(
        Reader(
            name=f"unfinished features {file.partition('.')[0]}",
            target=f"features/.left.h5.unfinished/{file}",
            mutations=mutations,
            read=go_on_with_features,
            names=(file,),
            writes=True,
            share=0.5,
        )
        for file, mutations in UNFINISHED.items()
    ),
    Reader(
        name="sentences",
        target="text/tokenised.txt",
        mutations=TEXT,
        read=read_sentences("tokenised.txt"),
        right=consistent,
        share=0.5,
    ),
    Reader(
        name="sentences gz",
        target="text/tokenised.txt.gz",
        mutations=(compressed,),
        read=read_sentences("tokenised.txt.gz"),
        right=consistent,
        share=0.5,
    ),
    Reader(
        name="uses of a word",
        target="text/tokenised.txt",
        mutations=TEXT,
        read=read_uses,
        right=consistent,
        share=0.5,
    ),
    Reader(
        name="kernel library",
        target="cache/elmoc/*.so",
        mutations=RAW,
        read=load_kernels,
        right=same,
        share=0.3,
        writes=True,
    ),
)
