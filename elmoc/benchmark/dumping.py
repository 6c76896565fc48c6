"""Speed of dumping: words a second of the encoder, and how far that is from what the machine can do.

All contestants read the same made-up sentences with the same random weights, and take turns, so that a machine that is
busy for a while is busy for all; figures are those of the best turn, of matrix products and of memory, too, which have
many more turns. A word is a word of a sentence: its boundaries are read, but not
counted, and neither is padding.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from elmoc.benchmark.allennlp_cell import allennlp_states
from elmoc.devices import has_bf16
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.inference import InferenceEncoder
from elmoc.encoders.lstm import LstmSizes
from elmoc.errors import InputError
from elmoc.kernels.matmul import prepare_linear

BASELINE_SENTENCES = 64
"""Of a batch of the baseline."""
_PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}
_TURNS = 3
_SHORT_TURNS = 10
"""Of what takes a fraction of a second, in each turn of the others."""


@dataclass(frozen=True)
class Size:
    """An encoder, and what is read."""

    encoder: EncoderConfig
    sentences: int
    matrices: tuple[tuple[int, int, int], ...]
    """Products whose best rate is the machine's: rows, depth, columns."""
    memory: int
    """Bytes that are read to measure the memory."""


PAPER = Size(
    EncoderConfig(LstmSizes()),
    sentences=2048,
    matrices=((2048, 2048, 2048), (4096, 4096, 512), (4096, 4096, 4096), (512, 1024, 16384)),
    memory=1 << 30,
)
QUICK = Size(
    EncoderConfig(LstmSizes(projection_size=64, cell_size=256), 50),
    sentences=100,
    matrices=((256, 256, 256),),
    memory=1 << 24,
)


@dataclass
class Timing:
    """The seconds of each turn of a contestant, by the clock and of processors."""

    words: int
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    def take(self, run: Callable[[], object]) -> None:
        """Time a turn."""
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        self.seconds.append(time.perf_counter() - wall)
        self.cpu_seconds.append(time.process_time() - cpu)

    @property
    def speed(self) -> float:
        """Words a second."""
        return self.words / min(self.seconds)

    @property
    def cpu_speed(self) -> float:
        """Words a second of processors."""
        return self.words / min(self.cpu_seconds)


def rows(quick: bool) -> Iterator[tuple[str, str]]:
    """Yield (what, figure) pairs: at the paper's size, which takes some minutes, or at a small one."""
    size = QUICK if quick else PAPER
    encoder = random_encoder(size.encoder)
    sentences = random_sentences(size.sentences, size.encoder.word_vector_size)
    words = sum(map(len, sentences)) - 2 * len(sentences)
    yield "sentences", f"{len(sentences):,} of {words / len(sentences):.1f} words on average"
    yield "encoder", f"{size.encoder.sizes.description}, on {torch.get_num_threads()} threads"
    names = [name for name in _PRECISIONS if name == "float32" or has_bf16(torch.device("cpu"))]
    prepared = {name: InferenceEncoder(encoder, dtype=_PRECISIONS[name]) for name in names}
    yield from _batches(size, encoder, prepared, sentences)
    yield from _one_at_a_time(size, encoder, prepared, sentences)


def _batches(
    size: Size, encoder: BidirectionalEncoder, prepared: dict[str, InferenceEncoder], sentences: list[Tensor]
) -> Iterator[tuple[str, str]]:
    lengths = [len(sentence) - 2 for sentence in sentences]
    everything, few = packed(sentences), packed(sentences[:BASELINE_SENTENCES])
    timings = {name: Timing(sum(lengths)) for name in prepared}
    rates = {name: Timing(1) for name in prepared}
    products = {name: best_product(size.matrices, _PRECISIONS[name]) for name in prepared}
    middle = sorted(range(len(lengths)), key=lengths.__getitem__)[len(lengths) // 2 - BASELINE_SENTENCES // 2 :]
    batch = padded([sentences[i] for i in middle[:BASELINE_SENTENCES]])
    baseline = Timing(sum(lengths[i] for i in middle[:BASELINE_SENTENCES]))
    try:
        states = allennlp_states(encoder)
    except InputError as error:
        yield "allennlp_light", f"not measured: {error}"
        states = None
    for turn in range(-1, _TURNS):  # the first, which is not counted, warms up
        for name, inference in prepared.items():
            read = everything if turn >= 0 else few
            product, operations = products[name]
            taken, rate = (Timing(1), Timing(1)) if turn < 0 else (timings[name], rates[name])
            for _ in range(_SHORT_TURNS):
                rate.take(product)
            taken.take(partial(inference.sentences, *read))
            rate.words = operations
        if states is not None and turn >= 0:
            baseline.take(partial(states, *batch))
    for name, timing in timings.items():
        operations = flops_per_word(encoder)
        share, cpu_share = (
            operations * getattr(timing, speed) / getattr(rates[name], speed) for speed in ("speed", "cpu_speed")
        )
        yield f"best matrix rate, {name}", f"{rates[name].speed / 1e9:,.0f} GFLOP/s"
        yield (
            f"batches, {name}",
            f"{timing.speed:,.0f} words/s, {share:.0%} of the matrix rate ({cpu_share:.0%} by processor time)",
        )
    if baseline.seconds:
        yield f"allennlp_light's cell, batches of {BASELINE_SENTENCES}", f"{baseline.speed:,.0f} words/s"
        for name, timing in timings.items():
            ratio, cpu_ratio = timing.speed / baseline.speed, timing.cpu_speed / baseline.cpu_speed
            yield f"{name} over allennlp_light", f"{ratio:.1f} times ({cpu_ratio:.1f} by processor time)"


def _one_at_a_time(
    size: Size, encoder: BidirectionalEncoder, prepared: dict[str, InferenceEncoder], sentences: list[Tensor]
) -> Iterator[tuple[str, str]]:
    few = [padded([sentence]) for sentence in sentences[:4]]
    timings = {name: Timing(sum(int(lengths) - 2 for _, lengths in few)) for name in prepared}
    buffer, memory = torch.ones(size.memory // 4), Timing(size.memory)
    for _ in range(_TURNS):
        for _ in range(_SHORT_TURNS):
            memory.take(buffer.sum)
        for name, inference in prepared.items():
            timings[name].take(partial(read_all, inference, few))
    yield "reading memory", f"{memory.speed / 1e9:.1f} GB/s"
    weights = sum(weight.numel() for name, weight in encoder.named_parameters() if ".layers." in name)
    for name, timing in timings.items():
        limit = memory.speed / (weights * _PRECISIONS[name].itemsize)
        yield (
            f"one sentence at a time, {name}",
            f"{timing.speed:,.0f} words/s, "
            f"{timing.speed / limit:.0%} of reading all weights from memory for every word",
        )


def random_encoder(config: EncoderConfig) -> BidirectionalEncoder:
    """An encoder with random weights; the speed does not depend on them."""
    with torch.device("meta"):  # orthogonal weights would take longer than the benchmark
        encoder = BidirectionalEncoder(config, fast=True)
    encoder.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.normal_(0, 0.03, generator=generator)
    return encoder.eval()


def random_sentences(count: int, width: int) -> list[Tensor]:
    """The word vectors [n + 2, E] of sentences whose lengths are spread as in news: 22 words on average."""
    generator = torch.Generator().manual_seed(1)
    drawn = torch.randn(count, generator=generator).mul(0.5).add(2.97).exp().long().clamp(1, 120)
    return [torch.randn(int(length) + 2, width, generator=generator) for length in drawn]


def read_all(inference: InferenceEncoder, batches: list[tuple[Tensor, Tensor]]) -> None:
    """Compute the layer states of batches of word vectors [B, T, E] with their lengths."""
    for vectors, lengths in batches:
        inference(vectors, lengths)


def packed(sentences: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Word vectors [M, E] of sentences one behind the other, and their lengths [B]."""
    return torch.cat(sentences), torch.tensor([len(sentence) for sentence in sentences])


def padded(sentences: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Word vectors [B, T, E], and lengths."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True), lengths


def flops_per_word(encoder: BidirectionalEncoder) -> int:
    """Operations of the matrix products of a word, in all directions."""
    return 2 * sum(weight.numel() for weight in encoder.parameters() if weight.dim() == 2)


def best_product(sizes: tuple[tuple[int, int, int], ...], dtype: torch.dtype) -> tuple[Callable[[], object], int]:
    """The matrix product with the best rate of PyTorch's and oneDNN's, and its operations."""
    found: list[tuple[float, Callable[[], object], int]] = []
    for rows, depth, columns in sizes:
        x, weight = torch.ones(rows, depth, dtype=dtype), torch.ones(columns, depth, dtype=dtype)
        out = torch.empty(rows, columns, dtype=dtype)
        prepared = prepare_linear(weight)
        operations = 2 * rows * depth * columns
        runs: tuple[Callable[[], object], ...] = (
            partial(torch.mm, x, weight.t(), out=out),
            partial(prepared, x, out),
        )
        for run in runs:
            timing = Timing(operations)
            run()
            for _ in range(_SHORT_TURNS):
                timing.take(run)
            found.append((timing.speed, run, operations))
    _, best, operations = max(found, key=lambda each: each[0])
    return best, operations
