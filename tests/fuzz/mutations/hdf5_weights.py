"""Mutations of HDF5 files of weights: tensors that are gone, others, links, or not kept in the file."""

import io
from random import Random

import h5py
import numpy as np

from tests.fuzz.mutations.raw import RAW, Mutation

TYPES = ("f8", "f2", ">f4", "i4", "u1", "?", "c8", "S4", "V4", h5py.string_dtype(), h5py.ref_dtype)
SHAPES = ((), (0,), (1,) * 32, (10**12, 8), (10**9, 2, 8))


def change_weights(data: bytes, random: Random) -> bytes:
    """Change one tensor, or the group that it is in, by HDF5's own means."""
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as opened:
        names: list[str] = []
        opened.visit(names.append)
        name = random.choice(names)
        random.choice((drop, link, rename, retype, reshape, replace_numbers, keep_elsewhere))(opened, name, random)
    return file.getvalue()


def drop(file: h5py.File, name: str, random: Random) -> None:
    del file[name]


def rename(file: h5py.File, name: str, random: Random) -> None:
    file.move(name, random.choice((f"{name}x", "x", "é/y")))


def link(file: h5py.File, name: str, random: Random) -> None:
    """Something else in its place: a link, a group, a type, or the root."""
    other = file["char_embed"]
    del file[name]
    choices = (
        h5py.SoftLink("/char_embed"),
        h5py.SoftLink(f"/{name}"),
        h5py.ExternalLink(random.choice(("weights.hdf5", "/dev/zero", "nowhere")), "/char_embed"),
        other,
        file["/"],
        np.dtype("f4"),
    )
    file[name] = random.choice(choices)


def retype(file: h5py.File, name: str, random: Random) -> None:
    shape = file[name].shape if isinstance(file[name], h5py.Dataset) else (3,)
    del file[name]
    file.create_dataset(name, shape, dtype=random.choice(TYPES))


def reshape(file: h5py.File, name: str, random: Random) -> None:
    shape = file[name].shape if isinstance(file[name], h5py.Dataset) else (3,)
    del file[name]
    shape = random.choice((*SHAPES, shape[::-1], shape[1:], (1, *shape)))
    in_chunks = bool(shape) and all(shape) and len(shape) < 5 and random.random() < 0.3
    file.create_dataset(name, shape, dtype="f4", chunks=in_chunks or None)


def replace_numbers(file: h5py.File, name: str, random: Random) -> None:
    if isinstance(file[name], h5py.Dataset):
        values = file[name][()]
        values.reshape(-1)[random.randrange(values.size)] = random.choice((np.nan, np.inf, -np.inf, 3e38, 0))
        file[name][...] = values


def keep_elsewhere(file: h5py.File, name: str, random: Random) -> None:
    """The same numbers in another file, in chunks, compressed, or not at all."""
    if not isinstance(file[name], h5py.Dataset):
        return
    values = file.pop(name)[()]
    kind = random.choice(("external", "gzip", "unwritten", "virtual"))
    if kind == "external":
        place = random.choice((("weights.hdf5", 0), ("/dev/zero", 0), ("nowhere", 0)))
        file.create_dataset(name, values.shape, values.dtype, external=[(*place, values.nbytes)])
    elif kind == "virtual":
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[...] = h5py.VirtualSource("weights.hdf5", "char_embed", values.shape)
        file.create_virtual_dataset(name, layout)
    elif kind == "gzip":
        file.create_dataset(name, data=values, compression="gzip")
    else:
        file.create_dataset(name, values.shape, values.dtype)


HDF5_WEIGHTS: tuple[Mutation, ...] = (*[change_weights] * 2 * len(RAW), *RAW)
