"""How is an encoder trained? Read `train` from top to bottom: batch, step, log, evaluate, save."""

from contextlib import ExitStack, closing
from typing import Any

from elmoc.errors import InputError
from elmoc.progress import progress_bar
from pretrain.data.loader import stream_batches
from pretrain.data.tables import open_tables
from pretrain.data.windows import training_windows
from pretrain.execution.direction_threads import DirectionThreads
from pretrain.run.clock import Clock, evaluation_is_due
from pretrain.run.directory import RunDirectory
from pretrain.run.recorder import Recorder
from pretrain.run.stop_signals import stop_signals
from pretrain.schedule import learning_rate
from pretrain.setup import TrainingSetup
from pretrain.step import record_updates, train_step
from pretrain.train_state import TrainState, new_state, parameters_of

UPDATES_BETWEEN_LOOKS = 10
"""At the first process's clock, of several processes."""


def train(
    setup: TrainingSetup, run: RunDirectory, *, resumed: dict[str, Any] | None, max_seconds: float | None
) -> bool:
    """Train to the end of the run, or until a signal asks to stop; returns whether the end was reached.

    Args:
        setup: everything the run needs.
        run: its directory, started or resumed.
        resumed: the checkpoint to go on from, if there is one.
        max_seconds: sets the length of the run, schedule included, from the measured speed.
    """
    config, schedule, processes = setup.config.train, setup.config.schedule, setup.processes
    evaluate_every = setup.config.evaluation.every_updates
    state = starting_state(setup, resumed)
    clock = Clock(state.seconds, max_seconds)
    if max_seconds is not None and state.update >= schedule.share_before_decay * state.updates:
        print("--max-time comes too late: the learning rate is falling towards the end that the run was given before")
    windows = training_windows(
        setup.corpus,
        streams=config.streams,
        window=config.window,
        directions=processes.directions,
        seed=config.seed,
        position=state.position,
        mix=config.mix_shards,
        own=processes.stream_slice(config.streams),
    )
    tables = open_tables(setup.inputs, setup.targets, setup.device, on_device=setup.config.data.tables_on_device)
    with ExitStack() as stack:
        stop = stack.enter_context(stop_signals())
        metrics_bytes = 0 if resumed is None else resumed["metrics_bytes"]
        recorder = Recorder(setup=setup, state=state, run=run, clock=clock, metrics_bytes=metrics_bytes)
        stack.enter_context(closing(recorder))
        runner = stack.enter_context(closing(DirectionThreads(processes.directions, setup.device)))
        batches = stack.enter_context(closing(stream_batches(windows, tables, setup.device)))
        recorded = record_updates(setup, state) if config.cuda_graph else None
        words = state.updates * setup.words_per_update
        progress = stack.enter_context(
            progress_bar(
                total=words,
                initial=state.words,
                unit=" words",
                unit_scale=True,
                desc="pretrain",
                disable=not processes.is_rank0,
            )
        )
        if resumed is None:
            recorder.evaluate()
        while state.update < state.updates and not processes.any_at_last_step(stop.asked):
            batch = next(batches)
            rate = learning_rate(schedule, update=state.update, updates=state.updates, streams=config.streams)
            steps = train_step(setup, state, batch, rate, runner, recorded)
            state.position = batch.next
            state.update += 1
            state.words += setup.words_per_update
            state.masked += sum(step.masked for step in steps.values())
            clock.record_update()
            if max_seconds is not None and clock.may_set_length(
                state.update, state.updates, schedule.share_before_decay
            ):
                length = clock.updates_within_limit(state.update, evaluate_every)
                state.updates = processes.broadcast_from_rank0(length)
                progress.total = state.updates * setup.words_per_update
            progress.update(setup.words_per_update)
            recorder.add(steps, rate, progress)
            if evaluation_is_due(state.update, state.updates, evaluate_every):
                recorder.evaluate()
            if state.update == state.updates or checkpoint_is_due(setup, state, clock):
                recorder.save()
        if state.update < state.updates:  # asked to stop
            recorder.save()
    return state.update >= state.updates


def starting_state(setup: TrainingSetup, resumed: dict[str, Any] | None) -> TrainState:
    """The state before the first update, or that of a checkpoint; from now on gradients are summed over processes.

    Raises `InputError` when the checkpoint is of other data.
    """
    config, processes = setup.config, setup.processes
    processes.broadcast_weights(setup.encoder, setup.heads)
    state = new_state(
        setup.encoder,
        setup.heads,
        config.optimiser,
        config.train.seed,
        setup.device,
        processes.directions,
    )
    state.updates = setup.updates
    if resumed is not None:
        with processes.raise_together():
            check_same_data(resumed["data"], setup.data)
        state.load_dict(resumed, processes.stream_slice(config.train.streams))
    processes.connect_groups(setup.device)
    for direction, group in processes.groups.items():
        group.all_reduce_gradients(parameters_of(state.encoder, state.heads, direction))
    return state


def checkpoint_is_due(setup: TrainingSetup, state: TrainState, clock: Clock) -> bool:
    """Every process answers alike: by the first one's clock, asked now and then, since that takes a message."""
    log, processes = setup.config.log, setup.processes
    if processes.world_size == 1 or log.checkpoint_updates:
        return clock.checkpoint_is_due(state.update, log)
    return state.update % UPDATES_BETWEEN_LOOKS == 0 and processes.broadcast_from_rank0(
        clock.checkpoint_is_due(state.update, log)
    )


def check_same_data(before: dict[str, str], now: dict[str, str]) -> None:
    """Raise an `InputError` unless a resumed run reads the corpus and vector tables that it read before."""
    changed = [key for key, name in now.items() if before[key] != name]
    if changed:
        raise InputError(
            f"the run was started with other data under {', '.join(changed)}: resume it with that, or start a new run"
        )
