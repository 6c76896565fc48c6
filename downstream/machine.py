"""How is a process set up so that probes train fast on this machine, with the same float32 results?"""

import torch

from elmoc.memory import keep_freed_memory

SIZE = 256
"""Rows and columns of the matrices that are multiplied to see what a faster way costs."""


def set_up_process() -> None:
    """Keep freed memory for the next batch, and multiply matrices by the faster of PyTorch's two libraries."""
    keep_freed_memory()
    use_faster_products()


def use_faster_products() -> bool:
    """Let float32 products on a CPU go to oneDNN, which on some processors is twice as fast as MKL.

    PyTorch does that at its precision "medium", which also allows bfloat16 inside where the processor has units for it
    (AMX): so the error of a product is looked at, and where it is not that of float32 all stays as it was. Returns
    whether oneDNN is used.
    """
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(SIZE, SIZE, generator=generator) for _ in range(2))
    exact = left.double() @ right.double()

    def error() -> float:
        return float((exact - left @ right).square().mean().sqrt())

    before, usual = torch.get_float32_matmul_precision(), error()
    torch.set_float32_matmul_precision("medium")
    if error() > 4 * usual:
        torch.set_float32_matmul_precision(before)
        return False
    return True
