"""Evaluation: whether a run is learning, by held-out metrics beside the best constant
prediction's.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor

from elmoc.encoders import EncoderState
from pretrain.data.batches import BatchMaker
from pretrain.data.sources import TrainingData
from pretrain.data.windows import Window, held_out_windows
from pretrain.execution import Execution
from pretrain.output_layers import Scorer
from pretrain.train_state import TrainState

# Held-out text is read in at most this many streams, shared out among its sources.
STREAMS = 64
# A source has at least this many streams: fewer would make its products small and slow.
STREAMS_OF_A_SOURCE = 16
# Metrics that are printed where the output layer has them, and their headings.
COLUMNS = {
    "cosine": "cosine",
    "perplexity": "perplexity",
    "accuracy_at_10": "accuracy@10",
    "reciprocal_rank": "reciprocal rank",
}
# Stands before the name of a metric: its macro average, the mean over sources.
MACRO = "macro_"
# Stands before the name of a metric: its value for the best constant prediction.
CONSTANT = "constant_"


@dataclass(frozen=True)
class EvaluationConfig:
    """Held-out evaluation."""

    every_updates: Annotated[
        int,
        Meta(
            ge=0,
            description="updates between two evaluations; 0, or a limit of time, "
            "means ten a run",
        ),
    ] = 0
    words: Annotated[
        int,
        Meta(
            ge=1,
            description="held-out words that an evaluation reads, an equal share from "
            "each source",
        ),
    ] = 20_000
    candidates: Annotated[
        int,
        Meta(
            ge=1,
            description="number of most frequent word types among which the true word "
            "is ranked",
        ),
    ] = 50_000


@torch.no_grad()
def evaluate(
    state: TrainState,
    data: TrainingData,
    scorer: Scorer,
    *,
    words: int,
    execution: Execution,
) -> dict[str, float]:
    """Held-out metrics, beside those of the best constant prediction. Its ranks are by
    frequency in the corpus, whatever its sources weigh.

    Where held-out text has sources, an equal number of words of each is read, or all
    words of a source with less text.

    Args:
        state: whose encoder and output layers predict.
        data: whose held-out text is read.
        scorer: of the output layers.
        words: read in all.
        execution: where and how to compute.

    Returns:
        Metrics by name: `METRIC` over all words, averaged over the directions;
        `SOURCE/METRIC` over the words of a source, averaged in the same way; and
        `DIRECTION_METRIC`.
    """
    state.set_training(False)
    held_out = data.corpus.held_out_sources
    # What training leaves out is left out here.
    sources = [each for each in held_out if data.weights.get(each, 1)] or held_out
    directions = state.encoder.directions
    found = []
    for source in sources:
        windows = held_out_windows(
            data.corpus,
            source=source,
            streams=max(STREAMS_OF_A_SOURCE, STREAMS // len(sources)),
            window=data.window,
            directions=data.directions,
            words=math.ceil(words / len(sources)),
        )
        found.append(predict(state, data, windows, execution))
    ends = np.cumsum([len(true[directions[0]]) for _, true in found]).tolist()
    # The words of each source among all words; "" are all of them.
    slices = map(slice, [0, *ends], ends)
    parts = {"": slice(None)} | dict(zip(sources, slices, strict=True))
    scores = {
        direction: scorer.score(
            state.output_layers.direction(direction),
            torch.cat([predicted[direction] for predicted, _ in found]),
            np.concatenate([true[direction] for _, true in found]),
            parts,
        )
        for direction in directions
    }
    values = {}
    for part, names in scores[directions[0]].items():
        for name in names:
            values[f"{part}/{name}".lstrip("/")] = float(
                np.mean([score[part][name] for score in scores.values()])
            )
    for direction, score in scores.items():
        values |= {f"{direction}_{name}": value for name, value in score[""].items()}
    return values


def score_of(values: Mapping[str, float | None], metric: str) -> float:
    """The score that chooses the best model: the mean of a metric over the sources,
    whatever the size of each; without sources, the metric itself.

    A source whose metric is not a number, because its targets have no vectors, is left
    out. The score is NaN where no number is left.
    """
    names = [f"{source}/{metric}" for source in sources_of(values)] or [metric]
    numbers = [
        value
        for value in map(values.get, names)
        if value is not None and math.isfinite(value)
    ]
    return float(np.mean(numbers)) if numbers else math.nan


def predict(
    state: TrainState,
    data: TrainingData,
    windows: Iterable[Window],
    execution: Execution,
) -> tuple[dict[str, Tensor], dict[str, np.ndarray]]:
    """Predict the words of windows that follow each other, beginning in zero state
    (each of them, where training carries none).

    Returns:
        For each direction the predictions [N, D], and the true types [N].
    """
    directions = state.encoder.directions
    # No target vectors are streamed in: the words to predict are scored by their ids.
    maker = BatchMaker(data.inputs, None)
    recurrent: dict[str, EncoderState | None] = dict.fromkeys(directions)
    predictions: dict[str, list[Tensor]] = {name: [] for name in directions}
    targets: dict[str, list[np.ndarray]] = {name: [] for name in directions}
    for window in windows:
        batch = maker.batch(window).to(execution.device)
        for direction in directions:
            layer = state.output_layers.direction(direction)
            with execution.autocast():
                output = state.encoder.direction(direction)(
                    state.read(batch, direction), recurrent[direction]
                )
                predicted = layer.predict(output.layer_states[-1])  # [B, T, D]
            recurrent[direction] = output.state if data.carry_state else None
            predictions[direction].append(predicted.flatten(0, 1))
            targets[direction].append(window.ids[direction][:, 1:].ravel())
    return (
        {name: torch.cat(each) for name, each in predictions.items()},
        {name: np.concatenate(each) for name, each in targets.items()},
    )


def table_rows(
    values: Mapping[str, float],
    *,
    unit: str,
    words: int,
    seconds: float,
    loss: float,
    with_heading: bool,
) -> Iterator[str]:
    """The lines of an evaluation in the printed table of a run: a row of all words,
    and one of each named source.

    Beside a metric stands the best constant prediction's, in brackets.

    Args:
        values: its metrics.
        unit: of the text: words or subwords.
        words: read so far in each direction.
        seconds: gone so far.
        loss: of training, NaN before there is any.
        with_heading: whether the heading comes first.
    """
    metrics = [metric for metric in COLUMNS if metric in values]
    if with_heading:
        yield "held-out metrics, and in brackets the best constant prediction's"
        first = f"{'million ' + unit:>14} {'minutes':>8} {'loss':>8}"
        yield first + "".join(f" {COLUMNS[metric]:>16}" for metric in metrics)
    shown_loss = "" if math.isnan(loss) else f"{loss:.4f}"
    first = f"{words / 1e6:>14.2f} {seconds / 60:>8.1f} {shown_loss:>8}"
    rows = {"": first} | {f"{each}/": f"{each:>32}" for each in sources_of(values)}
    for prefix, first in rows.items():
        cells = [f" {_cell(values, prefix, name):>16}" for name in metrics]
        yield first + "".join(cells)


def _cell(values: Mapping[str, float], prefix: str, metric: str) -> str:
    """A metric, and in brackets the best constant prediction's, where there is one."""
    names = (f"{prefix}{metric}", f"{prefix}{CONSTANT}{metric}")
    found = [values[name] for name in names if name in values]
    # A perplexity has more digits before the point than fit with four behind it.
    shown = [f"{each:.4f}" if abs(each) < 10 else f"{each:,.0f}" for each in found]
    return "{} ({})".format(*shown) if len(shown) > 1 else "".join(shown)


def sources_of(names: Iterable[str]) -> list[str]:
    """The sources among the names of metrics, in their order."""
    return list(dict.fromkeys(name.partition("/")[0] for name in names if "/" in name))
