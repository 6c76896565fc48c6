"""Execution: on which device and how precisely does a run compute?"""

from dataclasses import dataclass

import torch

from elmoc.devices import autocast, checked_device, choose_precision
from elmoc.errors import reading
from elmoc.settings import Precision


@dataclass(frozen=True)
class Execution:
    """Where and how precisely modules compute.

    device: where all modules are.
    precision: of the factors of matrix products, float32 or bf16.
    """

    device: torch.device
    precision: Precision

    def autocast(self, *, cache: bool = True) -> torch.autocast:
        """The context in which encoder and output layers compute; see
        `elmoc.devices.autocast`.

        On a CPU nothing is cached: directions in threads of their own share the cache,
        and would empty it for each other by chance.
        """
        return autocast(
            self.device, self.precision, cache=cache and self.device.type != "cpu"
        )


def choose_execution(
    *, device: str, precision: Precision, local_rank: int = 0
) -> Execution:
    """The execution on a device in a precision, by their names in the config.

    On an accelerator this process computes on the chosen one from now on.

    Args:
        device: see `checked_device`.
        precision: see `choose_precision`.
        local_rank: the number of this process on its machine.

    Raises:
        InputError: the device is not there, or lacks instructions for the precision.
    """
    with reading("train.device"):
        chosen = checked_device(device, local_rank=local_rank)
    with reading("train.precision"):
        precision = choose_precision(precision, chosen)
    if chosen.type != "cpu":
        # CUDA graphs are recorded on the current device
        torch.accelerator.set_device_index(chosen.index)
        # PyTorch rounds factors of convolutions and LSTMs to TF32 by default, which is
        # less precise than the float32 that was asked for
        torch.backends.cudnn.allow_tf32 = precision == "bf16"
    return Execution(chosen, precision)
