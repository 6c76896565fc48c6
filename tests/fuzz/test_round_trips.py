"""Round trips: whatever is written is read again as it was, be the words and numbers what they may."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as some

from data_scripts.build_corpus import build_corpus
from elmoc.corpus import BEGIN, END, Corpus
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import write_features
from elmoc.files.records import read_json, write_json

FEW = settings(max_examples=20, deadline=None, derandomize=True)
CHARACTERS = some.characters(codec="utf-8")
WORD = some.text(CHARACTERS, min_size=1, max_size=5).filter(
    lambda word: word.split() == [word] and word not in (BEGIN, END)
)
SENTENCES = some.lists(some.lists(WORD, min_size=1, max_size=6), min_size=2, max_size=8)
VALUE = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(2**63), 2**63 - 1)
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(CHARACTERS),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(CHARACTERS), inner, max_size=4),
    max_leaves=20,
)


@FEW
@given(VALUE)
def test_json(value: Any) -> None:
    with TemporaryDirectory() as folder:
        write_json(f"{folder}/a.json", value)
        assert read_json(f"{folder}/a.json", advice="make it again") == value


@FEW
@given(SENTENCES)
def test_a_corpus_holds_its_text(sentences: list[list[str]]) -> None:
    with TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text("".join(" ".join(words) + "\n" for words in sentences), encoding="utf-8", newline="\n")
        build_corpus([text], Path(folder, "corpus"), shard_tokens=1)
        corpus = Corpus(f"{folder}/corpus")
        ids = [row for shard in corpus.train + corpus.held_out for row in corpus.read_shard(shard)]
        assert [corpus.lexicon[row] for row in ids] == [word for words in sentences for word in (BEGIN, *words, END)]


@FEW
@given(SENTENCES, some.sampled_from(("float16", "float32")), some.integers(0, 2**32))
def test_a_feature_file_holds_its_sentences(sentences: list[list[str]], dtype: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    states = [generator.standard_normal((2, len(words), 3)).astype(dtype) for words in sentences]
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.h5")
        shape = FeatureShape(layers=2, width=3, dtype=dtype, single=False)
        with write_features(path, {"model": "m"}, shape=shape) as writer:
            for words, array in zip(sentences, states, strict=True):
                writer.add(Sentence(words), array)
        with FeatureFile(path) as features:
            assert len(features) == len(sentences)
            for index, (words, array) in enumerate(zip(sentences, states, strict=True)):
                np.testing.assert_array_equal(features[index], array)
                found = features.find(words)
                assert found is not None
                assert sentences[found] == words
