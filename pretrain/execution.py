"""The device of a run and the precision of its matrix products."""

from dataclasses import dataclass

import torch

from elmoc.devices import checked_device, has_bf16
from elmoc.errors import InputError


@dataclass(frozen=True)
class Execution:
    """Where and how precisely modules compute.

    precision: of the matrix products, float32 or bf16.
    fast: whether encoders run their fast implementation.
    """

    device: torch.device
    precision: str
    fast: bool = True

    @property
    def dtype(self) -> torch.dtype:
        """Of the factors of matrix products."""
        return torch.bfloat16 if self.precision == "bf16" else torch.float32

    def autocast(self, *, cache: bool = True) -> torch.autocast:
        """The context in which encoder and output layers compute; `cache` keeps weights
        in bf16 while it lasts.
        """
        return torch.autocast(
            self.device.type,
            torch.bfloat16,
            enabled=self.precision == "bf16",
            cache_enabled=cache,
        )


def choose_execution(
    *, device: str, precision: str, fast: bool, local_rank: int = 0
) -> Execution:
    """The device called `device` and the precision called `precision`, where `auto`
    takes the best that there is.

    `local_rank` is the number of this process's GPU. Raises `InputError` for a device
    that is none or is not there, and where it lacks bf16 instructions.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        chosen = checked_device(f"cuda:{local_rank}" if device == "cuda" else device)
    except InputError as error:
        raise InputError(f"train.device: {error}") from None
    bf16 = precision != "float32" and has_bf16(chosen)
    if precision == "bf16" and not bf16:
        raise InputError(
            f"train.precision is bf16, but {chosen} has no bf16 instructions: use float32"
        )
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)  # which CUDA graphs, and what names none, take
        torch.backends.cudnn.allow_tf32 = bf16  # on by default: convolutions and LSTMs in float32 would be less precise
    return Execution(chosen, "bf16" if bf16 else "float32", fast)
