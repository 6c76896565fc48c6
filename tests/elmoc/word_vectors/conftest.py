"""A fastText file for the tests of its header and of its vectors."""

from pathlib import Path

import pytest
from data_scripts.train_fasttext import FastTextOptions, train_fasttext
from tests.elmoc.test_corpus import write_corpus


@pytest.fixture(scope="session")
def fasttext_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny trained fastText model: three words and the end of the sentence."""
    folder = tmp_path_factory.mktemp("fasttext")
    corpus = write_corpus(folder / "corpus").path
    sizes = {"dim": 4, "epochs": 1, "buckets": 20, "min_count": 1, "workers": 1}
    train_fasttext(FastTextOptions(corpus=corpus, output=folder / "v.bin", **sizes))
    return folder / "v.bin"
