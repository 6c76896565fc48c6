"""Feature files that the tests of reader, writer and layouts share."""

from pathlib import Path

import pytest

from elmoc.features.writer import write_features
from tests.elmoc.features.sentences import LINES, states_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "features.h5"
    with write_features(target, {"model": "abc", "layers": [0, 1, 2], "version": 1}) as writer:
        for index, line in enumerate(LINES):
            writer.add(line, states_of(index, len(line.split())))
    return target
