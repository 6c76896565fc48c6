"""Weights in safetensors files: how they are read, checked, and packed in few bytes."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import torch
from safetensors import safe_open
from torch import Tensor

from elmoc.errors import InputError
from elmoc.files.compression import require_file
from elmoc.files.records import MOST_RECORD_BYTES

T = TypeVar("T")
_SCALE = ".scale"
# The scale of a row of zeros, which cannot be divided by 0.
_LEAST_SCALE = 2.0**-100


def check_weights(
    weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]
) -> None:
    """Check that weights have the names, shapes and types of the `expected` ones.

    Raises:
        InputError: they have not.
    """
    found = {name: (each.dtype, list(each.shape)) for name, each in weights.items()}
    wanted = {name: (each.dtype, list(each.shape)) for name, each in expected.items()}
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            raise InputError(
                f"{name} is {found.get(name, 'missing')}, where "
                f"{wanted.get(name, 'no such tensor')} is expected"
            )


def read_tensors(path: Path | str) -> tuple[dict[str, str], dict[str, Tensor]]:
    """The metadata and the tensors of a safetensors file, all of finite numbers.

    Callers are within `reading(path)`.
    """
    require_file(path)
    with open(path, "rb") as start:
        if int.from_bytes(start.read(8), "little") > MOST_RECORD_BYTES:
            raise InputError(f"its header is larger than {MOST_RECORD_BYTES >> 20} MiB")
    # The library makes tensors on PyTorch's default device, which may be another.
    with torch.device("cpu"), safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata() or {}
    check_finite(tensors)
    return metadata, tensors


def check_finite(weights: Mapping[str, Tensor]) -> None:
    """Check that no weight has a number that is NaN or infinite.

    Raises:
        InputError: names the weight that has.
    """
    for name, tensor in weights.items():
        if tensor.is_floating_point() and tensor.numel():
            # Both are NaN where any number is.
            least, largest = tensor.aminmax()
            if not (least.isfinite() and largest.isfinite()):
                raise InputError(f"{name} has a number that is not finite")


def prefixed(tensors: Mapping[str, T], prefix: str) -> dict[str, T]:
    """The tensors of a part, by their names in a file."""
    return {prefix + name: tensor for name, tensor in tensors.items()}


def taken(tensors: dict[str, T], prefix: str) -> dict[str, T]:
    """The tensors of a part, by their own names, taken out of those of a file."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}


def contiguous(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of a state dict as safetensors takes them."""
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


def packed_weights(
    weights: Mapping[str, Tensor], weight_type: str
) -> dict[str, Tensor]:
    """Weights as a file has them: matrices in `float32`, `float16` or `int8`, vectors
    (biases, norms) in float32.

    A row of int8 numbers is a row of weights over its scale, `NAME.scale` float32
    [rows].
    """
    packed = dict(weights)
    for name, matrix in weights.items():
        if matrix.dim() < 2 or weight_type == "float32":
            continue
        packed[name] = matrix.half()
        if weight_type == "int8":
            # 127 times a bfloat16 number is exact, so weights that were read are
            # written again as the same numbers.
            scale = (matrix.abs().amax(dim=1) / 127).bfloat16()
            scale = scale.float().clamp(min=_LEAST_SCALE)
            packed[name] = (matrix / scale[:, None]).round().to(torch.int8)
            packed[name + _SCALE] = scale
    return packed


def unpacked_weights(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], str]:
    """Weights in float32 from the tensors of a file, and the type of its matrices."""
    unpacked = {}
    weight_type = "float32"
    for name, tensor in tensors.items():
        if tensor.dtype == torch.int8:
            weight_type = "int8"
            unpacked[name] = tensor.float().mul_(tensors[name + _SCALE][:, None])
        elif tensor.dtype == torch.float16:
            weight_type = "float16"
            unpacked[name] = tensor.float()
        elif not name.endswith(_SCALE):
            unpacked[name] = tensor
    return unpacked, weight_type
