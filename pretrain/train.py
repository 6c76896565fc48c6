"""The train loop: batch, step, log, evaluate, save."""

from contextlib import ExitStack, closing

from elmoc.errors import InputError
from pretrain.checkpoint import Checkpoint
from pretrain.config import MOST_UPDATES
from pretrain.data.batches import stream_batches
from pretrain.distributed.processes import Processes
from pretrain.execution.cuda_graph import UNTIL_RECORDED
from pretrain.run.clock import UNMEASURED_UPDATES, Clock, evaluation_is_due
from pretrain.run.directory import RunDirectory
from pretrain.run.recorder import Recorder
from pretrain.run.stop_signals import stop_signals
from pretrain.schedule import learning_rate
from pretrain.setup import TrainingSetup
from pretrain.step import DirectionStep, TrainStep, require_finite
from pretrain.train_state import TrainState

UPDATES_BETWEEN_LOOKS = 10
"""At the clock of rank 0, of several processes."""


def train(setup: TrainingSetup, run: RunDirectory, *, resumed: Checkpoint | None, max_seconds: float | None) -> bool:
    """Train to the end of the run, or until a signal asks to stop; returns whether the end was reached.

    Args:
        setup: the parts of the run.
        run: its directory, started or resumed.
        resumed: the checkpoint to go on from, if there is one.
        max_seconds: sets the length of the run, schedule included, from the measured speed.
    """
    config, data, processes = setup.config, setup.data, setup.processes
    state = starting_state(setup, run, resumed)
    clock = new_clock(setup, state, max_seconds)
    share_before_decay = config.schedule.share_before_decay
    measured = state.update + clock.measured_after
    limited = max_seconds is not None and (resumed is None or state.update < state.updates)
    never_set = state.update < clock.measured_after
    too_late = limited and not never_set and measured >= share_before_decay * state.updates
    if limited and never_set:
        state.updates = max(state.updates, measured)  # or it would end before its length can be set
    told, every = False, config.evaluation.every_updates
    own = processes.stream_slice(config.train.streams)
    windows = data.windows(state.position, directions=processes.directions, own=own)
    with ExitStack() as stack:
        stop = stack.enter_context(stop_signals())
        recorder = Recorder(setup=setup, state=state, run=run, clock=clock, resumed=resumed, stop=stop)
        stack.enter_context(closing(recorder))
        if too_late:
            recorder.say(
                "--max-time comes too late: the learning rate is falling towards the end that the run was given before"
            )
        device = setup.execution.device
        batches = stack.enter_context(closing(stream_batches(windows, data.batch_maker(), device)))
        train_step = stack.enter_context(closing(new_train_step(setup, state)))
        if resumed is None:
            recorder.evaluate()
        while state.update < state.updates and not processes.any_at_last_step(stop.asked):
            batch = next(batches)
            rate = learning_rate(
                config.schedule, update=state.update, updates=state.updates, streams=config.train.streams
            )
            steps = steps_everywhere(processes, train_step(batch, rate))
            require_finite(steps, state.update + 1)
            state.position = batch.next
            state.update += 1
            state.words += data.words_per_update
            state.masked += sum(step.masked for step in steps.values())
            clock.record_update()
            if clock.may_set_length(state.update, state.updates, share_before_decay):
                length = clock.length_within_limit(every, update=state.update, evaluated=state.evaluated)
                if not told and length.about_evaluations:
                    told = True
                    recorder.say(length.about_evaluations)
                state.updates = processes.broadcast_from_rank0(min(MOST_UPDATES, state.update + length.updates))
            recorder.add(steps, rate)
            if evaluation_is_due(state.update, state.updates, every, evaluated=state.evaluated):
                recorder.evaluate()
            if state.update == state.updates or checkpoint_is_due(setup, state, clock):
                recorder.save()
        if state.update < state.updates:  # asked to stop
            recorder.save()
    return state.update >= state.updates


def steps_everywhere(processes: Processes, own: dict[str, DirectionStep]) -> dict[str, DirectionStep]:
    """What an update did in every direction, of which this process trained its `own`."""
    numbers = processes.broadcast_from_leaders(own, len(DirectionStep._fields))
    return {direction: DirectionStep.of(values) for direction, values in numbers.items()}


def new_clock(setup: TrainingSetup, state: TrainState, limit: float | None) -> Clock:
    """The clock of a run; the update that records a CUDA graph is not measured."""
    unmeasured = max(UNMEASURED_UPDATES, UNTIL_RECORDED) if setup.config.train.cuda_graph else UNMEASURED_UPDATES
    return Clock(state.seconds, limit, longest_evaluation=state.longest_evaluation, unmeasured=unmeasured)


def new_train_step(setup: TrainingSetup, state: TrainState, *, side_by_side: bool = True) -> TrainStep:
    """The train step of a run as its config has it; `side_by_side` as in `TrainStep`."""
    config = setup.config
    return TrainStep(
        state=state,
        groups=setup.processes.groups,
        execution=setup.execution,
        gradient_norm=config.optimiser.gradient_norm,
        carry_state=config.train.carry_state,
        cuda_graph=config.train.cuda_graph,
        side_by_side=side_by_side,
    )


def starting_state(setup: TrainingSetup, run: RunDirectory, resumed: Checkpoint | None) -> TrainState:
    """The state before the first update, or that of a checkpoint; from now on gradients are summed over processes.

    Raises `InputError` when the checkpoint does not fit, or is of other data.
    """
    processes = setup.processes
    networks = [] if setup.input_network is None else [setup.input_network]
    processes.broadcast_weights(setup.encoder, setup.output_layers, *networks)
    state = setup.new_state()
    state.updates = setup.updates
    if resumed is not None:
        with processes.raise_together():
            setup.data.require_same_data(resumed.data)
            take_over(resumed, setup, run, state)
    sum_gradients(setup, state)
    return state


def sum_gradients(setup: TrainingSetup, state: TrainState) -> None:
    """From now on, gradients of a direction are summed over the processes that train it; all processes call this."""
    setup.processes.connect_groups(setup.execution.device)
    for direction, group in setup.processes.groups.items():
        group.all_reduce_gradients(state.parameters(direction))


def take_over(checkpoint: Checkpoint, setup: TrainingSetup, run: RunDirectory, state: TrainState) -> None:
    """Give a state the content of a checkpoint, which lets go of it.

    One that does not fit is an `InputError` that names it.
    """
    train = setup.config.train
    try:
        state.load(
            checkpoint,
            streams=train.streams,
            carry_state=train.carry_state,
            own=setup.processes.stream_slice(train.streams),
        )
    except InputError as error:
        path = run.checkpoint_path(checkpoint.update)
        raise InputError(f"{path} does not fit this run ({error}): {run.removal_advice}") from None
    checkpoint.release()


def checkpoint_is_due(setup: TrainingSetup, state: TrainState, clock: Clock) -> bool:
    """Whether to save now, the same in every process: by the clock of rank 0, asked seldom, since that is a message."""
    log, processes = setup.config.log, setup.processes
    if processes.world_size == 1 or log.checkpoint_updates:
        return clock.checkpoint_is_due(state.update, log)
    if state.update % UPDATES_BETWEEN_LOOKS:
        return False
    return processes.broadcast_from_rank0(clock.checkpoint_is_due(state.update, log))
