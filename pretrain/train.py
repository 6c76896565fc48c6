"""The train loop: batch, step, log, evaluate, save."""

import time
from contextlib import ExitStack, closing
from typing import Any

from elmoc.errors import reading
from pretrain.data.batches import stream_batches
from pretrain.optimiser import learning_rate
from pretrain.run.directory import RunDirectory
from pretrain.run.recorder import Recorder
from pretrain.run.stop_signals import stop_signals
from pretrain.setup import TrainingSetup
from pretrain.step import TrainStep, require_finite
from pretrain.train_state import TrainState

# tenths of a run that is over
ALL_TENTHS = 10


def train(
    setup: TrainingSetup,
    run: RunDirectory,
    *,
    resumed: dict[str, Any] | None,
    max_seconds: float | None,
) -> bool:
    """Train to the end of the run, or until a signal asks to stop; returns whether the
    end was reached.

    Args:
        setup: the parts of the run.
        run: its directory, started or resumed.
        resumed: the checkpoint to go on from, if there is one.
        max_seconds: of the whole run, in place of updates; None goes on as the run was
            started.
    """
    config = setup.config
    data = setup.data
    processes = setup.processes
    state = starting_state(setup, run, resumed)
    if max_seconds is not None and not (resumed is not None and state.progress.is_over):
        state.max_seconds = max_seconds
        state.tenths = min(
            state.tenths, state.progress.tenths
        )  # of a longer time fewer are over
    began = time.monotonic() - state.seconds
    own = processes.stream_slice(config.train.streams)
    windows = data.windows(state.position, own=own)
    device = setup.execution.device
    with ExitStack() as stack:
        stop = stack.enter_context(stop_signals())
        recorder = stack.enter_context(
            closing(Recorder(setup, state, run, resumed=resumed, stop=stop))
        )
        batches = stack.enter_context(
            closing(stream_batches(windows, data.batch_maker(), device))
        )
        train_step = stack.enter_context(closing(TrainStep(setup, state)))
        if resumed is None:
            recorder.evaluate()
        while True:
            asked, state.seconds = processes.agree(stop.asked, time.monotonic() - began)
            if asked or state.progress.is_over:
                break
            started = time.monotonic()
            batch = next(batches)
            rate = learning_rate(
                config.schedule,
                update=state.update,
                progress=state.progress,
                streams=config.train.streams,
            )
            steps = train_step(batch, rate)
            require_finite(steps, state.update + 1)
            state.position = batch.next
            state.update += 1
            state.words += data.words_per_update
            state.masked += sum(step.masked for step in steps.values())
            recorder.add(steps, rate, time.monotonic() - started)
            every = (
                0 if state.max_seconds else config.evaluation.every_updates
            )  # 0: at each tenth of the run
            due = (
                state.update % every == 0
                if every
                else state.progress.tenths > state.tenths
            )
            if due or state.progress.is_over:
                recorder.evaluate()
            if recorder.checkpoint_is_due:
                recorder.save()
        if state.progress.is_over and state.tenths < ALL_TENTHS:
            recorder.evaluate()
        recorder.save()
    return state.progress.is_over


def starting_state(
    setup: TrainingSetup, run: RunDirectory, resumed: dict[str, Any] | None
) -> TrainState:
    """The state before the first update, or of a checkpoint.

    Raises `InputError` when the checkpoint does not fit, or is of other data.
    """
    processes = setup.processes
    networks = [] if setup.input_network is None else [setup.input_network]
    processes.broadcast_weights(setup.encoder, setup.output_layers, *networks)
    state = setup.new_state()
    if resumed is not None:
        with processes.raise_together():
            setup.data.require_same_data(resumed["data"])
            with reading(run.checkpoint_path(resumed["update"])):
                state.load(
                    resumed, own=processes.stream_slice(setup.config.train.streams)
                )
            for name in ("encoder", "heads", "optimisers"):  # the state has copies
                resumed[name].clear()
    return state
