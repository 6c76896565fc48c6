"""Readers of `elmoc`: word vectors, feature files, sentences and compiled kernels."""

import json
import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import h5py
import numpy as np

from downstream.inputs.feature_states import FeatureStates
from downstream.inputs.sentence import make_sentence
from elmoc.corpus import Corpus
from elmoc.features.converting.convert import convert_features
from elmoc.features.dumping.dump import DumpOptions, dump_features
from elmoc.features.reader import FeatureFile
from elmoc.kernels import cpu
from elmoc.kernels.compiling import KernelBuildError
from elmoc.looking.uses import find_uses
from elmoc.model import ElmoC
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.subwords import Subwords, SubwordVectors
from tests.fuzz.mutations.arrays import SAFETENSORS
from tests.fuzz.mutations.hdf5 import GROUPS, HDF5, LINKS, MAP
from tests.fuzz.mutations.json_tree import JSON, JSON_LINES
from tests.fuzz.mutations.raw import INTEGERS, RAW, header_integers
from tests.fuzz.mutations.text import TEXT, compressed
from tests.fuzz.readers.reader import Reader, consistent, same

WORDS = ["w1", "w2", "unseen"]
FASTTEXT_HEADER = header_integers(*range(0, 56, 4), *range(64, 76, 4))
FASTTEXT_LONGS = header_integers(56, 76, 84, size=8)


def read_vectors(file: str) -> Any:
    def read(folder: Path) -> np.ndarray:
        return open_word_vectors(str(folder / "vectors" / file)).lookup(WORDS)

    return read


def read_subword_vectors(folder: Path) -> np.ndarray:
    vectors = open_word_vectors(str(folder / "vectors/subwords.safetensors"))
    assert isinstance(vectors, SubwordVectors)
    found = [vectors.lookup([unit for word in words for unit in word]) for words in vectors.subwords.split([WORDS])]
    return np.concatenate(found)[:1]


def read_merges(folder: Path) -> Any:
    return Subwords.of_corpus(Corpus(folder / "subwords")).split([WORDS])


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


def read_layout(name: str) -> Any:
    """Every sentence, its words and documents, and the check of the whole file."""

    def read(folder: Path) -> Any:
        with FeatureFile(folder / "features" / name) as features:
            lengths = features.lengths[:9].tolist()  # refuses sentences without an axis of words, which views have
            views = [features.view(index) for index in range(len(lengths))]
            assert [view.shape[-2] for view in views] == lengths
            found = [features[index] for index in range(len(views))]
            features.check()
            return found, dict(features.documents), features.layers, features.width

    return read


def right_shapes(result: Any, expected: Any) -> bool:
    """Layers and width fit: a damaged number is another number, and where a sentence ends is a number, too."""
    found, _, layers, width = result
    return all(each.shape[0] == layers and each.shape[-1] == width for each in found)


def right_parts(result: Any, expected: Any) -> bool:
    """What the parts have, which are not damaged."""
    return same(result[0], expected[0])


def convert_documents(folder: Path) -> None:
    output = folder / "out/converted.h5"
    documents = folder / "features/documents.jsonl"
    convert_features(folder / "features/layers.h5", output, layout="e2e-coref", documents=documents)
    with FeatureFile(output) as features:
        assert len(features.documents) == 2


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
        dump_features(model_in(folder), source, output, DumpOptions(allow_empty=True))
        lines = [line.split() for line in text_lines(source)]
        with FeatureFile(output) as features:
            assert len(features) == len(lines)
            assert [features.view(index).shape[1] for index in range(len(lines))] == list(map(len, lines))

    return read


def dump_documents(folder: Path) -> None:
    source, output = folder / "text/documents.jsonl", folder / "out/features.h5"
    dump_features(model_in(folder), source, output, DumpOptions(allow_empty=True, layout="flat"))
    documents = [json.loads(line) for line in text_lines(source) if line.strip()]
    lengths = [len(sentence) for document in documents for sentence in document["sentences"]]
    with FeatureFile(output) as features:
        assert [features.view(index).shape[1] for index in range(len(features))] == lengths


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
    Reader(
        name="subword vectors",
        target="vectors/subwords.safetensors",
        mutations=SAFETENSORS,
        read=read_subword_vectors,
        right=finite,
    ),
    Reader(name="subwords", target="subwords/subwords.json", mutations=JSON, read=read_merges),
    Reader(name="features", target="features/layers.h5", mutations=HDF5, read=read_features, right=right_features),
    *(
        Reader(
            name=f"features {layout}",
            target=f"features/{layout}.h5",
            mutations=GROUPS,
            read=read_layout(f"{layout}.h5"),
            right=right_shapes,
        )
        for layout in ("bilm", "e2e-coref", "flat")
    ),
    *(
        Reader(
            name=f"features linked {layout}",
            target=f"features/linked-{layout}.h5",
            mutations=LINKS,
            read=read_layout(f"linked-{layout}.h5"),
            right=right_parts,
            names=(f"linked-{layout}.h5",),
        )
        for layout in ("allennlp", "flat")
    ),
    *(
        Reader(
            name=f"features part {layout}",
            target=f"features/linked-{layout}.h5.parts/1.h5",
            mutations=GROUPS,
            read=read_layout(f"linked-{layout}.h5"),
            right=right_shapes,
            share=0.5,
        )
        for layout in ("allennlp", "flat")
    ),
    Reader(
        name="documents",
        target="features/documents.jsonl",
        mutations=TEXT,
        read=convert_documents,
        right=consistent,
        names=("documents.jsonl", "layers.h5"),
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
        name="documents to dump",
        target="text/documents.jsonl",
        mutations=JSON_LINES,
        read=dump_documents,
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
