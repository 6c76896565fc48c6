"""Fixtures of the probe tests: tiny data that they share."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
from downstream.__main__ import main
from elmoc.corpus import BEGIN, END
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.subwords import Subwords, SubwordVectors
from tests.elmoc.features.sentences import write_sentences
from tests.tiny import tiny_model

# ten sentences; the same words have other tags in other places, so that a word alone does not give its tag away
TEN_SENTENCES = """\
Ada/B-PER Lovelace/I-PER met/O Charles/B-PER Babbage/I-PER in/O London/B-LOC ./O
London/B-PER wrote/O novels/O ./O
The/O Bank/B-ORG of/I-ORG England/I-ORG stands/O in/O London/B-LOC ./O
England/B-LOC won/O ./O
Jack/B-PER London/I-PER left/O Oakland/B-LOC ./O
Nobody/O came/O ./O
Oakland/B-ORG Museum/I-ORG opened/O on/O Oak/B-LOC Street/I-LOC ./O
Charles/B-PER of/I-PER Oakland/I-PER
in/O Babbage/B-LOC
Stop/O"""


def columns(sentences: str = TEN_SENTENCES) -> str:
    """`word/TAG word/TAG` lines as tab-separated columns."""
    return "".join(line.replace("/", "\t").replace(" ", "\n") + "\n\n" for line in sentences.splitlines())


def words_of(sentences: str = TEN_SENTENCES) -> list[list[str]]:
    return [[pair.split("/")[0] for pair in line.split(" ")] for line in sentences.splitlines()]


def write_random_features(path: Path, sentences: list[list[str]], *, width: int = 12, model: str = "m1") -> None:
    """A feature file of three layers of random numbers."""
    generator = np.random.default_rng(7)
    states = (generator.standard_normal((3, len(words), width)).astype(np.float32) for words in sentences)
    pairs = list(zip(map(" ".join, sentences), states, strict=True))
    write_sentences(path, {"model": model, "word_vectors": "v1"}, pairs)


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    """A file of ten sentences in columns."""
    path = tmp_path / "ten.conll"
    path.write_text(columns(), encoding="utf-8")
    return path


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """A feature file of random numbers for these sentences."""
    path = tmp_path / "features.h5"
    write_random_features(path, words_of())
    return path


@pytest.fixture
def subword_model(tmp_path: Path) -> Path:
    """A model directory with random weights that reads the characters of words, and `in` as one."""
    units = [BEGIN, *sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()), "in", END]
    generator = torch.Generator().manual_seed(1)
    stored = SubwordVectors(torch.randn(len(units), 6, generator=generator), Subwords(units, [("i", "n")]))
    write_model_directory(tmp_path / "subwords", replace(tiny_model(vectors=stored), stored_vectors=stored))
    return tmp_path / "subwords"


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command that has to fail, with one line on standard error; returns that line."""

    def run(*arguments: object) -> str:
        status = main([str(argument) for argument in arguments])
        message = capsys.readouterr().err
        assert status == 1
        assert message.startswith("error: ")
        assert message.count("\n") == 1, message
        return message

    return run
