"""What do the other processes hand over to the first one, which evaluates and saves?"""

from typing import Any

from torch import Tensor
from tqdm import tqdm

from pretrain.distributed.direction_group import DirectionGroup
from pretrain.distributed.processes import Processes
from pretrain.step import DirectionStep
from pretrain.train_state import TrainState

OF_A_DIRECTION = ("optimisers", "generators", "recurrent")
"""What only the processes of a direction have. The weights of every direction are everywhere, but may be old."""


def weights_to_first(processes: Processes, state: TrainState) -> None:
    """Bring the weights that the first process has, but does not train, up to date; every process calls this."""
    for direction, ranks in processes.ranks.items():
        if ranks.start:
            modules = (state.encoder.direction(direction), state.heads.direction(direction))
            weights = processes.send_to_rank0([module.state_dict() for module in modules], source=ranks.start)
            if processes.is_rank0:
                for module, values in zip(modules, weights, strict=True):
                    module.load_state_dict(values)


def whole_state(processes: Processes, state: TrainState) -> dict[str, Any]:
    """What a checkpoint holds, in the first process; every process calls this."""
    weights_to_first(processes, state)
    values = state.to_dict()
    for direction, group in processes.groups.items():
        values["recurrent"][direction] = gather(group, values["recurrent"][direction])
    for direction, ranks in processes.ranks.items():
        if ranks.start:
            own = {kind: values[kind].get(direction) for kind in OF_A_DIRECTION}
            for kind, value in processes.send_to_rank0(own, source=ranks.start).items():
                values[kind][direction] = value
    return values


def gather(group: DirectionGroup, states: list[tuple[Tensor, ...]] | None) -> list[tuple[Tensor | None, ...]] | None:
    """The recurrent states of all the streams of a direction, in its leader."""
    return None if states is None else [tuple(group.gather(part) for part in layer) for layer in states]


class FollowerRecorder:
    """Takes the recorder's place in the other processes: hands over what the recorder needs, when it needs it."""

    def __init__(self, processes: Processes, state: TrainState) -> None:
        self._processes = processes
        self._state = state
        self._saved: int | None = None

    def add(self, steps: dict[str, DirectionStep], rate: float, progress: tqdm) -> None:
        """Nothing: the first process has the same figures."""

    def evaluate(self) -> None:
        """The first process evaluates, and saves what is the best so far."""
        weights_to_first(self._processes, self._state)
        if self._processes.broadcast_from_rank0(False):
            self.save()

    def save(self) -> None:
        """The first process saves, unless this update has a checkpoint."""
        if self._saved != self._state.update:
            self._saved = self._state.update
            whole_state(self._processes, self._state)

    def close(self) -> None:
        """Nothing is open."""
