"""How is an encoder trained? Read `train` from top to bottom: batch, step, log, evaluate, save."""

import math
import time
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import torch
from tqdm import tqdm

from elmoc.errors import InputError
from elmoc.model_directory import write_model_directory
from elmoc.progress import progress_bar
from elmoc.recurrence import LSTMState
from pretrain.clock import Clock
from pretrain.continuous_output import cosine_loss
from pretrain.evaluation import Evaluator, Retrieval
from pretrain.run_directory import MetricsLog, RunDirectory
from pretrain.schedule import learning_rate
from pretrain.setup import Assembly
from pretrain.side_by_side import DirectionRunner
from pretrain.stopping import stop_signals
from pretrain.train_state import RecurrentState, TrainState, new_state, parameters_of
from pretrain.vector_streaming import Batch, gather, stream_batches
from pretrain.windows import Position, held_out_windows, training_windows


class DirectionStep(NamedTuple):
    """What one update did in one direction."""

    loss: float
    gradient_norm: float
    masked: int
    """Targets without a direction."""


def train(assembly: Assembly, run: RunDirectory, *, resumed: dict[str, Any] | None, max_seconds: float | None) -> bool:
    """Train to the end of the run, or until a signal asks to stop; returns whether the end was reached.

    Args:
        assembly: everything the run needs.
        run: its directory, started or resumed.
        resumed: the checkpoint to go on from, if there is one.
        max_seconds: sets the length of the run, schedule included, from the measured speed.
    """
    config = assembly.config
    state = new_state(assembly.encoder, assembly.heads, config.optimiser, config.train.seed, assembly.device)
    state.updates = assembly.updates
    if resumed is not None:
        state.load_dict(resumed)
    log = MetricsLog(run, 0 if resumed is None else resumed["metrics_bytes"])
    evaluator = Evaluator(assembly.corpus, assembly.targets, config.evaluation.candidates, assembly.device)
    clock = Clock(state.seconds, max_seconds)
    batches = stream_batches(
        training_windows(
            assembly.corpus,
            streams=config.train.streams,
            window=config.train.window,
            directions=config.train.directions,
            seed=config.train.seed,
            position=state.position,
        ),
        assembly.inputs,
        assembly.targets,
        pin=assembly.device.type == "cuda",
    )
    progress = progress_bar(
        total=state.updates * assembly.words_per_update,
        initial=state.words,
        unit=" words",
        unit_scale=True,
        desc="pretrain",
    )
    runner = DirectionRunner(config.train.directions, assembly.device)
    recent: list[dict[str, DirectionStep]] = []
    cosine = float("nan")

    def evaluate_and_export() -> float:
        started = time.monotonic()
        values = evaluate(assembly, state, evaluator)
        clock.evaluated(time.monotonic() - started)
        log.write("evaluation", state.update, state.words, values)
        if values["cosine"] > state.best_cosine:
            state.best_cosine, state.best_update = values["cosine"], state.update
            write_model_directory(run.model, assembly.model_directory(training_summary(assembly, state, values)))
        tqdm.write(evaluation_line(state, values))
        return values["cosine"]

    def save() -> None:
        state.seconds = clock.seconds()
        run.save(state.update, state.to_dict(log.size()), keep=config.log.keep, best=state.best_update)
        clock.saved()

    with stop_signals() as stop, progress:
        if state.update == 0:
            cosine = evaluate_and_export()
        for batch in batches:
            if state.update >= state.updates:
                break
            rate = learning_rate(
                config.schedule, update=state.update, updates=state.updates, streams=config.train.streams
            )
            steps = train_step(assembly, state, batch.to(assembly.device), rate, runner)
            state.position = batch.next
            state.update += 1
            state.words += assembly.words_per_update
            state.masked += sum(step.masked for step in steps.values())
            recent.append(steps)
            clock.updated()

            if max_seconds is not None and clock.may_plan(state, config.schedule.decay_start):
                state.updates = clock.planned_updates(state, config.evaluation.every_updates)
                progress.total = state.updates * assembly.words_per_update
            progress.update(assembly.words_per_update)
            if state.update % config.log.every_updates == 0 or state.update == state.updates:
                values = summary(recent)
                progress.set_postfix_str(f"loss {values['loss']:.4f}, held-out cosine {cosine:.4f}")
                speed = {"learning_rate": rate, "words_per_second": clock.speed(assembly.words_per_update)}
                log.write("train", state.update, state.words, values | speed | {"masked_targets": state.masked})
                recent.clear()
            if evaluation_is_due(state, config.evaluation.every_updates):
                cosine = evaluate_and_export()
            if stop or state.update == state.updates or clock.save_is_due(state.update, config.log):
                save()
            if stop:
                break
        batches.close()  # type: ignore[attr-defined]
        runner.close()
    log.close()
    return state.update >= state.updates


def train_step(
    assembly: Assembly, state: TrainState, batch: Batch, rate: float, runner: DirectionRunner
) -> dict[str, DirectionStep]:
    """One update of every direction: loss, gradients, their norm bounded, Adam.

    Raises `InputError` when a loss is not a finite number; the weights are then still those of the update before.
    """
    state.encoder.train()
    steps = runner.map(lambda direction: backpropagate(assembly, state, batch, direction))
    for group in state.optimiser.param_groups:
        group["lr"] = rate
    state.optimiser.step()
    state.optimiser.zero_grad(set_to_none=True)
    return steps


def backpropagate(assembly: Assembly, state: TrainState, batch: Batch, direction: str) -> DirectionStep:
    """Loss and bounded gradients of one direction; its recurrent state goes on."""
    config = assembly.config
    with assembly.autocast():
        output = state.encoder.direction(direction)(
            batch.inputs(direction), state.recurrent[direction], generator=state.generators[direction]
        )
        predictions = state.heads.direction(direction)(output.top)  # [B, T, E]
    loss, _, masked = cosine_loss(predictions, batch.targets(direction))
    if not math.isfinite(loss.item()):
        raise InputError(
            f"the {direction} loss is {loss.item()} at update {state.update + 1}: lower schedule.base or check the "
            "vector tables for non-finite rows; --resume goes on from the last checkpoint, which is whole"
        )
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(
        parameters_of(state.encoder, state.heads, direction), config.optimiser.gradient_norm
    )
    state.recurrent[direction] = detached(output.state) if config.train.carry_state else None
    return DirectionStep(loss.item(), norm.item(), int(masked))


def detached(states: list[LSTMState]) -> RecurrentState:
    """The same state in float32, cut off from the graph."""
    return [LSTMState(state.hidden.detach().float(), state.cell.detach().float()) for state in states]


@torch.no_grad()
def evaluate(assembly: Assembly, state: TrainState, evaluator: Evaluator) -> dict[str, float]:
    """Held-out cosine and retrieval, for each direction and averaged, beside the best constant prediction."""
    config = assembly.config
    state.encoder.eval()
    recurrent: dict[str, RecurrentState] = dict.fromkeys(state.encoder.directions)
    predictions: dict[str, list[torch.Tensor]] = {direction: [] for direction in state.encoder.directions}
    targets: dict[str, list[np.ndarray]] = {direction: [] for direction in state.encoder.directions}
    for ids in held_out_windows(
        assembly.corpus,
        streams=min(config.train.streams, 64),
        window=config.train.window,
        directions=config.train.directions,
        words=config.evaluation.words,
    ):
        batch = gather(ids, assembly.inputs, assembly.targets, Position(), pin=False).to(assembly.device)
        for direction in state.encoder.directions:
            with assembly.autocast():
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


def summary(recent: list[dict[str, DirectionStep]]) -> dict[str, float]:
    """Mean loss and gradient norm over some updates, for each direction and (the loss) over both."""
    values = {
        f"{direction}_{name}": float(np.mean([getattr(steps[direction], name) for steps in recent]))
        for direction in recent[0]
        for name in ("loss", "gradient_norm")
    }
    return {"loss": float(np.mean([values[f"{direction}_loss"] for direction in recent[0]]))} | values


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


def training_summary(assembly: Assembly, state: TrainState, values: dict[str, float]) -> dict[str, object]:
    """What the exported model says of its training."""
    return {
        "corpus": str(assembly.corpus.path),
        "words": state.words,
        "updates": state.update,
        "held_out": {name: round(value, 5) for name, value in values.items()},
    }


def evaluation_is_due(state: TrainState, every_updates: int) -> bool:
    """At the end and every so many updates, or at ten evenly spaced times of the run."""
    if every_updates:
        return state.update % every_updates == 0 or state.update == state.updates
    return state.update * 10 // state.updates > (state.update - 1) * 10 // state.updates
