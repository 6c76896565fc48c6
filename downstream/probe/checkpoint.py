"""Checkpoints: a training that was stopped goes on behind its last whole epoch, and
ends as if nothing had stopped it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from elmoc.errors import reading, say
from elmoc.files.writing import atomic_path


@dataclass(frozen=True)
class ProbeCheckpoint:
    """The file in which a training keeps its state.

    path: of the file.
    training: equal for trainings that do the same.
    """

    path: Path
    training: str

    def write(self, **state: Any) -> None:
        """Replace what is there by tensors and plain values."""
        # Asked for their states, GPUs that nobody uses would be set up.
        on_gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        state |= {"training": self.training, "random": [torch.get_rng_state(), on_gpus]}
        with atomic_path(self.path) as partial:
            torch.save(state, partial)

    def read(self) -> dict[str, Any] | None:
        """What this training has written, whose random state is set again; None where
        there is nothing of it.

        Raises:
            InputError: the file is damaged or foreign.
        """
        if not self.path.exists():
            return None
        with reading(self.path):
            state: dict[str, Any] = torch.load(
                self.path, map_location="cpu", weights_only=True
            )
            if state["training"] != self.training:
                say(f"{self.path} is of another training: this one starts anew")
                return None
            torch.set_rng_state(state["random"][0])
            torch.cuda.set_rng_state_all(state["random"][1])
        return state
