"""Settings: how durations are read, and differences said."""

import pytest
from elmoc.errors import InputError
from elmoc.settings import parse_duration
from pretrain.config import differences


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
