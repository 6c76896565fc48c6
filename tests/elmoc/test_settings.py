"""Settings: which values are possible, and how values and numbers are said."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from elmoc.errors import InputError
from elmoc.settings import checked, parse_duration
from msgspec import Meta
from pretrain.config import differences


@dataclass(frozen=True)
class Settings:
    """One of each kind."""

    streams: Annotated[int, Meta(ge=1)] = 1
    dropout: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    rate: Annotated[float, Meta(gt=0)] = 0.1
    kind: Literal["data", "directions"] = "data"
    free: float = 0.0


@pytest.mark.parametrize(
    ("name", "value"),
    [("streams", 0), ("dropout", 1.0), ("rate", 0.0), ("rate", math.inf), ("kind", "other"), ("free", math.nan)],
)
def test_impossible(name: str, value: Any) -> None:
    assert checked(Settings()) == Settings()
    with pytest.raises(InputError, match=rf"^train\.{name} "):
        checked(Settings(**{name: value}), lambda name: f"train.{name}")


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
