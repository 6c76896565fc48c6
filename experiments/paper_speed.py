"""Tables 4 and 5 of the paper in miniature: what output layers take, by vocabulary and by encoder, over CONT.

    python -m experiments.paper_speed 4|5 [paper|small]

Every row makes updates in turn with the continuous output layer, on made-up text, with the same streams (Li et al.
2019, Section 5.2; the paper takes for each the largest batch that fits into 12 GB). Ratios are of the time for as many
words.
"""

import gc
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from statistics import median
from time import perf_counter

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

TYPES = {"": 793_471, "40K": 40_000, "800K": 793_471, "2000K": 2_000_000}  # 800K: One Billion Word
SUBWORDS, UNITS_OF_A_WORD = 32_000, 1.1  # Li et al. 2019, Section 5.2.1
STREAMS, ONE = 64, 1
BATCHES, WARM_UP, UPDATES = 4, 1, 3
PAPER_ROWS = ("CONT", "FIXED", "SUBWORD", "ADAPTIVE", "SAMPLED")  # of Table 5


@dataclass(frozen=True)
class Row:
    """An output layer over a vocabulary; `paper`: Table 4's millions of parameters and ratios S1 and S2."""

    name: str
    vocabulary: str
    settings: OutputLayerSettings
    steps_of_a_word: float = 1.0
    paper: tuple[float, ...] = ()


def output_layers(size: str) -> list[Row]:
    """The rows of Table 4, CONT first, and the contrastive output layer beside them."""
    folder = CONFIGS if size == "paper" else CONFIGS / "twins"
    start = "" if size == "paper" else "small_"
    cont, adaptive, sampled = (
        load_config(str(folder / f"{start}{name}.toml")).output_layer for name in ("elmo_c", "elmo_a", "elmo")
    )
    # with the cut-offs of the paper's larger vocabularies there would be one cluster alone
    of_40k = adaptive if size == "small" else replace(adaptive, cutoffs=(20_000,), reduction=1.0)
    return [
        Row("CONT", "", cont, paper=(76, 1, 1)),
        Row("CONTRASTIVE", "", ContrastiveSettings()),
        Row("FIXED", "", FixedSettings(samples=sampled.samples), paper=(76, 1.17, 1.24)),
        Row("SUBWORD", "", FullSoftmaxSettings(types=SUBWORDS), UNITS_OF_A_WORD, paper=(92, 1.09, 1.53)),
        Row("ADAPTIVE", "40K", of_40k, paper=(97, 1.08, 1.30)),
        Row("ADAPTIVE", "800K", adaptive, paper=(196, 1.16, 1.47)),
        Row("ADAPTIVE", "2000K", adaptive, paper=(213, 1.25, 1.82)),
        Row("SAMPLED", "40K", sampled, paper=(96, 1.07, 1.18)),
        Row("SAMPLED", "800K", sampled, paper=(483, 1.15, 1.35)),
        Row("SAMPLED", "2000K", sampled, paper=(1102, 1.16, 2.35)),
    ]


@dataclass(frozen=True)
class Column:
    """An encoder of Table 5; of GPT the forward model alone is trained, as in the paper.

    paper: seconds of CONT for a million words on four cards, and the ratios of FIXED, SUBWORD, ADAPTIVE, SAMPLED.
    """

    sizes: EncoderSizes
    paper: tuple[float | str, ...]
    window: int = 20
    directions: tuple[str, ...] = DIRECTIONS


def encoders(size: str, elmo: EncoderSizes) -> dict[str, Column]:
    """The columns of Table 5; the small Transformers have a quarter of the width and a third of the layers."""
    paper = size == "paper"

    def transformer(layers: int, width: int, heads: int) -> TransformerSizes:
        share = 1 if paper else 4
        return TransformerSizes(
            projection_size=width // share,
            layers=layers if paper else max(1, layers // 3),
            heads=heads if paper else heads // 2,
            feedforward_size=4 * width // share,
        )

    hidden = 2048 if paper else 256
    large = transformer(12, 768, 12)
    gpt = Column(large, (43.53, 1.14, 1.44, 2.33, 8.31), 512 if paper else 128, DIRECTIONS[:1])
    return {
        "LSTM": Column(PlainLstmSizes(projection_size=hidden, layers=1), (3.97, 1.93, 2.32, 4.58, 2.50)),
        "LSTMx2": Column(PlainLstmSizes(projection_size=hidden, layers=2), (10.42, 1.32, 1.49, 2.20, 1.60)),
        "TRANS BASE": Column(transformer(6, 512, 8), (15.87, 1.52, 1.78, 2.62, 2.91)),
        "ELMo": Column(elmo, (34.58, 1.24, 1.55, 1.89, 1.91)),
        "TRANS LARGE": Column(large, (48.55, 1.37, 1.72, 3.28, "out of memory")),
        "GPT": gpt,
    }


def update_of(config: RunConfig, row: Row, column: Column, corpus: Path, streams: int) -> tuple[Callable, int]:
    """A function that gives the seconds of one update of a row, and its parameters."""
    train = replace(config.train, streams=streams, window=column.window, directions=column.directions, precision="auto")
    data = replace(config.data, corpus=str(corpus))
    setup = set_up(replace(config, data=data, train=train, encoder=column.sizes, output_layer=row.settings))
    step, batches = TrainStep(setup, setup.new_state()), cycle(first_batches(setup, BATCHES))

    def update() -> float:
        batch, started = next(batches), perf_counter()
        step(batch, config.schedule.base)
        return perf_counter() - started

    parts = (setup.encoder, setup.output_layers)
    return update, sum(parameter.numel() for part in parts for parameter in part.parameters())


def compare(
    config: RunConfig, rows: tuple[Row, Row], column: Column, corpora: tuple[Path, Path], streams: int
) -> tuple[float, float, int]:
    """Of two rows in turn: the second's seconds for a million words, its ratio to the first, and its parameters."""
    (first, _), (second, count) = (
        update_of(config, row, column, corpus, streams) for row, corpus in zip(rows, corpora, strict=True)
    )
    for _ in range(WARM_UP):
        first(), second()
    pairs = [(first(), second()) for _ in range(UPDATES)]
    gc.collect()
    steps = rows[1].steps_of_a_word
    million = 1e6 / (streams * column.window)
    return steps * million * median(b for _, b in pairs), steps * median(b / a for a, b in pairs), count


def main() -> None:
    """Print a line a row: Table 4 for ELMo's encoder, Table 5 for every encoder at 800K."""
    wait_without_spinning()
    keep_freed_memory()
    table, size = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "small"
    config = load_config(str(CONFIGS / ("elmo_c.toml" if size == "paper" else "twins/small_elmo_c.toml")))
    rows = output_layers(size)
    columns = {"ELMo": Column(config.encoder, (0,) * 5)} if table == "4" else encoders(size, config.encoder)
    if table == "5":
        rows = [row for row in rows if row.vocabulary in ("", "800K")]
    widest = max(column.window for column in columns.values())
    tokens = max(1_000_000, 2 * (BATCHES + 1) * STREAMS * widest)
    with ExitStack() as stack:
        tables = {config.data.input_vectors, config.data.target_vectors}
        corpora = {
            types: stack.enter_context(made_up_corpus(types, tokens, tables=tables))
            for types in sorted({TYPES[row.vocabulary] for row in rows})
        }
        print(
            "encoder      output layer      parameters   s a million words   over CONT   with one stream   the paper's"
        )
        for name, column in columns.items():
            for row in rows:
                of_both = corpora[TYPES[""]], corpora[TYPES[row.vocabulary]]
                seconds, ratio, count = compare(config, (rows[0], row), column, of_both, STREAMS)
                one = compare(config, (rows[0], row), column, of_both, ONE)[1] if table == "4" else float("nan")
                paper = row.paper if table == "4" else dict(zip(PAPER_ROWS, column.paper, strict=True)).get(row.name)
                label = f"{row.name}:{row.vocabulary}" if row.vocabulary else row.name
                cells = f"{count / 1e6:8.1f} M {seconds:14.1f} {ratio:14.2f} {one:14.2f}"
                print(f"{name:12} {label:16} {cells}        {paper or ''}", flush=True)


if __name__ == "__main__":
    main()
