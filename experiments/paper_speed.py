"""Tables 4 and 5 of the paper: what output layers take, by vocabulary and by encoder,
over CONT.

    python -m experiments.paper_speed TABLE[,TABLE…] [SIZES[,SIZES]]
    torchrun --nproc_per_node N -m experiments.paper_speed S3

Sizes are `small`, those of the small twins, or `paper`; the text is made up (Li et al.
2019, Section 5.2). The tables: `S2` of Table 4, the memory of an update for streams
that double until it takes more than GIGABYTES (12; their GPUs have 11), and the seconds
of a million words; `S1`, one stream; `5`, Table 5, the same streams for all encoders;
`S3`, processes that exchange their gradients, each with as many streams as Table 5. But
for S2, every row makes updates in turn with the continuous output layer. Ratios are of
the time for as many words; docs/results.md has them beside the paper's.
"""

import gc
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import chain, cycle, product
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import torch

from elmoc.encoders import DIRECTIONS, EncoderSizes
from elmoc.encoders.plain_lstm import PlainLstmSizes
from elmoc.encoders.transformer import TransformerSizes
from elmoc.process import keep_freed_memory
from experiments.synthetic import made_up_corpus
from pretrain import CONFIGS
from pretrain.config import RunConfig, load_config
from pretrain.describe import first_batches, measure
from pretrain.distributed.processes import Processes, connect
from pretrain.output_layers import OutputLayerSettings
from pretrain.output_layers.contrastive import ContrastiveSettings
from pretrain.output_layers.full_softmax import FullSoftmaxSettings
from pretrain.output_layers.sampled import FixedSettings
from pretrain.setup import TrainingSetup, set_up
from pretrain.step import TrainStep

# Types of One Billion Word, the 800K of Table 4.
WORDS = 793_471
# The paper has around 30,000 (Li et al. 2019, Section 4.1), and counts 1.1 of them a
# word (Section 5.2.1).
SUBWORDS = 32_000
UNITS_OF_A_WORD = 1.1
STREAMS = 64
GIGABYTES = 12.0
BATCHES = 4
WARM_UP = 1
UPDATES = 9
# Of the made-up text: more than the batches read.
TOKENS = 1_000_000


class Row(NamedTuple):
    """An output layer over a vocabulary of so many types."""

    name: str
    types: int
    settings: OutputLayerSettings
    steps_of_a_word: float = 1.0


def config_of(name: str, sizes: str) -> RunConfig:
    """A config of the paper, or its small twin."""
    folder = {"small": "twins/small_", "paper": ""}[sizes]
    return load_config(CONFIGS / f"{folder}{name}.toml")


def output_layers(sizes: str) -> list[Row]:
    """The rows of Table 4, CONT first, and the contrastive output layer beside them."""
    cont = config_of("elmo_c", sizes).output_layer
    adaptive = config_of("elmo_a", sizes).output_layer
    # Of 40K types the paper's cut-offs leave one cluster, as do its 97 million
    # parameters (Table 4): the rarest type is apart.
    cutoffs = tuple(each for each in adaptive.cutoffs if each < 40_000) or (39_999,)
    sampled = config_of("elmo", sizes).output_layer
    return [
        Row("CONT", WORDS, cont),
        Row("CONTRASTIVE", WORDS, ContrastiveSettings()),
        Row("FIXED", WORDS, FixedSettings(samples=sampled.samples)),
        Row("SUBWORD", WORDS, FullSoftmaxSettings(types=SUBWORDS), UNITS_OF_A_WORD),
        Row("ADAPTIVE:40K", 40_000, replace(adaptive, cutoffs=cutoffs)),
        Row("ADAPTIVE:800K", WORDS, adaptive),
        Row("ADAPTIVE:2000K", 2_000_000, adaptive),
        Row("SAMPLED:40K", 40_000, sampled),
        Row("SAMPLED:800K", WORDS, sampled),
        Row("SAMPLED:2000K", 2_000_000, sampled),
    ]


class Column(NamedTuple):
    """An encoder of Table 5, and what it is trained with."""

    sizes: EncoderSizes
    window: int = 20
    directions: tuple[str, ...] = DIRECTIONS


def transformer(width: int, layers: int, heads: int) -> Column:
    """A column with a Transformer."""
    sizes = TransformerSizes(
        projection_size=width,
        layers=layers,
        heads=heads,
        feedforward_size=4 * width,
    )
    return Column(sizes)


def encoders(sizes: str) -> dict[str, Column]:
    """The columns of Table 5; the small ones are an eighth of the paper's LSTM, and a
    quarter of the width and a third of the layers of its Transformers.

    GPT is a forward model only, as in Section 5.2.2, with windows of 128 words in place
    of 512.
    """
    is_small = sizes == "small"
    units = 256 if is_small else 2048
    gpt = transformer(192, 4, 6) if is_small else transformer(768, 12, 12)
    return {
        "LSTM": Column(PlainLstmSizes(projection_size=units, layers=1)),
        "LSTMx2": Column(PlainLstmSizes(projection_size=units, layers=2)),
        "TRANS BASE": transformer(128, 2, 4) if is_small else transformer(512, 6, 8),
        "ELMo": Column(config_of("elmo_c", sizes).encoder),
        "TRANS LARGE": transformer(256, 2, 8) if is_small else transformer(1024, 6, 16),
        "GPT": gpt._replace(window=128, directions=DIRECTIONS[:1]),
    }


def setup_of(
    config: RunConfig,
    row: Row,
    column: Column,
    corpus: Path,
    streams: int,
    processes: Processes = Processes(),
) -> TrainingSetup:
    """The training of a row; `streams` are those of all processes."""
    train = replace(
        config.train,
        streams=streams,
        window=column.window,
        directions=column.directions,
        precision="auto",
    )
    changed = replace(
        config,
        data=replace(config.data, corpus=str(corpus)),
        train=train,
        encoder=column.sizes,
        output_layer=row.settings,
    )
    return set_up(changed, processes=processes)


def update_of(setup: TrainingSetup, rate: float) -> tuple[Callable, int]:
    """A function that gives the seconds of one update, and the parameters."""
    step = TrainStep(setup, setup.new_state())
    batches = cycle(first_batches(setup, BATCHES))
    layer = next(setup.output_layers.parameters())

    def update() -> float:
        batch = next(batches)
        started = perf_counter()
        step(batch, rate)
        # The step waits for the directions alone, not for what they share.
        layer.flatten()[0].item()
        return perf_counter() - started

    parameters = chain(setup.encoder.parameters(), setup.output_layers.parameters())
    return update, sum(each.numel() for each in parameters)


def compare(
    first: Callable[[], float], setup: TrainingSetup, steps: float
) -> tuple[float, float, int]:
    """Make updates of a row in turn with `first`, those of CONT.

    Args:
        first: makes an update of as many words, and gives its seconds.
        setup: of the row.
        steps: of the row, for a word.

    Returns:
        Seconds of the row for a million words, their ratio to CONT's, and the row's
        parameters.
    """
    second, count = update_of(setup, setup.config.schedule.base)
    for _ in range(WARM_UP):
        first()
        second()
    pairs = [(first(), second()) for _ in range(UPDATES)]
    seconds = median(own for _, own in pairs)
    ratio = median(own / other for other, own in pairs)
    million = 1e6 / setup.data.words_per_update
    return steps * million * seconds, steps * ratio, count


def print_speeds(
    sizes: str,
    columns: dict[str, Column],
    corpora: dict[int, Path],
    streams: int,
    processes: Processes,
) -> None:
    """Print a line an encoder and output layer: S1, S3 or Table 5."""
    config = config_of("elmo_c", sizes)
    rows = output_layers(sizes)
    if len(columns) > 1:
        rows = [row for row in rows if row.types == WORDS]
    print("encoder      output layer     parameters   s a million words   over CONT")
    for name, column in columns.items():
        cont = setup_of(config, rows[0], column, corpora[WORDS], streams, processes)
        first, _ = update_of(cont, config.schedule.base)
        for row in rows:
            seconds, ratio, count = compare(
                first,
                setup_of(config, row, column, corpora[row.types], streams, processes),
                row.steps_of_a_word,
            )
            print(
                f"{name:12} {row.name:16} {count / 1e6:8.1f} M {seconds:19.2f} "
                f"{ratio:11.2f}",
                flush=True,
            )
            gc.collect()


def measured(
    config: RunConfig, row: Row, column: Column, corpus: Path, streams: int
) -> tuple[float, int]:
    """Seconds of a million words, and the peak of memory in bytes."""
    keep_freed_memory()
    setup = setup_of(config, row, column, corpus, streams)
    seconds, peak = measure(setup)
    seconds *= row.steps_of_a_word * 1e6 / setup.data.words_per_update
    return seconds, peak


def measured_apart(*job: Any) -> tuple[float, int]:
    """The same, of nothing else: on a CPU by a process of its own, since the peak of
    its memory never falls.
    """
    if not torch.cuda.is_available():
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            return pool.submit(measured, *job).result()
    # The recorded graphs of the update before.
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
    return measured(*job)


def print_memory(sizes: str, corpora: dict[int, Path]) -> None:
    """Print a line an output layer, S2: streams, doubled until an update takes more
    than so many gigabytes, each with the peak of memory and the seconds of a million
    words. The last streams of a line are more than fit, or the last ones that memory
    was there for.
    """
    config = config_of("elmo_c", sizes)
    column = Column(config.encoder)
    for row in output_layers(sizes):
        print(f"{row.name:16}", end="", flush=True)
        streams = STREAMS
        peak = 0
        # The system may end a process where memory is short.
        with suppress(BrokenProcessPool, MemoryError, torch.OutOfMemoryError):
            while peak <= 1e9 * GIGABYTES:
                seconds, peak = measured_apart(
                    config, row, column, corpora[row.types], streams
                )
                print(
                    f" {streams}: {peak / 1e9:.2f} GB {seconds:.2f} s;",
                    end="",
                    flush=True,
                )
                streams *= 2
        print(flush=True)


def main(processes: Processes) -> None:
    """Print the tables that are named, for the sizes that are."""
    tables = sys.argv[1].split(",")
    sizes = sys.argv[2].split(",") if sys.argv[2:] else ["small"]
    with ExitStack() as stack:
        corpora = {}
        for types in sorted({row.types for row in output_layers("small")}):
            made_up = made_up_corpus(types, TOKENS, tables={"input", "target"})
            corpora[types] = stack.enter_context(made_up)
        for size, table in product(sizes, tables):
            several = STREAMS * processes.world_size
            # A table that there is not is a KeyError.
            streams = {"S1": 1, "S2": several, "S3": several, "5": several}[table]
            print(f"{table}, {size} sizes, {streams} streams", flush=True)
            elmo = {"ELMo": Column(config_of("elmo_c", size).encoder)}
            columns = encoders(size) if table == "5" else elmo
            if table == "S2":
                print_memory(size, corpora)
            else:
                print_speeds(size, columns, corpora, streams, processes)


if __name__ == "__main__":
    keep_freed_memory()
    with connect() as processes_here:
        main(processes_here)
