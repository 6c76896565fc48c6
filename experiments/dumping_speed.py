"""Speed of dumping: words a second of the encoder in batches and one sentence at a
time, beside AllenNLP's cell.

    python -m experiments.dumping_speed [paper|small]

All read the same made-up sentences with the same random weights, and take turns;
figures are of the best turn. Words of sentences are counted: neither boundaries nor
padding. Where there is a GPU, it is measured, with the way of the states back to main
memory.
"""

import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from elmoc.devices import checked_device, has_bf16
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.inference import InferenceEncoder
from elmoc.encoders.lstm import LstmSizes
from elmoc.process import keep_freed_memory
from experiments.allennlp_cell import allennlp_encoder

SIZES = {"paper": LstmSizes(), "small": LstmSizes(projection_size=256, cell_size=1024)}
SENTENCES = 1024
BASELINE_SENTENCES = 64
# Sentences that are read one at a time.
ALONE = 4
TURNS = 3
DEVICE = checked_device("auto")


def random_encoder(sizes: LstmSizes) -> BidirectionalEncoder:
    """An encoder with random weights, on which the speed does not depend."""
    # Orthogonal weights would take longer than the measurement.
    with torch.device("meta"):
        encoder = BidirectionalEncoder(EncoderConfig(sizes), fast=True)
    encoder.to_empty(device="cpu")
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.normal_(0, 0.03, generator=generator)
    return encoder.eval().to(DEVICE)


def random_sentences(width: int) -> list[Tensor]:
    """The word vectors [n + 2, E] of sentences whose lengths are spread as in news: 22
    words on average.
    """
    generator = torch.Generator().manual_seed(1)
    drawn = torch.randn(SENTENCES, generator=generator).mul(0.5).add(2.97).exp()
    lengths = drawn.long().clamp(1, 120).tolist()
    return [torch.randn(length + 2, width, generator=generator) for length in lengths]


def padded(sentences: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Word vectors [B, T, E], and lengths [B]."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return torch.nn.utils.rnn.pad_sequence(sentences, batch_first=True), lengths


def words_of(sentences: list[Tensor]) -> int:
    """Their words, boundaries not counted."""
    return sum(len(each) - 2 for each in sentences)


def read(inference: InferenceEncoder, sentences: list[Tensor]) -> None:
    """Read sentences at once."""
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    inference.sentences(inference.read_words(torch.cat(sentences)), lengths)


def read_alone(inference: InferenceEncoder, sentences: list[Tensor]) -> None:
    """Read sentences one by one."""
    for sentence in sentences:
        read(inference, [sentence])


def main() -> None:
    """Measure, and print a line a contestant."""
    keep_freed_memory()
    encoder = random_encoder(SIZES[sys.argv[1] if len(sys.argv) > 1 else "paper"])
    sentences = random_sentences(encoder.config.word_vector_size)
    # The baseline takes long, and reads sentences of middle length.
    first = (SENTENCES - BASELINE_SENTENCES) // 2
    middle = sorted(sentences, key=len)[first : first + BASELINE_SENTENCES]
    # By name, the words that are read, and the call.
    runs: dict[str, tuple[int, Callable[[], object]]] = {}
    vectors, middle_lengths = padded(middle)
    # New layers are in training mode, where the cell has dropout.
    states = allennlp_encoder(encoder).eval().requires_grad_(False)
    runs["allennlp_light, batches of 64"] = (
        words_of(middle),
        lambda: states(vectors.to(DEVICE), middle_lengths.to(DEVICE)).cpu(),
    )
    for name in ("float32", "bf16"):
        if name == "bf16" and not has_bf16(DEVICE):
            continue
        inference = InferenceEncoder(encoder, precision=name)
        runs[f"{name}, batches"] = (
            words_of(sentences),
            partial(read, inference, sentences),
        )
        runs[f"{name}, one sentence at a time"] = (
            words_of(sentences[:ALONE]),
            partial(read_alone, inference, sentences[:ALONE]),
        )
    best = dict.fromkeys(runs, float("inf"))
    # The first turn, which is not counted, warms up.
    for turn in range(1 + TURNS):
        for name, (_, run) in runs.items():
            started = time.perf_counter()
            run()
            if turn:
                best[name] = min(best[name], time.perf_counter() - started)
    baseline = next(iter(runs))
    speeds = {name: words / best[name] for name, (words, _) in runs.items()}
    print(f"{encoder.config.sizes.description}; {torch.get_num_threads()} threads")
    for name, speed in speeds.items():
        ratio = speed / speeds[baseline]
        print(f"{name:32}{speed:10,.0f} words/s {ratio:6.2f} × allennlp_light")


if __name__ == "__main__":
    main()
