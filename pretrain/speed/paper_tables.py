"""The paper's tables of speed: `python -m pretrain.speed --table 4` and `--table 5` (Li et al. 2019, Section 5.2).

An output layer is compared with the continuous one by updates in turn, each with the largest batch that fits into the
same memory (by the estimate of `--describe`).
"""

import gc
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import cycle
from statistics import median
from typing import Any

import torch

from elmoc.errors import InputError
from elmoc.files.writing import human_bytes
from elmoc.progress import progress_bar
from pretrain.config import RunConfig
from pretrain.distributed.processes import Processes
from pretrain.execution.memory import OutOfMemory
from pretrain.setup import TrainingSetup, open_setup, set_up
from pretrain.speed.benchmark import processor
from pretrain.speed.contestants import with_streams
from pretrain.speed.memory import PeakMemory
from pretrain.speed.paper_rows import Encoder, Row, base_config, encoders, output_layers
from pretrain.speed.streaming import first_batches
from pretrain.speed.synthetic_corpus import corpus_for
from pretrain.speed.table import aligned
from pretrain.speed.timing import timed
from pretrain.train import new_train_step, sum_gradients

FORMAT, VERSION = "elmoc-speed-table", 1
LEAST_STREAMS = 8
"""Of the largest batch, and between two sizes that are tried."""
BATCHES = 4
OUT_OF_MEMORY = "OOM"


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is measured.

    size: of encoders and output layers, `paper` or `small`.
    memory: bytes that weights, gradients, optimiser and activations may take in a process.
    most_streams: of a batch, in a process.
    updates, warm_up: timed and untimed updates of each row.
    only: output layers and encoders by name, in any case of letters; without any of one of the two, all of these. An
        output layer of one vocabulary alone is `ADAPTIVE:800K`.
    device, threads: where it runs; None as the config has it.
    """

    size: str
    memory: int
    most_streams: int
    updates: int
    warm_up: int
    only: tuple[str, ...] = ()
    device: str | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.most_streams < LEAST_STREAMS:
            raise InputError(f"--most-streams must be at least {LEAST_STREAMS}, not {self.most_streams}")


class Trained:
    """A model that is ready to make updates."""

    def __init__(self, setup: TrainingSetup) -> None:
        self.setup = setup
        self.state = setup.new_state()
        sum_gradients(setup, self.state)
        self.groups = setup.processes.groups
        self.train_step = new_train_step(setup, self.state)
        self.batches = cycle(first_batches(setup, BATCHES))

    def seconds(self) -> float:
        """Those of an update, one after the other, each waited for."""
        batch = next(self.batches)
        rate = self.setup.config.schedule.base
        return timed(lambda: self.train_step(batch, rate), self.setup.execution.device)[0]

    def close(self) -> None:
        """End its threads, and disconnect its processes."""
        self.train_step.close()
        for group in self.groups.values():
            group.disconnect()


def paper_table(number: int, options: TableOptions, processes: Processes) -> Iterator[dict[str, Any]]:
    """Yield the report as far as it is, after each output layer, in Table 5 of each encoder."""
    config = configured(base_config(options.size), options)
    rows = output_layers(options.size)
    report: dict[str, Any] = {"format": FORMAT, "version": VERSION, "table": number, "size": options.size, "rows": []}
    report |= {"memory": options.memory, "processes": processes.world_size, "torch": torch.__version__}
    with ExitStack() as stack:
        corpora: dict[int, str] = {}

        def corpus_of(row: Row) -> str:
            if row.types not in corpora:
                widest = max(columns[name].window for name in of_columns)
                tokens = options.most_streams * processes.world_size * (2 * widest + 1)
                corpora[row.types] = stack.enter_context(corpus_for(config.data, tokens, types=row.types))
            return corpora[row.types]

        columns = {"ELMo": Encoder(config.encoder, {})} if number == 4 else encoders(options.size)
        if number == 5:
            rows = [row for row in rows if row.vocabulary in ("", "800K")]
        of_rows, of_columns = chosen(options.only, rows, columns)
        steps = [(name, columns[name], row) for name in of_columns for row in of_rows]
        for name, encoder, row in progress_bar(iterable=steps, desc=f"table {number}", unit=" rows"):
            measured = measure(config, encoder, rows[0], row, corpus_of, options, processes, one_stream=number == 4)
            report["device"] = measured.pop("device")
            paper = row.paper if number == 4 else encoder.paper.get(row.name)
            report["rows"].append({"encoder": name, "output": row.name, "vocabulary": row.vocabulary} | measured)
            report["rows"][-1]["paper"] = paper
            yield report


def chosen(only: Sequence[str], rows: Sequence[Row], columns: Collection[str]) -> tuple[list[Row], list[str]]:
    """The output layers, the first one always among them, and the encoders that are asked for by name.

    Raises `InputError` for a name that is neither.
    """
    asked = {name.casefold() for name in only}
    known = {name.casefold(): name for name in (*(name for row in rows for name in row.names), *columns)}
    if unknown := asked - known.keys():
        raise InputError(
            f"--only {min(unknown):.50}: there is no such row or column; there are {', '.join(known.values())}"
        )
    of_rows = [row for row in rows if asked & {name.casefold() for name in row.names}]
    of_columns = [name for name in columns if name.casefold() in asked]
    if of_rows and of_rows[0] is not rows[0]:
        of_rows.insert(0, rows[0])
    return of_rows or list(rows), of_columns or list(columns)


def configured(config: RunConfig, options: TableOptions) -> RunConfig:
    """The config on the device that is asked for, and on text that is made up."""
    train, data = config.train, replace(config.data, corpus="", tables_on_device=False)
    if options.device is not None:
        train = replace(train, device=options.device)
    if options.threads is not None:
        train = replace(train, threads=options.threads)
    return replace(config, data=data, train=replace(train, precision="auto"))


def measure(
    config: RunConfig,
    encoder: Encoder,
    first: Row,
    row: Row,
    corpus_of: Callable[[Row], str],
    options: TableOptions,
    processes: Processes,
    *,
    one_stream: bool = True,
) -> dict[str, Any]:
    """What a row takes, beside the `first` one in turn: parameters, batch, peak memory, and seconds.

    `small_batch`, with one stream in one process: seconds of an update, and the ratio to the first row's; if
        `one_stream`.
    `large_batch`: seconds for a million words with the largest batch, and that ratio. None where nothing fits.
    """

    def setup_of(each: Row) -> TrainingSetup:
        data = replace(config.data, corpus=corpus_of(each))
        train = replace(
            config.train, window=encoder.window, streams=processes.world_size, directions=encoder.directions
        )
        own = replace(config, data=data, train=train, encoder=encoder.sizes, output_layer=each.settings)
        return open_setup(own, processes)

    setup, reference = setup_of(row), setup_of(first)
    result: dict[str, Any] = {
        "device": f"{setup.execution.device} ({processor(setup.execution.device)}), {setup.execution.precision}",
        "parameters": setup.parameters,
        "small_batch": None,
        "large_batch": None,
        "streams": None,
        "most_streams": options.most_streams,
        "peak_bytes": None,
    }
    batches = {"large_batch": (largest_batch(setup, options), largest_batch(reference, options))}
    if processes.world_size == 1 and one_stream:
        batches = {"small_batch": (1, 1)} | batches
    for name, (streams, of_first) in batches.items():
        if not streams or not of_first:
            continue
        try:
            figures, peak = compare(
                with_streams(setup, streams), with_streams(reference, of_first), options, same=row is first
            )
        except (torch.OutOfMemoryError, OutOfMemory):
            if processes.world_size > 1:  # others of which may have room, and would wait
                raise
            continue
        finally:
            gc.collect()
        updates, of_reference = 1.0, 1.0
        if name == "large_batch":  # that a million words are
            updates = row.steps_of_a_word * 1e6 / (streams * encoder.window)
            of_reference = 1e6 / (of_first * encoder.window)
        result[name] = summary(figures, updates, of_reference)
        if name == "large_batch":
            result |= {"streams": streams // processes.world_size, "peak_bytes": peak}
    return result


def summary(figures: Sequence[tuple[float, float]], updates: float, of_reference: float) -> dict[str, float]:
    """Seconds, and ratios to the reference, of what takes so many updates, from seconds of single updates of both."""
    ratios = [mine * updates / (theirs * of_reference) for mine, theirs in figures]
    return {
        "seconds": updates * median(mine for mine, _ in figures),
        "ratio": median(ratios),
        "least_ratio": min(ratios),
        "greatest_ratio": max(ratios),
    }


def compare(
    setup: TrainingSetup, reference: TrainingSetup, options: TableOptions, *, same: bool
) -> tuple[list[tuple[float, float]], int | None]:
    """Seconds of updates of both in turn, and the peak memory of the first; with `same` they are one."""
    with ExitStack() as stack:
        peak = PeakMemory(setup.execution.device)
        other = stack.enter_context(closing(Trained(fresh(reference))))
        for _ in range(options.warm_up):
            other.seconds()
        if same:
            peak_bytes = peak.bytes()
            return [(seconds, seconds) for seconds in (other.seconds() for _ in range(options.updates))], peak_bytes
        peak = PeakMemory(setup.execution.device)  # above what the other takes
        mine = stack.enter_context(closing(Trained(fresh(setup))))
        for _ in range(options.warm_up):
            mine.seconds()
        peak_bytes = peak.bytes()
        return [(mine.seconds(), other.seconds()) for _ in range(options.updates)], peak_bytes


def fresh(setup: TrainingSetup) -> TrainingSetup:
    """The same run with weights."""
    train = replace(setup.config.train, streams=setup.data.streams)
    return set_up(replace(setup.config, train=train), processes=setup.processes)


def largest_batch(setup: TrainingSetup, options: TableOptions) -> int:
    """The most streams, of all processes, that fit into the memory of each; 0 where none do."""
    world = setup.processes.world_size

    def fits(streams: int) -> bool:
        need = with_streams(setup, streams * world).memory[0]
        return need.weights + need.activations <= options.memory

    most = options.most_streams // LEAST_STREAMS
    least = 0  # of LEAST_STREAMS, that fit
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle * LEAST_STREAMS) else (least, middle - 1)
    return least * LEAST_STREAMS * world


def text_of(report: dict[str, Any]) -> str:
    """The report as it is printed; the paper's figures are in brackets."""
    heading = (
        f"Table {report['table']}, sizes: {report['size']}; {report['device']}, PyTorch {report['torch']}, "
        f"{report['processes']} process{'es' if report['processes'] > 1 else ''}, "
        f"{human_bytes(report['memory'])} of memory each; in brackets the paper's"
    )
    tables = [table_4(report)] if report["table"] == 4 else tables_5(report)
    return "\n\n".join([heading, *(aligned(table) for table in tables)])


def table_4(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """Rows of output layers."""
    several = report["processes"] > 1
    rows: list[tuple[str, ...]] = [
        ("output layer", "vocabulary", "parameters", "batch", "peak memory", "S3" if several else "S1")
        + (() if several else ("S2",))
    ]
    for row in report["rows"]:
        paper = row["paper"] or (None,) * 5
        columns = [(row["small_batch"], paper[2], "batch"), (row["large_batch"], paper[3], "million words")]
        if several:
            columns = [(row["large_batch"], paper[4], "million words")]
        rows.append(
            (
                row["output"],
                row["vocabulary"] or "∞",
                f"{parameters_of(row)}{bracketed(paper[0], 'M')}",
                f"{batch_of(row)}{bracketed(paper[1])}",
                peak_of(row),
                *(shown(*column, first=row is report["rows"][0]) for column in columns),
            )
        )
    return rows


def parameters_of(row: dict[str, Any]) -> str:
    """Trained parameters, in millions."""
    return f"{row['parameters'] / 1e6:,.1f}M"


def peak_of(row: dict[str, Any]) -> str:
    """The peak of memory, where any batch fits."""
    return "–" if row["peak_bytes"] is None else human_bytes(row["peak_bytes"])


def batch_of(row: dict[str, Any]) -> str:
    """The largest batch, with a sign where memory would hold more, and `--most-streams` does not allow it."""
    most = row["most_streams"] // LEAST_STREAMS * LEAST_STREAMS
    return f"{'≥ ' if row['streams'] == most else ''}{row['streams'] or OUT_OF_MEMORY}"


def tables_5(report: dict[str, Any]) -> list[list[tuple[str, ...]]]:
    """Time, parameters, largest batches and peak memory, each with columns of encoders."""
    encoders = list(dict.fromkeys(row["encoder"] for row in report["rows"]))
    outputs = list(dict.fromkeys(row["output"] for row in report["rows"]))
    found = {(row["encoder"], row["output"]): row for row in report["rows"]}

    def table(name: str, cell: Callable[[dict[str, Any]], str]) -> list[tuple[str, ...]]:
        cells = (
            (output, *(cell(row) if (row := found.get((encoder, output))) else "" for encoder in encoders))
            for output in outputs
        )
        return [(name, *encoders), *cells]

    return [
        table("time", lambda row: shown(row["large_batch"], row["paper"], "", first=row["output"] == outputs[0])),
        table("parameters", parameters_of),
        table("batch", batch_of),
        table("peak memory", peak_of),
    ]


def shown(figures: dict[str, float] | None, paper: float | str | None, of: str, *, first: bool) -> str:
    """Seconds of the first row, and the ratio to it of others."""
    if figures is None:
        return OUT_OF_MEMORY + bracketed(paper, "" if first else "×")
    if first:
        return f"{figures['seconds']:,.2f} s{' a ' + of if of else ''}{bracketed(paper, ' s')}"
    return f"{figures['ratio']:.2f}×{bracketed(paper, '×')}"


def bracketed(value: float | str | None, unit: str = "") -> str:
    """The paper's figure."""
    if value is None:
        return ""
    return f" ({value})" if isinstance(value, str) else f" ({value:g}{unit})"


def parse_bytes(text: str) -> int:
    """Bytes from a number with KB, MB or GB behind it; an `InputError` for anything else."""
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9}
    number, unit = text[:-2].strip(), text[-2:].upper()
    try:
        value = float(number) * units[unit]
        if not 0 < value < 2**60:
            raise ValueError
    except (KeyError, ValueError):
        raise InputError(f"--memory takes a number with KB, MB or GB, such as 12GB, not {text!r:.50}") from None
    return int(value)
