"""Options: the numbers that the commands take, and their bounds."""

from dataclasses import dataclass

from elmoc.settings import check_settings, setting

MOST_WORKERS = 1024


@dataclass(frozen=True, kw_only=True)
class Options:
    """What every command takes; one that takes more adds fields, of which `shard_tokens` is `--shard-tokens`.

    Raises `InputError` for a number out of bounds, before anything of that size is made.
    """

    workers: int = setting(1, least=1, most=MOST_WORKERS)

    def __post_init__(self) -> None:
        check_settings(self, lambda name: f"--{name.replace('_', '-')}")
