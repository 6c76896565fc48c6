"""Tables 4 and 5 of the paper in miniature: what output layers take, by vocabulary and
by encoder, over CONT.

    python -m experiments.paper_speed 4|5

Every row makes updates in turn with the continuous output layer, on made-up text, with
the same streams and the small twins' sizes (Li et al. 2019, Section 5.2; the paper
takes for each the largest batch that fits into 12 GB). Ratios are of the time for as
many words; docs/results.md has them beside the paper's.
"""

import gc
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, cycle, product
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import NamedTuple

from elmoc.encoders import DIRECTIONS, EncoderSizes
from elmoc.encoders.plain_lstm import PlainLstmSizes
from elmoc.encoders.transformer import TransformerSizes
from elmoc.process import keep_freed_memory, wait_without_spinning
from experiments.synthetic import made_up_corpus
from pretrain import CONFIGS
from pretrain.config import RunConfig, load_config
from pretrain.describe import first_batches
from pretrain.output_layers import OutputLayerSettings
from pretrain.output_layers.contrastive import ContrastiveSettings
from pretrain.output_layers.full_softmax import FullSoftmaxSettings
from pretrain.output_layers.sampled import FixedSettings
from pretrain.setup import set_up
from pretrain.step import TrainStep

# The vocabulary of One Billion Word is the paper's 800K.
TYPES = {"": 793_471, "800K": 793_471, "2000K": 2_000_000}
# Li et al. 2019, Section 5.2.1.
SUBWORDS = 32_000
UNITS_OF_A_WORD = 1.1
STREAMS = 64
ONE = 1
BATCHES = 4
WARM_UP = 1
UPDATES = 3
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
        Row("ADAPTIVE", "800K", adaptive),
        Row("ADAPTIVE", "2000K", adaptive),
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

    GPT is a forward model only, as in the paper.
    """
    base = TransformerSizes(
        projection_size=128, layers=2, heads=4, feedforward_size=512
    )
    gpt = TransformerSizes(projection_size=192, layers=4, heads=6, feedforward_size=768)
    return {
        "LSTM": Column(PlainLstmSizes(projection_size=256, layers=1)),
        "TRANS BASE": Column(base),
        "ELMo": Column(elmo),
        "GPT": Column(gpt, 128, DIRECTIONS[:1]),
    }


def update_of(
    config: RunConfig, row: Row, column: Column, corpus: Path, streams: int
) -> tuple[Callable, int]:
    """A function that gives the seconds of one update of a row, and its parameters."""
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
    setup = set_up(changed)
    step = TrainStep(setup, setup.new_state())
    batches = cycle(first_batches(setup, BATCHES))

    def update() -> float:
        batch = next(batches)
        started = perf_counter()
        step(batch, config.schedule.base)
        return perf_counter() - started

    parameters = chain(setup.encoder.parameters(), setup.output_layers.parameters())
    return update, sum(each.numel() for each in parameters)


def compare(
    config: RunConfig,
    rows: tuple[Row, Row],
    column: Column,
    corpora: tuple[Path, Path],
    streams: int,
) -> tuple[float, float, int]:
    """Make updates of two rows in turn.

    Returns:
        Seconds of the second row for a million words, their ratio to the first row's,
        and the second row's parameters.
    """
    first, _ = update_of(config, rows[0], column, corpora[0], streams)
    second, count = update_of(config, rows[1], column, corpora[1], streams)
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


def main() -> None:
    """Print a line a row: Table 4 for ELMo's encoder, Table 5 for every encoder at
    800K.
    """
    wait_without_spinning()
    keep_freed_memory()
    config = twin("elmo_c")
    rows = output_layers()
    columns = {"ELMo": Column(config.encoder)}
    streams = (STREAMS, ONE)
    if sys.argv[1] == "5":
        columns = encoders(config.encoder)
        streams = (STREAMS,)
        rows = [row for row in rows if row.vocabulary in ("", "800K")]
    tables = {config.data.input_vectors, config.data.target_vectors}
    with ExitStack() as stack:
        corpora = {}
        for types in sorted({TYPES[row.vocabulary] for row in rows}):
            made_up = made_up_corpus(types, TOKENS, tables=tables)
            corpora[types] = stack.enter_context(made_up)
        print(
            "encoder      output layer      streams   parameters   s a million words   "
            "over CONT"
        )
        for name, column in columns.items():
            for row, number in product(rows, streams):
                both = (rows[0], row)
                texts = (corpora[TYPES[""]], corpora[TYPES[row.vocabulary]])
                found = compare(config, both, column, texts, number)
                seconds, ratio, count = found
                label = f"{row.name}:{row.vocabulary}" if row.vocabulary else row.name
                print(
                    f"{name:12} {label:16} {number:8} {count / 1e6:10.1f} M "
                    f"{seconds:19.1f} {ratio:11.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
