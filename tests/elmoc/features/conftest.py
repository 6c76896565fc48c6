"""Feature files that the tests of reader, writer and layouts share."""

from pathlib import Path

import pytest

from tests.elmoc.features.sentences import LINES, states_of, write_sentences


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "features.h5"
    sentences = [(line, states_of(index, len(line.split()))) for index, line in enumerate(LINES)]
    write_sentences(target, {"model": "abc", "layers": [0, 1, 2], "version": 1}, sentences)
    return target
