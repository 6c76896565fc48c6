"""Every kind of encoder: it trains, and is resumed exactly (test_configs.py makes features)."""

from typing import Any

import pytest
from tests.pretrain.conftest import TinyRuns, assert_resumes_exactly, needs_bf16

SETTINGS: dict[str, dict[str, Any]] = {
    "lstm": {},
    "plain_lstm": {"encoder__cell_size": None, "encoder__layers": 2},
    "transformer": {
        "encoder__cell_size": None,
        "encoder__layers": 2,
        "encoder__heads": 2,
        "encoder__feedforward_size": 16,
    },
}


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("precision", ["float32", pytest.param("bf16", marks=needs_bf16)])
def test_a_resumed_run_ends_the_same(runs: TinyRuns, kind: str, precision: str) -> None:
    settings = SETTINGS[kind] | {"encoder__kind": kind, "train__precision": precision, "encoder__dropout": 0.2}
    settings |= {"log__checkpoint_updates": 6}
    runs.run("run", **settings)
    assert_resumes_exactly(runs, "run", 6, **settings)
