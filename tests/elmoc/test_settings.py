"""Settings: which values are possible, and the sentence for each other."""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from elmoc.errors import InputError
from elmoc.settings import check_settings, counted, differences, duration, setting


@dataclass(frozen=True)
class Settings:
    """One of each kind."""

    streams: int = setting(1, least=1)
    dropout: float = setting(0.0, least=0, below=1)
    rate: float = setting(0.1, above=0)
    share: float = setting(1.0, above=0, most=1)
    kind: str = setting("data", choices=("data", "directions"))
    free: float = 0.0
    whole: int = 0
    name: str = ""
    flag: bool = setting(False, least=1)


@pytest.mark.parametrize(
    "values", [{}, {"dropout": 0.99}, {"share": 1e-9}, {"kind": "directions"}, {"free": -7.5}, {"name": "anything"}]
)
def test_possible(values: dict[str, Any]) -> None:
    check_settings(Settings(**values), lambda name: name)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"streams": 0}, "train.streams must be at least 1, not 0"),
        ({"dropout": 1.0}, "train.dropout must be at least 0 and below 1, not 1.0"),
        ({"dropout": -0.1}, "train.dropout must be at least 0 and below 1, not -0.1"),
        ({"rate": 0.0}, "train.rate must be above 0, not 0.0"),
        ({"rate": math.inf}, "train.rate must be a finite number, not inf"),
        ({"rate": math.nan}, "train.rate must be a finite number, not nan"),
        ({"share": 1.1}, "train.share must be above 0 and at most 1, not 1.1"),
        ({"kind": "other"}, "train.kind must be one of data, directions, not 'other'"),
        ({"streams": "2"}, "train.streams must be at least 1, not '2'"),
        ({"free": math.nan}, "train.free must be a finite number, not nan"),
        (
            {"streams": 10**400},
            "train.streams must be a number of 64 bits, not 100000000000000000...0000000000000000000",
        ),
        ({"whole": 2**63}, "train.whole must be a number of 64 bits, not 9223372036854775808"),
    ],
)
def test_impossible(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        check_settings(Settings(**values), lambda name: f"train.{name}")
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "0 s"),
        (7, "7 s"),
        (100, "2 min"),
        (600, "10 min"),
        (9000, "2 h 30 min"),
        (3 * 3600, "3 h 0 min"),
        (47.4 * 3600, "47 h 24 min"),
        (76 * 3600, "3 d 4 h"),
        (10 * 86400 - 1, "10 d 0 h"),
    ],
)
def test_durations_in_words(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_counted() -> None:
    assert [counted(number, "run") for number in (0, 1, 2000)] == ["0 runs", "1 run", "2,000 runs"]
    assert [counted(number, "entity", "entities") for number in (1, 2)] == ["1 entity", "2 entities"]


def test_differences_name_both_values() -> None:
    before = {"same": 1, "other": "a", "gone": 2}
    assert differences(before, {"same": 1, "other": "b" * 99, "new": None, "more": 3}) == [
        f"other (was 'a', is '{'b' * 78}…)",
        "more (was None, is 3)",
    ]
