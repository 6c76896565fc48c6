"""Memory: the peak of a contestant, and what autograd keeps of each word."""

import ctypes
from pathlib import Path

import torch
from torch import Tensor

from elmoc.process import resident_bytes
from pretrain.data.batches import Batch
from pretrain.setup import TrainingSetup
from pretrain.speed.contestants import Contestant, with_streams
from pretrain.speed.streaming import first_batches

FEW_STREAMS = (8, 16)


class PeakMemory:
    """The peak from here on, above what is in use now: of the GPU's allocator, or of the process where Linux tells.

    Of the process, pages of mapped files (tables of vectors) are left out, which the system takes back where it needs
    memory. It is a lower bound: what was mapped after the peak is taken off, too.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.before: int | None
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self.before = torch.cuda.memory_allocated(device)
        else:
            self.before = reset_resident_peak()

    def bytes(self) -> int | None:
        """The peak so far, in bytes; None where the system does not tell."""
        if self.before is None:
            return None
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) - self.before
        return max(0, resident_bytes("VmHWM") - resident_bytes("RssFile") - self.before)


def reset_resident_peak() -> int | None:
    """Have Linux forget the peak of this process, once free memory is given back; its memory now, None elsewhere.

    Pages of mapped files are left out.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError, TypeError):  # no Linux, no glibc
        return None
    return resident_bytes("VmRSS") - resident_bytes("RssFile")


def kept_bytes_per_word(name: str, setup: TrainingSetup) -> float:
    """What autograd keeps of each word from forward to backward, over all directions.

    It is what a few more streams add, so that nothing counts that does not grow with them.
    """
    few, more = (
        kept_bytes(Contestant(name, of_few), *first_batches(of_few, 1))
        for of_few in (with_streams(setup, streams) for streams in FEW_STREAMS)
    )
    words = (FEW_STREAMS[1] - FEW_STREAMS[0]) * setup.data.window
    return len(setup.encoder.directions) * (more - few) / words


def kept_bytes(contestant: Contestant, batch: Batch) -> int:
    """What the first direction keeps from forward to backward in one update, parameters aside.

    Counted are the distinct memory blocks of the tensors that autograd saves, also for a custom function of the graph.
    """
    state = contestant.state
    blocks: dict[int, torch.UntypedStorage] = {}  # held, so that no address is used twice

    def add(tensor: Tensor) -> Tensor:
        if tensor.layout == torch.strided:
            block = tensor.untyped_storage()
            blocks[block.data_ptr()] = block
        return tensor

    state.encoder.train()
    with torch.autograd.graph.saved_tensors_hooks(add, lambda tensor: tensor):
        contestant.train_step.update_direction(state.encoder.directions[0], batch, contestant.rate)
    for module in (state.encoder, state.output_layers):
        for parameter in module.parameters():
            blocks.pop(parameter.untyped_storage().data_ptr(), None)
    return sum(block.nbytes() for block in blocks.values())
