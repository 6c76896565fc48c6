"""Ring of buffers: none is read or written too early by a GPU that does its work at the worst times.

The GPU is simulated: what a stream is asked for waits until the scheduler lets it happen, in the order of the stream,
and never before an event that it was told to wait for.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import deepcopy
from functools import partial
from itertools import islice

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.word_vectors.table import VectorTable
from pretrain.data.batches import Batch, BatchMaker, Buffers, Slot, stream_batches
from tests.pretrain.data.reading import windows_of_shards

from elmoc.encoders import DIRECTIONS
from pretrain.output_layers import Targets

COUNT = 40


class Stream:
    """A queue of (what has to be done before, what to do)."""

    device = torch.device("cuda:0")

    def __init__(self) -> None:
        self.work: list[tuple[list[bool] | None, Callable[[], object]]] = []

    def wait_event(self, event: "Event") -> None:
        self.work.append((event.done, lambda: None))


class Event:
    """`done` is of the last time that it was recorded: empty until the stream gets there."""

    def __init__(self, gpu: "SimulatedGPU") -> None:
        self.gpu = gpu
        self.done: list[bool] | None = None

    def record(self, stream: Stream) -> None:
        self.done = done = []
        stream.work.append((None, lambda: done.append(True)))

    def synchronize(self) -> None:
        while self.done is not None and not self.done:
            assert self.gpu.advance(), "what is waited for can never happen"


class SimulatedGPU:
    """Runs one thing at a time, from the stream that is `preferred` (compute, side or either) if it can."""

    def __init__(self, preferred: str, seed: int) -> None:
        self.compute, self.side = Stream(), Stream()
        self.preferred = preferred
        self.generator = np.random.default_rng(seed)
        self.lock = threading.RLock()
        self.current = threading.local()

    def advance(self, only: Stream | None = None) -> bool:
        """Let one thing happen, if anything can."""
        with self.lock:
            streams = [self.compute, self.side] if self.preferred == "compute" else [self.side, self.compute]
            if self.preferred == "either":
                self.generator.shuffle(streams)  # type: ignore[arg-type]
            for stream in streams if only is None else [only]:
                if stream.work and (stream.work[0][0] is None or stream.work[0][0]):
                    stream.work.pop(0)[1]()
                    return True
            return False

    def run_preferred(self) -> None:
        """Let all that the preferred stream can do happen, or some things of either stream."""
        if self.preferred == "either":
            for _ in range(self.generator.integers(12)):
                self.advance()
        else:
            while self.advance(getattr(self, self.preferred)):
                pass

    def current_stream(self, device: object = None) -> Stream:
        return getattr(self.current, "stream", self.compute)

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        assert hasattr(self.current, "device"), "torch.cuda.stream goes back to GPU 0 in a thread that has set none"
        self.current.stream = stream
        yield
        del self.current.stream

    def copy(self, to: Buffers, source: Buffers, count: int) -> None:
        for own, others in zip(to.filled(count), source.filled(count), strict=True):
            self.current_stream().work.append((None, partial(own.copy_, others)))

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "Stream", lambda device: self.side)
        monkeypatch.setattr(torch.cuda, "Event", lambda blocking=False: Event(self))
        monkeypatch.setattr(torch.cuda, "stream", self.stream)
        monkeypatch.setattr(torch.cuda, "current_stream", self.current_stream)
        monkeypatch.setattr(torch.cuda, "set_device", lambda device: setattr(self.current, "device", device))
        monkeypatch.setattr(Buffers, "copy_", lambda to, source, count: self.copy(to, source, count))


def in_plain_memory(maker: BatchMaker) -> BatchMaker:
    """The maker, whose buffers are all in main memory, not pinned, and start as zeros."""
    allocate = maker.buffers

    def buffers(shape: tuple[int, int, int], device: torch.device, *, pin: bool = False) -> Buffers:
        assert pin == (device.type == "cpu")
        made = allocate(shape, torch.device("cpu"))
        for tensor in made.filled(1000):
            tensor.zero_()
        return made

    maker.buffers = buffers  # type: ignore[method-assign]
    return maker


def check_stream(
    gpu: SimulatedGPU, maker: BatchMaker, corpus: Corpus, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the computing stream reads, whenever it gets to it, are the vectors of its window."""
    gpu.install(monkeypatch)

    read: list[tuple[torch.Tensor, Targets]] = []

    def look(batch: Batch, direction: str) -> None:
        with suppress(IndexError):  # the row numbers are already those of a window with more rows
            targets = batch.targets(direction)  # whose ids lie in the buffers
            read.append((batch.inputs(direction), deepcopy(targets)))

    batches = stream_batches(windows_of_shards(corpus, 4, 5), in_plain_memory(maker), torch.device("cuda"))
    for batch in islice(batches, COUNT):
        for direction in DIRECTIONS:
            gpu.compute.work.append((None, partial(look, batch, direction)))
        gpu.run_preferred()
    batches.close()
    while gpu.advance():
        pass
    assert not gpu.compute.work
    assert not gpu.side.work
    wanted = [ids for window in islice(windows_of_shards(corpus, 4, 5), COUNT) for ids in window.ids.values()]
    inputs, targets = (np.asarray(VectorTable(corpus, name).rows, dtype=np.float32) for name in names)
    assert len(read) == len(wanted)
    for (some, others), ids in zip(read, wanted, strict=True):
        np.testing.assert_array_equal(some.numpy(), inputs[ids[:, :-1]])
        np.testing.assert_array_equal(others.ids.numpy(), ids[:, 1:])
        np.testing.assert_array_equal(others.vectors.numpy(), targets[ids[:, 1:]])


@pytest.mark.parametrize("names", [("raw", "raw"), ("half", "other")])
@pytest.mark.parametrize("preferred", ["compute", "side", "either"])
def test_every_batch_is_read_as_it_was_gathered(
    tiny_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, preferred: str, names: tuple[str, str]
) -> None:
    maker = BatchMaker(*(VectorTable(tiny_corpus, name) for name in names))
    check_stream(SimulatedGPU(preferred, seed=1), maker, tiny_corpus, names, monkeypatch)


@pytest.mark.parametrize(("left_out", "preferred"), [("wait", "compute"), ("receive", "compute"), ("release", "side")])
def test_each_of_the_three_rules_is_needed(
    tiny_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, left_out: str, preferred: str
) -> None:
    monkeypatch.setattr(Slot, left_out, lambda slot: None)
    table = VectorTable(tiny_corpus, "raw")
    with pytest.raises(AssertionError):
        check_stream(
            SimulatedGPU(preferred, seed=1), BatchMaker(table, table), tiny_corpus, ("raw", "raw"), monkeypatch
        )
