"""Tables 4 and 5 of the paper in miniature: what output layers take, by vocabulary and
by encoder, over CONT.

    python -m experiments.paper_speed 4|5 [GIGABYTES]
    torchrun --nproc_per_node N -m experiments.paper_speed S3

Sizes are those of the small twins, the text is made up (Li et al. 2019, Section 5.2).
Every row makes updates in turn with the continuous output layer: Table 4 with one
stream (S1), Table 5 with the same streams for all. Then, for Table 4, streams are
doubled as long as an update takes no more than GIGABYTES (12, as their GPUs): the
largest batch (S2). S3 has processes that exchange their gradients, each with as many
streams as Table 5. Ratios are of the time for as many words; docs/results.md has them
beside the paper's.
"""

import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, cycle, product
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from elmoc.encoders import DIRECTIONS, EncoderSizes
from elmoc.encoders.plain_lstm import PlainLstmSizes
from elmoc.encoders.transformer import TransformerSizes
from elmoc.errors import ran_out_of_memory
from elmoc.process import keep_freed_memory, wait_without_spinning
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

# The vocabulary of One Billion Word is the 800K of Table 4.
TYPES = {"": 793_471, "40K": 40_000, "800K": 793_471, "2000K": 2_000_000}
# Li et al. 2019, Section 5.2.1.
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
    """An output layer over a vocabulary."""

    name: str
    vocabulary: str
    settings: OutputLayerSettings
    steps_of_a_word: float = 1.0


def twin(name: str) -> RunConfig:
    """The small twin of a config of the paper."""
    return load_config(CONFIGS / f"twins/small_{name}.toml")


def output_layers() -> list[Row]:
    """The rows of Table 4, CONT first, and the contrastive output layer beside them."""
    cont = twin("elmo_c").output_layer
    adaptive = twin("elmo_a").output_layer
    sampled = twin("elmo").output_layer
    return [
        Row("CONT", "", cont),
        Row("CONTRASTIVE", "", ContrastiveSettings()),
        Row("FIXED", "", FixedSettings(samples=sampled.samples)),
        Row("SUBWORD", "", FullSoftmaxSettings(types=SUBWORDS), UNITS_OF_A_WORD),
        Row("ADAPTIVE", "40K", adaptive),
        Row("ADAPTIVE", "800K", adaptive),
        Row("ADAPTIVE", "2000K", adaptive),
        Row("SAMPLED", "40K", sampled),
        Row("SAMPLED", "800K", sampled),
        Row("SAMPLED", "2000K", sampled),
    ]


class Column(NamedTuple):
    """An encoder of Table 5, and what it is trained with."""

    sizes: EncoderSizes
    window: int = 20
    directions: tuple[str, ...] = DIRECTIONS


def encoders(elmo: EncoderSizes) -> dict[str, Column]:
    """The columns of Table 5; an eighth of the paper's LSTM, a quarter of the width of
    its Transformers.

    GPT is a forward model only, as in Section 5.2.2.
    """
    base = TransformerSizes(
        projection_size=128, layers=2, heads=4, feedforward_size=512
    )
    large = replace(base, projection_size=256, heads=8, feedforward_size=1024)
    gpt = TransformerSizes(projection_size=192, layers=4, heads=6, feedforward_size=768)
    return {
        "LSTM": Column(PlainLstmSizes(projection_size=256, layers=1)),
        "LSTMx2": Column(PlainLstmSizes(projection_size=256, layers=2)),
        "TRANS BASE": Column(base),
        "ELMo": Column(elmo),
        "TRANS LARGE": Column(large),
        "GPT": Column(gpt, 128, DIRECTIONS[:1]),
    }


def setup_of(
    config: RunConfig,
    row: Row,
    column: Column,
    corpus: Path,
    streams: int,
    processes: Processes = Processes(),  # noqa: B008 (it is frozen)
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

    def update() -> float:
        batch = next(batches)
        started = perf_counter()
        step(batch, rate)
        return perf_counter() - started

    parameters = chain(setup.encoder.parameters(), setup.output_layers.parameters())
    return update, sum(each.numel() for each in parameters)


def compare(
    config: RunConfig,
    rows: tuple[Row, Row],
    column: Column,
    corpora: tuple[Path, Path],
    streams: int,
    processes: Processes,
) -> tuple[float, float, int]:
    """Make updates of two rows in turn.

    Returns:
        Seconds of the second row for a million words, their ratio to the first row's,
        and the second row's parameters.
    """
    setups = [
        setup_of(config, row, column, corpus, streams, processes)
        for row, corpus in zip(rows, corpora, strict=True)
    ]
    first, _ = update_of(setups[0], config.schedule.base)
    second, count = update_of(setups[1], config.schedule.base)
    for _ in range(WARM_UP):
        first()
        second()
    seconds = []
    ratios = []
    for _ in range(UPDATES):
        of_first = first()
        of_second = second()
        seconds.append(of_second)
        ratios.append(of_second / of_first)
    gc.collect()
    steps = rows[1].steps_of_a_word
    million = 1e6 / (streams * column.window)
    return steps * million * median(seconds), steps * median(ratios), count


def trial(
    config: RunConfig, row: Row, column: Column, corpus: Path, streams: int
) -> tuple[float, int]:
    """Seconds of one update of a row, and the peak of memory in bytes."""
    wait_without_spinning()
    keep_freed_memory()
    return measure(setup_of(config, row, column, corpus, streams))


def growing_batches(
    config: RunConfig, row: Row, column: Column, corpus: Path, most: float
) -> Iterator[tuple[int, float, int]]:
    """Yield streams, doubled as long as an update takes no more than `most` bytes, its
    seconds for a million words, and the peak of memory in bytes.
    """
    streams = STREAMS
    while True:
        # A process of its own, since its peak of memory never falls.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            started = pool.submit(trial, config, row, column, corpus, streams)
            try:
                seconds, peak = started.result()
            except (RuntimeError, MemoryError) as error:
                # The system may have ended the process, too.
                if isinstance(error, BrokenProcessPool) or ran_out_of_memory(error):
                    return
                raise
        if peak > most:
            return
        million = 1e6 / (streams * column.window)
        yield streams, row.steps_of_a_word * million * seconds, peak
        streams *= 2


def largest_batch(batches: Sequence[tuple[int, float, int]]) -> str:
    """What is printed of S2: memory of the smallest batch, and the largest one."""
    if not batches:
        return "out of memory"
    streams, seconds, _ = batches[-1]
    return f"{batches[0][2] / 1e9:.1f} GB; {streams} streams {seconds:.1f} s"


def print_table(table: str, processes: Processes) -> None:
    """Print a line a row: Table 4 or S3 for ELMo's encoder, Table 5 for every encoder
    at 800K.
    """
    assert table in ("4", "5", "S3"), "there is no such table"
    config = twin("elmo_c")
    rows = output_layers()
    columns = {"ELMo": Column(config.encoder)}
    streams = 1 if table == "4" else STREAMS * processes.world_size
    if table == "5":
        columns = encoders(config.encoder)
        rows = [row for row in rows if row.vocabulary in ("", "800K")]
    most = 1e9 * (float(sys.argv[2]) if sys.argv[2:] else GIGABYTES)
    tables = {config.data.input_vectors, config.data.target_vectors}
    with ExitStack() as stack:
        corpora = {}
        for types in sorted({TYPES[row.vocabulary] for row in rows}):
            made_up = made_up_corpus(types, TOKENS, tables=tables)
            corpora[types] = stack.enter_context(made_up)
        print(
            f"encoder      output layer     parameters   s a million words, {streams} "
            "streams   over CONT   largest batch"
        )
        for (name, column), row in product(columns.items(), rows):
            texts = (corpora[TYPES[""]], corpora[TYPES[row.vocabulary]])
            seconds, ratio, count = compare(
                config, (rows[0], row), column, texts, streams, processes
            )
            label = f"{row.name}:{row.vocabulary}" if row.vocabulary else row.name
            print(
                f"{name:12} {label:16} {count / 1e6:8.1f} M {seconds:19.1f} "
                f"{ratio:19.2f}",
                end="   ",
                flush=True,
            )
            if table == "4":
                batches = growing_batches(config, row, column, texts[1], most)
                print(largest_batch(list(batches)), end="")
            print(flush=True)


if __name__ == "__main__":
    wait_without_spinning()
    keep_freed_memory()
    with connect() as processes_here:
        print_table(sys.argv[1], processes_here)
