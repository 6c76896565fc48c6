"""Fixtures of the tests of saved probes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from downstream.__main__ import main

TINY = ["--hidden-size", "12", "--layers", "1", "--learning-rate", "0.02", "--batch-size", "4", "--epochs", "6"]


@pytest.fixture
def trained(tmp_path: Path, ten: Path, features: Path) -> Callable[..., list[dict[str, Any]]]:
    """Run the NER probe into `saved`, and give the records that it wrote."""

    def run(*more: object) -> list[dict[str, Any]]:
        results = tmp_path / "results.jsonl"
        results.unlink(missing_ok=True)
        kinds = more[more.index("--inputs") + 1] if "--inputs" in more else "both"
        arguments = ["ner", "--train", ten, "--dev", ten]
        arguments += ["--features", features] if kinds != "vectors" else []
        arguments += ["--vectors", "random:1:12"] if kinds != "features" else []
        arguments += ["--save", tmp_path / "saved", "--results", results, *more]
        assert main([*map(str, arguments), *TINY]) == 0
        return [json.loads(line) for line in results.read_text().splitlines()]

    return run
