"""Settings: which values are possible, and how values and numbers are said."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from elmoc.errors import InputError
from elmoc.settings import check_settings, parse_duration, setting
from pretrain.config import differences


@dataclass(frozen=True)
class Settings:
    """One of each kind."""

    streams: int = setting(1, least=1)
    dropout: float = setting(0.0, least=0, below=1)
    rate: float = setting(0.1, above=0)
    share: float = setting(1.0, above=0, most=1)
    kind: str = setting("data", choices=("data", "directions"))
    free: float = 0.0
    name: str = ""
    flag: bool = setting(False, least=1)


@pytest.mark.parametrize(
    "values", [{}, {"dropout": 0.99}, {"share": 1e-9}, {"kind": "directions"}, {"free": -7.5}, {"name": "anything"}]
)
def test_possible(values: dict[str, Any]) -> None:
    check_settings(Settings(**values), lambda name: name)


@pytest.mark.parametrize(
    "values",
    [
        {"streams": 0},
        {"dropout": 1.0},
        {"dropout": -0.1},
        {"rate": 0.0},
        {"rate": math.inf},
        {"rate": math.nan},
        {"share": 1.1},
        {"kind": "other"},
        {"free": math.nan},
    ],
)
def test_impossible(values: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=rf"^train\.{next(iter(values))} "):
        check_settings(Settings(**values), lambda name: f"train.{name}")


def test_durations_are_read() -> None:
    assert [parse_duration(text) for text in ("90s", "60m", "1.5h", "1d")] == [90, 3600, 5400, 86400]
    for text in ("60", "0s", "h", "-1h"):
        with pytest.raises(InputError, match="--max-time"):
            parse_duration(text)


def test_differences_name_both_values() -> None:
    before = {"same": 1, "other": "a", "gone": 2}
    assert differences(before, {"same": 1, "other": "b" * 99, "new": None, "more": 3}) == [
        f"other (was 'a', is '{'b' * 78}…)",
        "more (was None, is 3)",
    ]
