"""Mutations of files of arrays: NumPy's, safetensors and PyTorch's, whole but for one wrong name, type or shape."""

import io
import json
import struct
import zipfile
from ast import literal_eval
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.fuzz.mutations.json_tree import VALUES, change_value, raw_values
from tests.fuzz.mutations.raw import RAW, Mutation

DTYPES = ("<f8", "<f4", ">f4", "<f2", "<i8", "|i1", "<u4", "|b1", "<c8", "|O", "|S4", "<U1", "|V12", "<M8[s]", "x")
SHAPES: tuple[Any, ...] = ((), (0,), (1,), (-1,), (2**62,), (2**31, 2**31, 4), (3, 0), (10**12, 8), "x", [1], (1.5,))
EXTREMES = (float("nan"), float("inf"), -float("inf"), 3e38, 0.0, 1e-40, -1.0)


def change_npy_header(data: bytes, random: Random) -> bytes:
    """Another type, shape or order in the header of a `.npy` file."""
    (length,) = struct.unpack("<H", data[8:10])
    header = literal_eval(data[10 : 10 + length].decode("latin-1"))
    changed = random.randrange(4)
    if changed == 0:
        header["descr"] = random.choice((*DTYPES, [("a", "<f4"), ("b", "|O")], None))
    elif changed == 1:
        header["shape"] = random.choice((*SHAPES, header["shape"][::-1], (*header["shape"], 1), header["shape"][:1]))
    elif changed == 2:
        header["fortran_order"] = random.choice((True, None, "x"))
    else:
        header[random.choice(("descr", "shape", "x"))] = random.choice(VALUES)
    text = (repr(header) + "\n").encode("latin-1", "replace")
    return data[:8] + struct.pack("<H", len(text)) + text + data[10 + length :]


def change_array(data: bytes, random: Random) -> bytes:
    """A whole `.npy` file of another type or shape, or with numbers that are wrong."""
    array = _changed_array(np.load(io.BytesIO(data)), random)
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def _changed_array(array: np.ndarray, random: Random) -> np.ndarray:
    changed = random.randrange(6)
    if changed == 0:
        return array.astype(random.choice(("f8", "f4", "f2", "i8", "i4", "u1", "?", "c8", "O", "S3", ">i8", ">f4")))
    if changed == 1:
        return array[: random.randrange(len(array) + 1)] if array.ndim else array[None]
    if changed == 2:
        return random.choice((array.T, array[None], array.ravel(), np.concatenate([array, array]), array[::-1]))
    array = array.copy()
    place = random.randrange(max(1, array.size))
    with np.errstate(all="ignore"):
        numbers = EXTREMES if array.dtype.kind == "f" else (-1, 0, 1, 2**31 - 1, 2**40, -(2**63))
        array.reshape(-1)[place : place + 1] = np.array(random.choice(numbers)).astype(array.dtype)
    return array


NPY: tuple[Mutation, ...] = (*[change_npy_header, change_array] * (len(RAW) // 2), *RAW)


def change_member(data: bytes, random: Random) -> bytes:
    """Damage one file in a zip archive (whose checksum then fits again), or drop, rename or double it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    name = random.choice(list(members))
    changed = random.randrange(6)
    if changed == 0:
        del members[name]
    elif changed == 1:
        members[random.choice((f"{name}x", f"../{name}", "x"))] = members.pop(name)
    else:
        is_array = name.endswith(".npy")
        members[name] = random.choice(NPY if is_array else RAW)(members[name] or b"x", random)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return file.getvalue()


ZIP: tuple[Mutation, ...] = (*[change_member] * len(RAW), *RAW)


def change_safetensors_header(data: bytes, random: Random) -> bytes:
    """Change names, types, shapes and offsets."""
    (length,) = struct.unpack("<Q", data[:8])
    tree = json.loads(data[8 : 8 + length])
    if random.random() < 0.5:
        name = random.choice([each for each in tree if each != "__metadata__"])
        kinds = ("F64", "F16", "BF16", "I64", "I32", "U8", "BOOL", "F8_E4M3", "C64", "X", None)
        tree[name]["dtype"] = random.choice(kinds)
    else:
        tree = change_value(tree, random)
    text = raw_values(json.dumps(tree)).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def change_tensor(data: bytes, random: Random) -> bytes:
    """A whole safetensors file with a tensor of another type or shape, another name, or wrong numbers."""
    from safetensors.torch import load, save

    tensors = load(data)
    name = random.choice(list(tensors))
    changed = random.randrange(6)
    if changed == 0:
        del tensors[name]
    elif changed == 1:
        tensors[random.choice((f"{name}x", "x", ""))] = tensors.pop(name)
    else:
        tensors[name] = _changed_tensor(tensors[name], random)
    return save({each: tensor.contiguous() for each, tensor in tensors.items()})


def _changed_tensor(tensor: Tensor, random: Random) -> Tensor:
    changed = random.randrange(5)
    if changed == 0:
        kinds = (torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64)
        return tensor.to(random.choice(kinds))
    if changed == 1:
        shape = random.choice(((-1,), (1, *tensor.shape), tuple(reversed(tensor.shape))))
        return tensor.reshape(shape).clone()
    if changed == 2:
        return tensor.reshape(-1)[: random.randrange(tensor.numel() + 1)].clone()
    tensor = tensor.clone()
    if tensor.is_floating_point() and tensor.numel():
        tensor.view(-1)[random.randrange(tensor.numel())] = random.choice(EXTREMES)
    return tensor


SAFETENSORS: tuple[Mutation, ...] = (*[change_safetensors_header, change_tensor] * (len(RAW) // 2), *RAW)


def change_checkpoint(data: bytes, random: Random) -> bytes:
    """A whole checkpoint with a field that is gone, or of another type, shape or value."""
    tree = torch.load(io.BytesIO(data), weights_only=True)
    parent, key = random.choice(list(_places(tree)))
    changed = random.randrange(4)
    if changed == 0:
        del parent[key]
    elif changed == 1:
        parent[f"{key}x"] = parent.pop(key)
    elif changed == 2 and isinstance(parent[key], Tensor):
        parent[key] = _changed_tensor(parent[key], random)
    elif changed == 2 and type(parent[key]) in (int, float):
        parent[key] = random.choice((-1, 0, 2**40, 2**70, 1e308, float("nan"), float("inf"), str(parent[key])))
    else:
        parent[key] = random.choice((*VALUES, torch.zeros(3), torch.zeros(2, 2, dtype=torch.int64)))
    file = io.BytesIO()
    torch.save(tree, file, _use_new_zipfile_serialization=random.random() < 0.9)
    return file.getvalue()


def _places(tree: Any) -> list[tuple[dict[Any, Any], Any]]:
    places = [(tree, key) for key in tree] if isinstance(tree, dict) else []
    inner = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return places + [place for value in inner for place in _places(value)]


CHECKPOINT: tuple[Mutation, ...] = (*[change_checkpoint, change_checkpoint, change_member] * (len(RAW) // 2), *RAW)
