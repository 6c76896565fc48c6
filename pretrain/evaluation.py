"""Evaluation: whether a run is learning, by held-out metrics beside the best constant
prediction's.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from textwrap import wrap
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta

from elmoc.encoders import EncoderState
from pretrain.data.batches import BatchMaker, gather
from pretrain.data.sources import TrainingData
from pretrain.data.windows import Window, held_out_windows
from pretrain.execution import Execution
from pretrain.output_layers import Scorer
from pretrain.train_state import TrainState

# held-out text is read in at most this many streams, shared out among its sources
STREAMS = 64
# streams of each source at least: fewer would be slow
STREAMS_OF_A_SOURCE = 16
# metrics that are printed, as far as an output layer has them, and their headings
COLUMNS = {
    "cosine": "cosine",
    "perplexity": "perplexity",
    "accuracy_at_10": "accuracy@10",
    "reciprocal_rank": "reciprocal rank",
}
# metrics that are printed of each source
OF_A_SOURCE = ("cosine", "accuracy_at_10")
# before the name of a metric: its macro average, the mean over sources
MACRO = "macro_"


@dataclass(frozen=True)
class EvaluationConfig:
    """Held-out evaluation."""

    every_updates: Annotated[
        int,
        Meta(
            ge=0,
            description="updates between two evaluations; 0, or any number with "
            "`--max-time`, is ten times a run",
        ),
    ] = 0
    words: Annotated[
        int,
        Meta(
            ge=1,
            description="held-out words that are read, an equal share of them from "
            "each source",
        ),
    ] = 20_000
    candidates: Annotated[
        int,
        Meta(
            ge=1,
            description="most frequent word types among which the true word is ranked",
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
    """Held-out metrics over `words` words, for each direction and averaged, beside the
    best constant prediction.

    Where held-out text has sources, these are over an equal number of words of each, or
    all that it holds, so that a source with less text counts less; `NAME/METRIC` is
    over the words of the source NAME, averaged over the directions.
    """
    state.set_training(False)
    sources = data.corpus.held_out_sources
    directions = state.encoder.directions
    streams = (
        STREAMS
        if len(sources) == 1
        else max(STREAMS_OF_A_SOURCE, STREAMS // len(sources))
    )
    options: dict[str, Any] = {
        "streams": streams,
        "window": data.window,
        "directions": data.directions,
    }
    options["words"] = math.ceil(words / len(sources))
    found = [
        predict(
            state,
            data,
            held_out_windows(data.corpus, source=source, **options),
            execution,
        )
        for source in sources
    ]
    ends = np.cumsum([len(true[directions[0]]) for _, true in found]).tolist()
    parts = {"": slice(0, ends[-1])}
    if list(sources) != [""]:
        parts |= {
            source: slice(*bounds)
            for source, bounds in zip(sources, pairwise([0, *ends]), strict=True)
        }
    scores = {
        direction: scorer.score(
            state.output_layers.direction(direction),
            torch.cat([predicted[direction] for predicted, _ in found]),
            np.concatenate([true[direction] for _, true in found]),
            parts,
        )
        for direction in directions
    }
    values = {
        f"{part}/{name}".lstrip("/"): float(
            np.mean([score[part][name] for score in scores.values()])
        )
        for part, first in scores[directions[0]].items()
        for name in first
    }
    return values | {
        f"{each}_{name}": value
        for each, score in scores.items()
        for name, value in score[""].items()
    }


def score_of(values: Mapping[str, float | None], metric: str) -> float:
    """What chooses the best model: of an evaluation the mean of a metric over the
    sources, however much each holds.

    Without sources, the metric itself. A source whose metric is not a number, because
    its targets have no vectors, is left out; NaN where no number is left.
    """
    names = [f"{source}/{metric}" for source in sources_of(values)] or [metric]
    numbers = [
        value
        for name in names
        if (value := values.get(name)) is not None and math.isfinite(value)
    ]
    return float(np.mean(numbers)) if numbers else math.nan


def predict(
    state: TrainState,
    data: TrainingData,
    windows: Iterable[Window],
    execution: Execution,
) -> tuple[dict[str, torch.Tensor], dict[str, np.ndarray]]:
    """For each direction the predictions [N, D] in windows that follow each other, and
    the true types [N].

    The first begins in zero state.
    """
    directions = state.encoder.directions
    maker = BatchMaker(
        data.inputs, None
    )  # the words to predict are scored by their ids
    recurrent: dict[str, EncoderState | None] = dict.fromkeys(directions)
    predictions: dict[str, list[torch.Tensor]] = {
        direction: [] for direction in directions
    }
    targets: dict[str, list[np.ndarray]] = {direction: [] for direction in directions}
    for window in windows:
        batch = gather(window, maker, execution.device)
        for direction in directions:
            with execution.autocast():
                output = state.encoder.direction(direction)(
                    state.read(batch, direction), recurrent[direction]
                )
                predicted = state.output_layers.direction(direction).predict(
                    output.layer_states[-1]
                )  # [B, T, D]
            recurrent[direction] = output.state
            predictions[direction].append(predicted.flatten(0, 1))
            targets[direction].append(window.ids[direction][:, 1:].ravel())
    return (
        {direction: torch.cat(each) for direction, each in predictions.items()},
        {direction: np.concatenate(each) for direction, each in targets.items()},
    )


class EvaluationTable:
    """What a run prints of its evaluations: a row each, under a heading, at most 100
    characters wide.

    Beside a metric stands the best constant prediction's; the run reads words or
    subwords, its `unit`.
    """

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._columns: list[tuple[str, str]] = []

    def rows(
        self, values: Mapping[str, float], *, words: int, seconds: float, loss: float
    ) -> Iterator[str]:
        """The lines of an evaluation: the heading before the first, its row, and its
        sources where there are several.

        Args:
            values: its metrics.
            words, seconds: read and gone so far.
            loss: of training, NaN before there is any.
        """
        if not self._columns:
            self._columns = [
                (metric, label) for metric, label in COLUMNS.items() if metric in values
            ]
            yield "held-out metrics, and in brackets what the best constant prediction has"
            heading = f"{'million ' + self._unit:>14} {'minutes':>8} {'loss':>8}"
            yield heading + "".join(f" {label:>16}" for _, label in self._columns)
        cells = [
            _cell(values[metric], values.get(f"constant_{metric}"))
            for metric, _ in self._columns
        ]
        shown_loss = "" if math.isnan(loss) else f"{loss:.4f}"
        yield f"{words / 1e6:>14.2f} {seconds / 60:>8.1f} {shown_loss:>8}" + "".join(
            f" {cell:>16}" for cell in cells
        )
        metrics = [metric for metric, _ in self._columns if metric in OF_A_SOURCE]
        sources = sources_of(values)
        if len(sources) > 1:
            parts = [
                " ".join(
                    [each, *(f"{values[f'{each}/{name}']:.3f}" for name in metrics)]
                )
                for each in sources
            ]
            labels = ", ".join(COLUMNS[metric] for metric in metrics)
            means = {
                name[len(MACRO) :].replace("_", " "): values[name]
                for name in values
                if name.startswith(MACRO)
            }
            parts += [f"mean {name} {value:.4f}" for name, value in means.items()]
            text = f"by source ({labels}): {'; '.join(parts)}"
            yield from wrap(text, 100, initial_indent="  ", subsequent_indent="    ")


def _cell(*values: float | None) -> str:
    value, *constant = [
        f"{each:.4f}" if abs(each) < 10 else f"{each:,.0f}"
        for each in values
        if each is not None
    ]
    return f"{value} ({constant[0]})" if constant else value


def sources_of(names: Iterable[str]) -> list[str]:
    """The sources among the names of metrics, in their order."""
    return list(dict.fromkeys(name.partition("/")[0] for name in names if "/" in name))
