"""How much memory does a contestant take, and how much of it does each word cost?"""

import ctypes
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path

import torch
from torch import Tensor

from pretrain.data.loader import Batch
from pretrain.setup import TrainingSetup
from pretrain.speed.contestants import Contestant, with_streams
from pretrain.speed.streaming import first_batches
from pretrain.step import update

FEW_STREAMS = (8, 16)


class PeakMemory:
    """The peak from here on, above what is in use now: of the GPU's allocator, or of the process where Linux tells."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            self.before: int | None = torch.cuda.memory_allocated(device)
        else:
            self.before = resident_bytes("VmRSS") if reset_peak() else None

    def bytes(self) -> int | None:
        """The peak so far, in bytes; None where nobody tells."""
        if self.before is None:
            return None
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) - self.before
        return resident_bytes("VmHWM") - self.before


def reset_peak() -> bool:
    """Have the kernel forget the peak of the process, after free memory was given back; False where it cannot."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError, TypeError):  # no Linux, no glibc
        return False
    return True


def resident_bytes(field: str) -> int:
    """A figure of this process in /proc: `VmRSS` is its memory now, `VmHWM` its peak."""
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found
    return 1024 * int(found[1])


def kept_bytes_per_word(name: str, setup: TrainingSetup) -> float:
    """What autograd keeps of each word from forward to backward, over all directions.

    It is what a few more streams add, so that nothing counts that does not grow with them.
    """
    few, more = (
        kept_bytes(Contestant(name, of_few), *first_batches(of_few, 1))
        for of_few in (with_streams(setup, streams) for streams in FEW_STREAMS)
    )
    words = (FEW_STREAMS[1] - FEW_STREAMS[0]) * setup.config.train.window
    return len(setup.encoder.directions) * (more - few) / words


def kept_bytes(contestant: Contestant, batch: Batch) -> int:
    """What the first direction keeps from forward to backward in one update, parameters aside.

    Counted are the distinct memory blocks of the tensors that autograd saves, and of those that a custom function of
    the graph holds.
    """
    setup, direction = contestant.setup, contestant.state.encoder.directions[0]
    head = contestant.state.heads.direction(direction)
    blocks: dict[int, torch.UntypedStorage] = {}  # held, so that no address is used twice

    def add(tensor: Tensor) -> Tensor:
        if tensor.layout == torch.strided:
            block = tensor.untyped_storage()
            blocks[block.data_ptr()] = block
        return tensor

    def add_held(module: object, arguments: object, predictions: Tensor) -> None:
        for tensor in held_by_functions(predictions):
            add(tensor)

    handle = head.register_forward_hook(add_held)
    contestant.state.encoder.train()
    with torch.autograd.graph.saved_tensors_hooks(add, lambda tensor: tensor):
        update(setup, contestant.state, batch, direction, contestant.rate)
    handle.remove()
    for module in (contestant.state.encoder, contestant.state.heads):
        for parameter in module.parameters():
            blocks.pop(parameter.untyped_storage().data_ptr(), None)
    return sum(block.nbytes() for block in blocks.values())


def held_by_functions(output: Tensor) -> Iterator[Tensor]:
    """The tensors that functions of the graph behind `output` have as attributes (their saved tensors aside)."""
    nodes, seen = [output.grad_fn], set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        yield from tensors_in(getattr(node, "__dict__", {}))
        nodes += [next_node for next_node, _ in node.next_functions]


def tensors_in(value: object) -> Iterator[Tensor]:
    """The tensors in nested dictionaries, lists, tuples and dataclasses."""
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item)
