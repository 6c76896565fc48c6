"""Small corpora that several tests of the data scripts read."""

import random
import shutil
from pathlib import Path

import pytest
from data_scripts.corpus import CorpusOptions, make_corpus
from elmoc.corpus import Corpus


@pytest.fixture(scope="session")
def small_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """4,000 short sentences over 60 words, of two topics that do not mix."""
    generator = random.Random(0)
    topics = [[f"{name}{number}" for number in range(30)] for name in ("sea", "town")]
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(" ".join(generator.choices(generator.choice(topics), k=6)) + "\n" for _ in range(4000)))
    return path


@pytest.fixture(scope="session")
def _corpus_of_small_text(small_text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus"
    make_corpus(small_text, path, CorpusOptions(tokenised="yes", workers=1))
    return path


@pytest.fixture
def small_corpus(_corpus_of_small_text: Path, tmp_path: Path) -> Corpus:
    """A corpus directory of `small_text`, fresh for every test."""
    shutil.copytree(_corpus_of_small_text, tmp_path / "corpus")
    return Corpus(tmp_path / "corpus")
