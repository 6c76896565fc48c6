"""Ring of buffers: none is read or written too early by a GPU that does its work at the worst times.

The GPU is simulated: what a stream is asked for waits until the scheduler lets it happen, in the order of the stream,
and never before an event that it was told to wait for.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice

import numpy as np
import pytest
import torch
from pretrain.data.loader import DeviceSlot, stream_batches

from elmoc.corpus import Corpus
from elmoc.encoders import DIRECTIONS
from elmoc.word_vectors.table import VectorTable
from pretrain.data import batches as batches_module
from pretrain.data.batches import Batch, Buffers, ResidentTables, StreamedTables, Tables
from pretrain.data.candidates import CandidateSampler, with_candidates
from pretrain.data.windows import Position, Window
from pretrain.output_layers import CandidateSettings, Targets
from tests.pretrain.data.reading import windows_of_shards

COUNT = 40


class Stream:
    """A queue of (what has to be done before, what to do)."""

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

    def copy(self, to: torch.Tensor, source: torch.Tensor) -> None:
        self.current_stream().work.append((None, lambda: to.copy_(source)))

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch.cuda, "Stream", lambda device: self.side)
        monkeypatch.setattr(torch.cuda, "Event", lambda blocking=False: Event(self))
        monkeypatch.setattr(torch.cuda, "stream", self.stream)
        monkeypatch.setattr(torch.cuda, "current_stream", self.current_stream)
        monkeypatch.setattr(torch.cuda, "set_device", lambda device: setattr(self.current, "device", device))
        monkeypatch.setattr(batches_module, "start_copy", self.copy)


def in_plain_memory(tables: Tables) -> Tables:
    """The tables, whose buffers are all in main memory, not pinned, and start as zeros."""
    allocate = tables.buffers

    def buffers(shape: tuple[int, ...], device: torch.device, pin: bool) -> Buffers:
        assert pin == (device.type == "cpu")
        made = allocate(shape, torch.device("cpu"), False)
        candidates = [] if made.candidates is None else list(vars(made.candidates).values())
        for tensor in (made.ids, made.rows, *made.vectors, *candidates):
            tensor.zero_()
        return made

    tables.buffers = buffers  # type: ignore[method-assign]
    return tables


def check_stream(
    gpu: SimulatedGPU, tables: Tables, corpus: Corpus, names: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the computing stream reads, whenever it gets to it, are the vectors of its window."""
    gpu.install(monkeypatch)

    def windows() -> Iterator[Window]:
        read = windows_of_shards(corpus, 4, 5)
        return read if tables.sampler is None else with_candidates(read, tables.sampler, Position(), slice(None))

    read: list[tuple[torch.Tensor, Targets]] = []

    def look(batch: Batch, direction: str) -> None:
        with suppress(IndexError):  # the row numbers are already those of a window with more rows
            targets = batch.targets(direction)  # whose ids lie in the buffers
            read.append((batch.inputs(direction), targets.map(torch.clone)))

    batches = stream_batches(windows(), in_plain_memory(tables), torch.device("cuda"))
    for batch in islice(batches, COUNT):
        for direction in DIRECTIONS:
            gpu.compute.work.append((None, partial(look, batch, direction)))
        gpu.run_preferred()
    batches.close()
    while gpu.advance():
        pass
    assert not gpu.compute.work
    assert not gpu.side.work
    all_windows = list(islice(windows(), COUNT))
    wanted = [ids for window in all_windows for ids in window.ids.values()]
    candidates = [
        window.candidates[name].ids if window.candidates else ids
        for window in all_windows
        for name, ids in window.ids.items()
    ]
    inputs, targets = (np.asarray(VectorTable(corpus, name).rows, dtype=np.float32) for name in names)
    assert len(read) == len(wanted)
    for (some, others), ids, among in zip(read, wanted, candidates, strict=True):
        np.testing.assert_array_equal(some.numpy(), inputs[ids[:, :-1]])
        np.testing.assert_array_equal(others.ids.numpy(), ids[:, 1:])
        if tables.sampler is None:
            np.testing.assert_array_equal(others.vectors.numpy(), targets[ids[:, 1:]])
        else:
            np.testing.assert_array_equal(among[others.candidates.places.numpy()], ids[:, 1:])
            np.testing.assert_array_equal(others.candidates.vectors.numpy(), targets[among])
            np.testing.assert_array_equal(others.candidates.log_chance.numpy(), tables.sampler.log_chance[among])


@pytest.mark.parametrize("kind", ["streamed", "resident"])
@pytest.mark.parametrize("names", [("raw", "raw"), ("half", "other")])
@pytest.mark.parametrize("preferred", ["compute", "side", "either"])
def test_every_batch_is_read_as_it_was_gathered(
    tiny_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, preferred: str, names: tuple[str, str], kind: str
) -> None:
    opened = [VectorTable(tiny_corpus, name) for name in names]
    tables = ResidentTables(*opened, torch.device("cpu")) if kind == "resident" else StreamedTables(*opened)
    check_stream(SimulatedGPU(preferred, seed=1), tables, tiny_corpus, names, monkeypatch)


@pytest.mark.parametrize("preferred", ["compute", "side"])
@pytest.mark.parametrize("kind", ["streamed", "resident"])
def test_candidates_are_read_as_they_were_gathered(
    tiny_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, kind: str, preferred: str
) -> None:
    opened = [VectorTable(tiny_corpus, name) for name in ("half", "other")]
    sampler = CandidateSampler(tiny_corpus.counts, targets=20, settings=CandidateSettings(extra=3), seed=1)
    tables = (
        ResidentTables(*opened, torch.device("cpu"), sampler=sampler)
        if kind == "resident"
        else StreamedTables(*opened, sampler=sampler)
    )
    check_stream(SimulatedGPU(preferred, seed=1), tables, tiny_corpus, ("half", "other"), monkeypatch)


@pytest.mark.parametrize(("left_out", "preferred"), [("wait", "compute"), ("receive", "compute"), ("release", "side")])
def test_each_of_the_three_rules_is_needed(
    tiny_corpus: Corpus, monkeypatch: pytest.MonkeyPatch, left_out: str, preferred: str
) -> None:
    monkeypatch.setattr(DeviceSlot, left_out, lambda slot: None)
    table = VectorTable(tiny_corpus, "raw")
    with pytest.raises(AssertionError):
        check_stream(
            SimulatedGPU(preferred, seed=1), StreamedTables(table, table), tiny_corpus, ("raw", "raw"), monkeypatch
        )


def test_memory_that_is_still_being_read_as_another_tensor_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = SimulatedGPU("side", seed=1)
    gpu.install(monkeypatch)
    torch.cuda.set_device("cuda:0")
    host, device = (Buffers(*[torch.full((1, 1, 2), n)] * 2, [torch.full((1, 3), n)]) for n in (1, 0))
    read = []
    gpu.compute.work.append((None, lambda: read.append(device.vectors[0].clone())))
    slot = DeviceSlot(host, device, gpu.side)  # type: ignore[arg-type]
    slot.send(1)
    while gpu.advance():
        pass
    assert read[0].tolist() == [[0, 0, 0]]
    assert device.vectors[0].tolist() == [[1, 1, 1]]
