"""Small corpora that several tests of the data scripts read."""

import random
import resource
import shutil
from collections.abc import Callable, Iterator
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


@pytest.fixture
def files_of_at_most() -> Iterator[Callable[[int], None]]:
    """Given a number of bytes: no file grows beyond it, which every writer meets as it does a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
