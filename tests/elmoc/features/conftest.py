"""Feature files that the tests of reader, writer and layouts share."""

from pathlib import Path

import pytest
from tests.elmoc.features.sentences import write_lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "features.h5")
