"""Ranks: how several processes, on one machine or on several with a shared folder, dump one input together.

Each process dumps its share of the sentences into a feature file of its own, `OUTPUT.parts/rank-0-of-2.h5`. Nobody
waits for anybody: the process whose part is the last one to be there joins them. What a process that ended before its
time had finished stays, and the same command with `--resume` does the rest.
"""

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from elmoc.errors import InputError, shortened
from elmoc.features.join import join_features
from elmoc.features.linked import parts_folder
from elmoc.features.reader import FeatureFile
from elmoc.features.unfinished.folder import UnfinishedFolder
from elmoc.files.locks import locked


@dataclass(frozen=True)
class Ranks:
    """Which of the processes this one is; the environment says so where `torchrun` has started it."""

    rank: int = 0
    world_size: int = 1

    @classmethod
    def from_environment(cls) -> "Ranks":
        """What RANK and WORLD_SIZE say; one process where they are not both set. Raises `InputError`."""
        if not {"RANK", "WORLD_SIZE"} <= os.environ.keys():
            return cls()
        texts = os.environ["RANK"], os.environ["WORLD_SIZE"]
        if not all(text.isascii() and text.isdigit() and len(text) < 7 for text in texts):
            raise InputError(f"RANK and WORLD_SIZE must be whole numbers, not {shortened(' and '.join(texts))}")
        rank, world_size = map(int, texts)
        if rank >= world_size:
            raise InputError(f"RANK is {rank}, but must be less than WORLD_SIZE, which is {world_size}")
        return cls(rank, world_size)

    @property
    def alone(self) -> bool:
        """Whether there is no other process."""
        return self.world_size == 1

    def part(self, output: Path | str, rank: int | None = None) -> Path:
        """The feature file that a rank (by default this one) writes of `output`."""
        if self.alone:
            return Path(output)
        rank = self.rank if rank is None else rank
        return parts_folder(output) / f"rank-{rank}-of-{self.world_size}.h5"

    def parts(self, output: Path | str) -> list[Path]:
        """Those that all ranks write, in order."""
        return [self.part(output, rank) for rank in range(self.world_size)]

    def refuse_other_parts(self, output: Path | str) -> None:
        """Raise an `InputError` where a dump by another number of processes has left parts, finished or not."""
        folder = parts_folder(output)
        expected = {path.name for path in self.parts(output)}
        unfinished = [path.stem[1:] for path in folder.glob(".rank-*.h5.unfinished")]
        left = [path.name for path in folder.glob("rank-*.h5")]
        left += [name for name in unfinished if UnfinishedFolder(folder / name).can_go_on]
        others = sorted({*left} - expected)
        if others:
            raise InputError(
                f"{folder} has parts of a dump by another number of processes ({others[0]}): go on with as many, or "
                "remove it"
            )
        if not self.alone:
            UnfinishedFolder(Path(output)).refuse()

    def tidy(self, output: Path | str) -> None:
        """Remove the folder of the parts where it is empty."""
        if not self.alone:
            with suppress(OSError):
                parts_folder(output).rmdir()

    def join(self, output: Path | str, identity: str, *, merge: bool) -> bool:
        """Join the parts when all are there and nobody else does; returns whether the output is there now.

        `identity` is what all of them have to have as their attribute `dump`; raises `InputError`.
        """
        parts = self.parts(output)
        there = set(os.listdir(parts_folder(output))) if parts_folder(output).is_dir() else set()
        if not all(part.name in there for part in parts):
            return Path(output).exists()
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(output))
            except InputError:
                return False  # another process is joining them
            if not Path(output).exists():
                for part in parts:
                    require_identity(part, identity)
                join_features(parts, Path(output), merge=merge)
        return True


def require_identity(path: Path, identity: str) -> None:
    """Raise an `InputError` unless the feature file is of the dump that `identity` names."""
    with FeatureFile(path) as file:
        if file.attributes.get("dump") != identity:
            raise InputError(
                f"{path} exists already, of another dump (another model, input or options): remove it, or choose "
                "another output path"
            )
