"""Is it learning: what do the held-out figures say, beside the best constant prediction?"""

from dataclasses import asdict

import numpy as np
import torch

from pretrain.data.loader import gather
from pretrain.data.windows import Position, held_out_windows
from pretrain.evaluation.retrieval import Evaluator, Retrieval
from pretrain.setup import TrainingSetup
from pretrain.train_state import RecurrentState, TrainState

STREAMS = 64
"""Held-out text is read in at most so many streams."""


@torch.no_grad()
def evaluate(setup: TrainingSetup, state: TrainState, evaluator: Evaluator) -> dict[str, float]:
    """Held-out cosine and retrieval, for each direction and averaged, beside the best constant prediction."""
    config = setup.config
    state.encoder.eval()
    recurrent: dict[str, RecurrentState] = dict.fromkeys(state.encoder.directions)
    predictions: dict[str, list[torch.Tensor]] = {direction: [] for direction in state.encoder.directions}
    targets: dict[str, list[np.ndarray]] = {direction: [] for direction in state.encoder.directions}
    for ids in held_out_windows(
        setup.corpus,
        streams=min(config.train.streams, STREAMS),
        window=config.train.window,
        directions=config.train.directions,
        words=config.evaluation.words,
    ):
        batch = gather(ids, setup.inputs, setup.targets, Position()).to(setup.device)
        for direction in state.encoder.directions:
            with setup.autocast():
                output = state.encoder.direction(direction)(batch.inputs(direction), recurrent[direction])
                predicted = state.heads.direction(direction)(output.top)  # [B, T, E]
            recurrent[direction] = output.state
            predictions[direction].append(predicted.float().flatten(0, 1))
            targets[direction].append(ids[direction][:, 1:].ravel())
    values: dict[str, float] = {}
    averaged: dict[str, list[float]] = {}
    for direction in state.encoder.directions:
        predicted, true = torch.cat(predictions[direction]), np.concatenate(targets[direction])
        figures = {
            "cosine": float(evaluator.cosines(predicted, true).mean()),
            "constant_cosine": evaluator.constant_cosine(true),
            **asdict(Retrieval.from_ranks(evaluator.ranks(predicted, true))),
            **{f"constant_{name}": value for name, value in asdict(evaluator.constant_retrieval(true)).items()},
        }
        for name, value in figures.items():
            values[f"{direction}_{name}"] = value
            averaged.setdefault(name, []).append(value)
    return {name: float(np.mean(both)) for name, both in averaged.items()} | values


def evaluation_line(state: TrainState, values: dict[str, float]) -> str:
    """The held-out figures as one line for people."""
    pairs = (
        ("cosine", "cosine"),
        ("accuracy@1", "accuracy_at_1"),
        ("accuracy@10", "accuracy_at_10"),
        ("reciprocal rank", "reciprocal_rank"),
    )
    figures = ", ".join(f"{label} {values[key]:.4f} ({values[f'constant_{key}']:.4f})" for label, key in pairs)
    return (
        f"update {state.update:,}, {state.words / 1e6:.2f}M words, held out (best constant): {figures}, "
        f"targets outside the candidates {values['outside']:.1%}"
    )
