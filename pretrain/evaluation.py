"""Evaluation: whether a run is learning, by held-out metrics beside those of the best constant prediction."""

from dataclasses import dataclass

import numpy as np
import torch

from elmoc.encoders import EncoderState
from elmoc.settings import setting
from pretrain.data.loader import gather
from pretrain.data.sources import TrainingData
from pretrain.execution.device import Execution
from pretrain.output_layers import OutputLayerSettings, Scorer
from pretrain.train_state import TrainState

STREAMS = 64
"""Held-out text is read in at most this many streams."""


@dataclass(frozen=True)
class EvaluationConfig:
    """Held-out evaluation.

    every_updates: updates between two evaluations; 0 is ten times a run.
    words: held-out words that are read.
    candidates: most frequent types among which the true word is ranked.
    """

    every_updates: int = setting(0, least=0)
    words: int = setting(20_000, least=1)
    candidates: int = setting(50_000, least=1)


@torch.no_grad()
def evaluate(
    state: TrainState, data: TrainingData, scorer: Scorer, *, words: int, execution: Execution
) -> dict[str, float]:
    """Held-out metrics over `words` words, for each direction and averaged, beside the best constant prediction."""
    directions = state.encoder.directions
    state.encoder.eval()
    state.output_layers.eval()
    tables = data.tables(torch.device("cpu"), resident=False)
    recurrent: dict[str, EncoderState | None] = dict.fromkeys(directions)
    predictions: dict[str, list[torch.Tensor]] = {direction: [] for direction in directions}
    targets: dict[str, list[np.ndarray]] = {direction: [] for direction in directions}
    for ids in data.held_out_windows(words=words, most_streams=STREAMS):
        batch = gather(ids, tables, execution.device)
        for direction in directions:
            with execution.autocast():
                output = state.encoder.direction(direction)(batch.inputs(direction), recurrent[direction])
                predicted = state.output_layers.direction(direction).predict(output.layer_states[-1])  # [B, T, D]
            recurrent[direction] = output.state
            predictions[direction].append(predicted.flatten(0, 1))
            targets[direction].append(ids[direction][:, 1:].ravel())
    scores = {
        direction: scorer.score(
            state.output_layers.direction(direction),
            torch.cat(predictions[direction]),
            np.concatenate(targets[direction]),
        )
        for direction in directions
    }
    metrics = {name: [score[name] for score in scores.values()] for name in scores[directions[0]]}
    return {name: float(np.mean(values)) for name, values in metrics.items()} | {
        f"{direction}_{name}": value for direction, score in scores.items() for name, value in score.items()
    }


def evaluation_line(state: TrainState, settings: OutputLayerSettings, values: dict[str, float]) -> str:
    """The held-out metrics as one line."""

    def shown(metric: str) -> str:
        constant = f"constant_{metric}"
        return f"{values[metric]:.4f}" + (f" ({values[constant]:.4f})" if constant in values else "")

    metrics = [f"{label} {shown(metric)}" for label, metric in settings.shown]
    if "outside" in values:
        metrics.append(f"targets outside the candidates {values['outside']:.1%}")
    place = f"update {state.update:,}, {state.words / 1e6:.2f}M words"
    return f"{place}, held out (best constant): {', '.join(metrics)}"
