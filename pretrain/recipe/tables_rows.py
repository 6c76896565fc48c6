"""Rows of the tables in miniature: the system that each of them trains, and the settings that are given for them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elmoc.errors import InputError, shortened
from pretrain import CONFIGS

TWINS = CONFIGS / "twins"
OF_ELMO = "cnn"
"""The table of the word vectors that the character CNN of the row `elmo` makes."""
OF_CORPUS = "one_billion"
"""The table of fastText vectors of the corpus itself, as the paper's config calls it."""
MADE_HERE = (OF_ELMO, OF_CORPUS)
"""Tables of vectors that the command makes; in the corpus they have names that are of its OUT alone."""


@dataclass(frozen=True)
class System:
    """A row: the twin of a config of the paper, and what differs from it; `needs` are further tables of vectors."""

    config: str
    sets: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """The twin."""
        return TWINS / f"small_{self.config}.toml"

    @property
    def reads_subwords(self) -> bool:
        """Whether its corpus is one of subwords."""
        return self.config == "elmo_sub"


SYSTEMS = {
    "elmo": System("elmo"),
    "elmo_a": System("elmo_a"),
    "elmo_sub": System("elmo_sub"),
    "elmo_c": System("elmo_c"),
    "elmo_c_oneb": System("elmo_c_oneb", needs=(OF_CORPUS,)),
    "elmo_c_rnd": System("elmo_c_rnd", needs=("random",)),
    "elmo_c_cnn": System("elmo_c_cnn", needs=(OF_ELMO,)),
    "elmo_c_cnn_cc": System("elmo_c_cnn_cc", needs=(OF_ELMO,)),
    "elmo_c_cc_cnn": System("elmo_c_cc_cnn", needs=(OF_ELMO,)),
    "elmo_c_rnd_input": System("elmo_c", ("data.input_vectors=random",), ("random",)),
    "contrastive": System("elmo_c", ("output_layer.kind=contrastive",)),
}
"""Those of Table 2 and Table 3, the random input that the paper found brittle, and the contrastive output layer."""


@dataclass(frozen=True)
class GivenSettings:
    """What `--set` gives, as `section.key=value`: the settings of every row, and by name those of one row alone."""

    of_all: tuple[str, ...] = ()
    of_row: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, given: Sequence[str]) -> "GivenSettings":
        """From `section.key=value` and `ROW:section.key=value`; an `InputError` where there is no such row."""
        of_all: list[str] = []
        of_row: dict[str, tuple[str, ...]] = {}
        for each in given:
            key, _, _ = each.partition("=")
            row, colon, _ = key.partition(":")
            name = row.strip()
            if not colon:
                of_all.append(each)
            elif name not in SYSTEMS:
                raise InputError(
                    f"--set {shortened(each)}: {shortened(name)!r} is not a row; choose from {', '.join(SYSTEMS)}"
                )
            else:
                of_row[name] = (*of_row.get(name, ()), each.removeprefix(f"{row}:"))
        return cls(tuple(of_all), of_row)

    def of(self, row: str) -> tuple[str, ...]:
        """Those of a row; its own come last, and go before the others."""
        return self.of_all + self.of_row.get(row, ())
