"""Mutations of HDF5 feature files: attributes, links, storage, types and shapes that no writer of ours gives them."""

import io
import json
from random import Random

import h5py
import numpy as np

from tests.fuzz.mutations.json_tree import JSON
from tests.fuzz.mutations.raw import RAW, Mutation

MAP = "sentence_to_index"
TYPES = ("f8", "f2", ">f4", ">f2", "i4", "u1", "?", "c8", "S4", "V4", h5py.string_dtype(), h5py.ref_dtype, "O8")
SHAPES = ((), (0,), (0, 2, 8), (3, 0, 8), (3, 2, 0), (8,), (1, 3, 2, 8), (1,) * 32, (3, 10**12, 8), (10**9, 2, 8))


def change_structure(data: bytes, random: Random) -> bytes:
    """Change one thing of the file by HDF5's own means."""
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as opened:
        random.choice((set_attribute, set_attribute, set_dataset, set_link, set_storage, set_keys))(opened, random)
    return file.getvalue()


def set_attribute(file: h5py.File, random: Random) -> None:
    """An attribute of an odd type, of the root or of a dataset."""
    owner = random.choice((file, file, file["0"]))
    name = random.choice((*file.attrs, "x", "layers", "é", "a/b"))
    compound = np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f4")])
    values = (
        *(h5py.Empty("f4"), compound, file.ref, np.array([file.ref] * 2, dtype=h5py.ref_dtype), np.zeros((0, 3))),
        *(b"\xff\xfe", "x" * 60_000, np.void(b"\0\1"), np.float64("nan"), np.complex64(1), 2**63, np.bytes_(b"\0")),
        *(
            ["a", "b"],
            np.zeros((2, 2, 2), dtype="?"),
            np.array([[1, 2]], dtype=">i8"),
            "é\ud800".encode("utf-8", "replace"),
        ),
    )
    if random.random() < 0.2 and name in owner.attrs:
        del owner.attrs[name]
    elif random.random() < 0.2:
        ragged = h5py.vlen_dtype("i4")
        owner.attrs.create(name, np.array([np.arange(2), np.arange(3)], dtype=object), dtype=ragged)
    else:
        owner.attrs[name] = random.choice(values)


def set_dataset(file: h5py.File, random: Random) -> None:
    """A dataset of another type or shape, also one that is too large to be held."""
    name = random.choice((*"0001", MAP))
    old = file.pop(name)
    if random.random() < 0.5:
        dtype, shape = random.choice(TYPES[:-1]), old.shape
        file.create_dataset(name, shape, dtype=dtype)
    else:
        shape = random.choice((*SHAPES, old.shape[::-1], old.shape[1:]))
        in_chunks = bool(shape) and all(shape) and random.random() < 0.3
        file.create_dataset(name, shape, dtype="f4", chunks=in_chunks or None)


def set_link(file: h5py.File, random: Random) -> None:
    """A link where a dataset is expected, or a group or a named type."""
    name = random.choice((*"0001", MAP))
    del file[name]
    kinds = ("soft", "hard", "external", "itself", "dangling", "group", "type", "nothing")
    kind = random.choice(kinds)
    if kind == "soft":
        file[name] = h5py.SoftLink("/2")
    elif kind == "hard":
        file[name] = file["2"]
    elif kind == "external":
        file[name] = h5py.ExternalLink(random.choice(("other.h5", "/dev/zero", "nowhere", ".")), "/2")
    elif kind == "itself":
        file[name] = random.choice((h5py.SoftLink(f"/{name}"), h5py.SoftLink("/"), file["/"]))
    elif kind == "dangling":
        file[name] = h5py.SoftLink("/nowhere")
    elif kind == "group":
        file.create_group(name)
    elif kind == "type":
        file[name] = np.dtype("f4")


def set_storage(file: h5py.File, random: Random) -> None:
    """The same numbers kept elsewhere or otherwise: in another file, in chunks, compressed, compact, or not at all."""
    name = random.choice("0001")
    values = file.pop(name)[()]
    kind = random.choice(("external", "external", "chunks", "gzip", "compact", "unwritten", "virtual", "resizable"))
    if kind == "external":
        place = random.choice((("other.h5", 0), ("/dev/zero", 0), ("nowhere", 0), ("other.h5", 64)))
        external = [(*place, values.nbytes)]
        file.create_dataset(name, values.shape, values.dtype, external=external)
    elif kind == "compact":
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(values.shape)
        made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.py_create(values.dtype), space, properties)
        h5py.Dataset(made)[...] = values
    elif kind == "unwritten":
        file.create_dataset(name, values.shape, values.dtype)
    elif kind == "virtual":
        layout = h5py.VirtualLayout(values.shape, values.dtype)
        layout[...] = h5py.VirtualSource("other.h5", "0", values.shape)
        file.create_virtual_dataset(name, layout)
    else:
        options = {"chunks": {"chunks": True}, "gzip": {"compression": "gzip"}, "resizable": {"maxshape": (None,) * 3}}
        file.create_dataset(name, data=values, **options[kind])


def set_keys(file: h5py.File, random: Random) -> None:
    """Datasets more or fewer than sentences, and names that are no numbers."""
    changed = random.choice(("add", "drop", "rename"))
    if changed == "add":
        file[random.choice(("01", "-1", "x", "99", "é", "a/b"))] = random.choice((np.zeros((3, 2, 8), "f4"), "x", 1))
    elif changed == "drop":
        del file[random.choice(list(file))]
    else:
        file.move(random.choice(list(file)), random.choice(("x", "10", "00")))


def change_map(data: bytes, random: Random) -> bytes:
    """Change the JSON object that finds sentences."""
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as opened:
        text = random.choice(JSON)(opened[MAP][0], random)
        del opened[MAP]
        if random.random() < 0.8:
            opened.create_dataset(MAP, (1,), dtype=h5py.string_dtype())[0] = text.replace(b"\0", b"?")
        else:
            opened[MAP] = random.choice((np.void(text[:1000] or b"x"), [1, 2], json.dumps([text.hex()]), np.zeros(0)))
    return file.getvalue()


def change_group(data: bytes, random: Random) -> bytes:
    """Change one dataset or group of a file in any layout, in a way that needs no knowledge of it."""
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as opened:
        group = random.choice([opened, *(each for each in opened.values() if isinstance(each, h5py.Group))])
        name = random.choice(list(group))
        kind = random.choice(("attribute", "drop", "rename", "soft", "external", "group", "type", "shape", "add"))
        if kind == "attribute":
            set_attribute_of(opened, random)
        elif kind == "rename":
            group.move(name, random.choice(("x", "10", "00", "é")))
        elif kind == "add":
            group[random.choice(("x", "99"))] = random.choice((np.zeros((3, 2, 8), "f4"), "x", 1))
        else:
            old = group.pop(name)
            shape = old.shape if isinstance(old, h5py.Dataset) else ()
            if kind == "soft":
                group[name] = h5py.SoftLink(random.choice((f"/{name}", "/", "/nowhere", "/0")))
            elif kind == "external":
                group[name] = h5py.ExternalLink(random.choice(("other.h5", "/dev/zero", "nowhere")), "/0")
            elif kind == "group":
                group.create_group(name)
            elif kind == "type":
                group.create_dataset(name, shape, dtype=random.choice(TYPES[:-1]))
            elif kind == "shape":
                group.create_dataset(name, random.choice((*SHAPES, shape[::-1], shape[1:])), dtype="f4")
    return file.getvalue()


def set_attribute_of(file: h5py.File, random: Random) -> None:
    """Another value of an attribute of the root."""
    name = random.choice(list(file.attrs))
    del file.attrs[name]
    values = (*(-1, 0, 7, 2**63, 1.5, "x", "flat", "bilm", "allennlp", "e2e-coref", True, b"\xff"), ["a", "b"], [1, 2])
    if random.random() < 0.8:
        file.attrs[name] = random.choice((*values, h5py.Empty("f4"), np.zeros((2, 2)), np.complex64(1)))


def change_links(data: bytes, random: Random) -> bytes:
    """Change what a file says of its parts, or a link to one."""
    file = io.BytesIO(data)
    with h5py.File(file, "r+") as opened:
        if random.random() < 0.7:
            names = [str(name) for name in opened.attrs["parts"]]
            index = random.randrange(len(names))
            names[index] = random.choice(
                (
                    names[1 - index],
                    "/dev/zero",
                    "../other.h5",
                    "other.h5",
                    "x/y.h5",
                    names[index] + "/z",
                    "",
                    "é\n",
                    "..",
                )
            )
            values = (names, names[:1], names * 2, [], [1, 2], "x", 1.5, [[names[0]]])
            opened.attrs["parts"] = random.choice((*[names] * 4, *values))
        elif random.random() < 0.5:
            counts = random.choice(([4, 1], [0, 0], [-1, 9], [2**62, 2**62], [1.5, 2.5], [5], "x", [[1, 2]], []))
            opened.attrs["part_sentences"] = counts
        else:
            name = random.choice(list(opened))
            del opened[name]
            opened[name] = h5py.ExternalLink(random.choice(("other.h5", "/dev/zero", "nowhere")), "/0")
    return file.getvalue()


HDF5: tuple[Mutation, ...] = (*[change_structure] * 2 * len(RAW), *[change_map] * (len(RAW) // 2), *RAW)
GROUPS: tuple[Mutation, ...] = (*[change_group] * len(RAW), *RAW)
LINKS: tuple[Mutation, ...] = (*[change_links] * len(RAW), *RAW)
