"""CPU kernels of an LSTM step: how `cpu.cpp` is compiled on this machine, and called.

It is compiled once for a processor, and the library is kept in the user's cache directory; from there it is loaded only
if it is whole and nobody else can have written it. ctypes calls it, which releases the interpreter's lock, so that the
other direction's thread can run.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from elmoc.kernels.lstm_step import GatesBackward, GatesForward, LayerConstants, OutputBackward, OutputForward

SOURCE = Path(__file__).with_suffix(".cpp")
FLAGS = (
    ("-march=native", "-mprefer-vector-width=512", "-fopenmp"),
    ("-march=native", "-fopenmp"),
    ("-mcpu=native", "-fopenmp"),
    ("-march=native",),
    ("-mcpu=native",),
    (),
)
"""Tried in this order: not every compiler and processor takes all of them. Without OpenMP one thread runs."""
COMMON_FLAGS = ("-O3", "-std=c++17", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")

POINTER, LONG, FLOAT, INT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_int
SIGNATURES: dict[str, list[Any]] = {
    "gates_forward": [POINTER] * 7 + [LONG] * 3 + [FLOAT, INT],
    "gates_backward": [POINTER] * 8 + [LONG] * 3 + [FLOAT, INT],
    "output_forward": [POINTER] * 9 + [LONG] * 4 + [FLOAT, FLOAT, INT],
    "output_backward": [POINTER] * 10 + [LONG] * 4 + [FLOAT, INT],
}
"""Of each kernel: the tensors of its named tuple, tensors of the layer, then step, sizes and clips, and threads."""


_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_COMPILER_SECONDS = 600
_ABANDONED_SECONDS = 24 * 3600


class KernelBuildError(Exception):
    """The kernels cannot be compiled here; says why."""


class CompiledKernels:
    """`StepKernels` compiled for this processor; activations are float32 or bfloat16 on the CPU.

    Raises `KernelBuildError` where there is no C++ compiler that can.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        loaded, self.description = load(compiler(), SOURCE)
        name = {torch.float32: "float32", torch.bfloat16: "bfloat16"}[dtype]
        self._gates_forward, self._gates_backward, self._output_forward, self._output_backward = (
            ctypes.CFUNCTYPE(None, *arguments).in_dll(loaded, f"{kernel}_{name}")
            for kernel, arguments in SIGNATURES.items()
        )

    def parts(self, streams: int) -> tuple[int, int]:
        """One for each thread."""
        return torch.get_num_threads(), torch.get_num_threads()

    def gates_forward(self, layer: LayerConstants, step: int, tensors: GatesForward) -> None:
        addresses = _addresses(*tensors, layer.bias, layer.lengths)
        self._gates_forward(*addresses, step, *tensors.cell.shape, layer.cell_clip, torch.get_num_threads())

    def output_forward(self, layer: LayerConstants, step: int, tensors: OutputForward) -> None:
        self._output_forward(
            *_addresses(*tensors, layer.norm_weight, layer.norm_bias, layer.mask, layer.lengths),
            step,
            *tensors.projected.shape,
            tensors.hidden.stride(0),
            layer.projection_clip,
            layer.norm_epsilon,
            torch.get_num_threads(),
        )

    def output_backward(self, layer: LayerConstants, step: int, tensors: OutputBackward) -> None:
        self._output_backward(
            *_addresses(*tensors, layer.norm_weight, layer.mask, layer.lengths),
            step,
            *tensors.projected.shape,
            0 if tensors.grad_next is None else tensors.grad_next.stride(0),
            layer.projection_clip,
            torch.get_num_threads(),
        )

    def gates_backward(self, layer: LayerConstants, step: int, tensors: GatesBackward) -> None:
        addresses = _addresses(*tensors, layer.lengths)
        self._gates_backward(*addresses, step, *tensors.cell.shape, layer.cell_clip, torch.get_num_threads())


def _addresses(*tensors: Tensor | None) -> list[int | None]:
    return [None if tensor is None else tensor.data_ptr() for tensor in tensors]


def compiler() -> str:
    """The command that compiles, as the user names it in the variable CXX."""
    return os.environ.get("CXX", "").strip() or "c++"


@lru_cache
def load(compiler: str, source: Path) -> tuple[ctypes.CDLL, str]:
    """The kernels of a source file, compiled for this processor unless that was done before, and their description.

    Raises `KernelBuildError` when they cannot be compiled, kept or loaded.
    """
    try:
        command = shlex.split(compiler)
        found = shutil.which(command[0]) if command else None
        if found is None:
            raise KernelBuildError(f"there is no C++ compiler ({compiler})")
        version = _run([*command, "--version"]).stdout
        parts = (source.read_text(), compiler, version, processor(), repr((FLAGS, COMMON_FLAGS)))
        name = f"{source.stem}_kernels-" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        folder = cache_directory()
        try:
            loaded = ctypes.CDLL(str(kept_library(folder, name) or build(command, folder, name, source)))
        except OSError:  # what was kept is not for this system
            loaded = ctypes.CDLL(str(build(command, folder, name, source)))
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        # there is no home directory (RuntimeError), the command has an open quote (ValueError), it does not end
        raise KernelBuildError(f"kernels compiled by {compiler} cannot be kept or loaded ({error})") from None
    return loaded, f"C++ compiled by {found}" + ("" if loaded.has_threads() else ", on one thread: without OpenMP")


def kept_library(folder: Path, name: str) -> Path | None:
    """The library of that name that was compiled before, if it is whole and no other user can have written it.

    Its name ends in the hash of its content. One that is damaged or another's is removed.
    """
    for library in folder.glob(f"{name}-*.so"):
        status = library.lstat()
        own = (
            stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS
        )
        if own and library == _path_of(folder, name, library):
            return library
        library.unlink(missing_ok=True)
    return None


def build(command: list[str], folder: Path, name: str, source: Path) -> Path:
    """Compile the kernels into a library in `folder`; a `KernelBuildError` when the compiler cannot.

    It gets its name when it is whole, which says what it holds: several processes can do this at once.
    """
    for left in folder.glob("build-*"):  # by processes that were killed
        if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as scratch:
        for flags in FLAGS:
            output = Path(scratch) / name
            run = _run([*command, *COMMON_FLAGS, *flags, str(source), "-o", str(output)])
            if run.returncode == 0:
                output.chmod(0o700)
                return output.replace(_path_of(folder, name, output))
    said = run.stderr.strip().splitlines() or [f"status {run.returncode}"]
    raise KernelBuildError(f"{command[0]} does not compile {source}: {said[-1]}")


def _path_of(folder: Path, name: str, library: Path) -> Path:
    """Where a library with the content of `library` is kept."""
    return folder / f"{name}-{hashlib.sha256(library.read_bytes()).hexdigest()[:16]}.so"


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_COMPILER_SECONDS,
    )


def processor() -> str:
    """The instruction sets of this processor: a library compiled for another may not run on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return platform.machine() + "".join(sorted({line for line in lines if line.startswith(("flags", "Features"))}))


def cache_directory() -> Path:
    """Where compiled kernels are kept: `elmoc` in the user's cache directory (`XDG_CACHE_HOME`).

    What is there is run as code, so nobody else may write there: raises `KernelBuildError` where it is another's.
    """
    base = os.environ.get("XDG_CACHE_HOME", "")
    path = (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "elmoc"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = path.stat()
    if status.st_uid != os.geteuid():
        raise KernelBuildError(
            f"the cache directory {path} is another user's: name one of your own in the variable XDG_CACHE_HOME"
        )
    if status.st_mode & _WRITABLE_BY_OTHERS:
        path.chmod(stat.S_IMODE(status.st_mode) & ~_WRITABLE_BY_OTHERS)
    return path
