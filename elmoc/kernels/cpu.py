"""How do the kernels of `cpu_kernels.cpp` get compiled on this machine, and called?

They are compiled once for a processor and kept in the user's cache directory. ctypes calls them, which leaves the
interpreter free for the other direction meanwhile.
"""

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from elmoc.kernels.lstm_step import LayerConstants

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
SIGNATURES = {
    "gates_forward": [POINTER] * 4 + [LONG] * 3 + [FLOAT] + [POINTER] * 3 + [INT],
    "gates_backward": [POINTER] * 4 + [LONG] * 3 + [FLOAT] + [POINTER] * 4 + [INT],
    "output_forward": [POINTER] * 5 + [LONG] * 3 + [FLOAT] * 2 + [POINTER] * 2 + [LONG] + [POINTER] * 2 + [INT],
    "output_backward": [POINTER] * 3 + [LONG] + [POINTER] * 5 + [LONG] * 3 + [FLOAT] + [POINTER] * 2 + [INT],
}


class KernelBuildError(Exception):
    """The kernels cannot be compiled here; says why."""


class CompiledKernels:
    """`StepKernels` compiled for this processor; activations are float32 or bfloat16 on the CPU.

    Raises `KernelBuildError` where there is no C++ compiler that can.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        loaded, self.description = load(os.environ.get("CXX") or "c++")
        name = {torch.float32: "float32", torch.bfloat16: "bfloat16"}[dtype]
        self._functions = {}
        for kernel, arguments in SIGNATURES.items():
            function = getattr(loaded, f"{kernel}_{name}")
            function.argtypes, function.restype = arguments, None
            self._functions[kernel] = function

    def parts(self, streams: int) -> tuple[int, int]:
        """One for each thread."""
        return torch.get_num_threads(), torch.get_num_threads()

    def gates_forward(
        self,
        layer: LayerConstants,
        step: int,
        raw: Tensor,
        cell_before: Tensor,
        gates: Tensor,
        cell: Tensor,
        memory: Tensor,
    ) -> None:
        """See `StepKernels`."""
        self._functions["gates_forward"](
            raw.data_ptr(),
            layer.bias.data_ptr(),
            cell_before.data_ptr(),
            _pointer(layer.lengths),
            step,
            *cell.shape,
            layer.cell_clip,
            gates.data_ptr(),
            cell.data_ptr(),
            memory.data_ptr(),
            torch.get_num_threads(),
        )

    def output_forward(
        self,
        layer: LayerConstants,
        step: int,
        raw: Tensor,
        hidden_before: Tensor,
        hidden: Tensor,
        moments: Tensor,
        outputs: Tensor,
    ) -> None:
        """See `StepKernels`."""
        self._functions["output_forward"](
            raw.data_ptr(),
            _pointer(layer.norm_weight),
            _pointer(layer.norm_bias),
            _pointer(layer.mask),
            _pointer(layer.lengths),
            step,
            *raw.shape,
            layer.projection_clip,
            layer.norm_epsilon,
            hidden_before.data_ptr(),
            hidden.data_ptr(),
            hidden.stride(0),
            moments.data_ptr(),
            outputs.data_ptr(),
            torch.get_num_threads(),
        )

    def output_backward(
        self,
        layer: LayerConstants,
        step: int,
        grad_outputs: Tensor,
        grad_hidden: Tensor,
        grad_next: Tensor | None,
        raw: Tensor,
        moments: Tensor,
        grad_raw: Tensor,
        grad_norm: Tensor,
    ) -> None:
        """See `StepKernels`."""
        self._functions["output_backward"](
            grad_outputs.data_ptr(),
            grad_hidden.data_ptr(),
            _pointer(grad_next),
            0 if grad_next is None else grad_next.stride(0),
            raw.data_ptr(),
            moments.data_ptr(),
            _pointer(layer.norm_weight),
            _pointer(layer.mask),
            _pointer(layer.lengths),
            step,
            *raw.shape,
            layer.projection_clip,
            grad_raw.data_ptr(),
            grad_norm.data_ptr(),
            torch.get_num_threads(),
        )

    def gates_backward(
        self,
        layer: LayerConstants,
        step: int,
        grad_memory: Tensor,
        cell: Tensor,
        cell_before: Tensor,
        gates: Tensor,
        memory: Tensor,
        grad_cell: Tensor,
        grad_bias: Tensor,
    ) -> None:
        """See `StepKernels`."""
        self._functions["gates_backward"](
            grad_memory.data_ptr(),
            cell.data_ptr(),
            cell_before.data_ptr(),
            _pointer(layer.lengths),
            step,
            *cell.shape,
            layer.cell_clip,
            gates.data_ptr(),
            memory.data_ptr(),
            grad_cell.data_ptr(),
            grad_bias.data_ptr(),
            torch.get_num_threads(),
        )


def _pointer(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


@lru_cache
def load(compiler: str) -> tuple[ctypes.CDLL, str]:
    """The kernels, compiled for this processor unless that was done before, and what they are, for people.

    Raises `KernelBuildError` when anything stands in the way.
    """
    try:
        command = shlex.split(compiler)
        found = shutil.which(command[0])
        if found is None:
            raise KernelBuildError(f"there is no C++ compiler ({compiler})")
        version = subprocess.run([*command, "--version"], capture_output=True, text=True).stdout
        parts = (SOURCE.read_text(), compiler, version, processor(), repr((FLAGS, COMMON_FLAGS)))
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        library = cache_directory() / f"cpu_kernels-{key[:16]}.so"
        try:
            loaded = ctypes.CDLL(str(library))
        except OSError:  # it is not there, or damaged
            build(command, library)
            loaded = ctypes.CDLL(str(library))
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home directory
        raise KernelBuildError(f"kernels compiled by {compiler} cannot be kept or loaded ({error})") from None
    return loaded, f"C++ compiled by {found}" + ("" if loaded.has_threads() else ", on one thread: without OpenMP")


def build(command: list[str], library: Path) -> None:
    """Compile the kernels into a library; a `KernelBuildError` when the compiler cannot."""
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        for flags in FLAGS:
            output = Path(scratch) / library.name
            run = subprocess.run(
                [*command, *COMMON_FLAGS, *flags, str(SOURCE), "-o", str(output)], capture_output=True, text=True
            )
            if run.returncode == 0:
                os.replace(output, library)
                return
    said = run.stderr.strip().splitlines() or [f"status {run.returncode}"]
    raise KernelBuildError(f"{command[0]} does not compile {SOURCE}: {said[-1]}")


def processor() -> str:
    """What names the instructions that this processor has: a library compiled for others may not run on it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    return platform.machine() + "".join(sorted({line for line in lines if line.startswith(("flags", "Features"))}))


def cache_directory() -> Path:
    """Where compiled kernels are kept: `elmoc` in the user's cache directory (`XDG_CACHE_HOME`)."""
    path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "elmoc"
    path.mkdir(parents=True, exist_ok=True)
    return path
