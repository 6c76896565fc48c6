"""The train loop: batch, step, log, evaluate, save."""

import time
from contextlib import closing

from elmoc.errors import reading
from elmoc.stopping import noted_signals
from pretrain.data.batches import stream_batches
from pretrain.optimiser import TENTHS, learning_rate
from pretrain.run.directory import Checkpoint, RunDirectory
from pretrain.run.recorder import Recorder
from pretrain.setup import TrainingSetup
from pretrain.step import TrainStep, require_finite
from pretrain.train_state import EVALUATION_SHARE, TrainState


def train(
    setup: TrainingSetup,
    run: RunDirectory,
    *,
    resumed: Checkpoint | None,
    max_seconds: float | None,
) -> tuple[TrainState, int]:
    """Train to the end of the run, or until a signal asks to stop.

    Args:
        setup: the parts of the run.
        run: its directory, started or resumed.
        resumed: the checkpoint to go on from, if there is one.
        max_seconds: of the whole run, in place of updates; None goes on as the run was
            started.

    Returns:
        The last state, and the number of the signal, 0 without one.
    """
    config = setup.config
    data = setup.data
    processes = setup.processes
    state = starting_state(setup, resumed)
    if max_seconds is not None and not (resumed and state.progress.is_over):
        state.max_seconds = max_seconds
        # Fewer tenths of a longer time are over than of the time before.
        state.tenths = min(state.tenths, state.progress.tenths)
    streamed = stream_batches(
        data.windows(state.position, own=processes.stream_slice(data.streams)),
        data.batch_maker(),
        setup.execution.device,
    )
    with (
        noted_signals() as noted,
        closing(Recorder(setup, state, run, resumed=resumed)) as recorder,
        closing(streamed) as batches,
        closing(TrainStep(setup, state)) as train_step,
    ):
        # The first evaluation says where the run begins, and exports a first model.
        if resumed is None:
            recorder.evaluate()
        # A resumed run counts its seconds from where it stopped; a new one counts none
        # before its first update, so that a short time is not over before that.
        began = time.monotonic() - state.seconds
        while True:
            # All processes stop after the same update, and by the same clock.
            signal_number, state.seconds = processes.agree(
                max(noted, default=0), time.monotonic() - began
            )
            if signal_number or state.progress.is_over:
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
            if evaluation_is_due(state, config.evaluation.every_updates):
                recorder.evaluate()
            if recorder.checkpoint_is_due:
                recorder.save()
        # A limit of time is known to be over only after the last update.
        if state.progress.is_over and state.tenths < TENTHS:
            recorder.log()
            recorder.evaluate()
        recorder.save()
    return state, signal_number


def evaluation_is_due(state: TrainState, every_updates: int) -> bool:
    """Whether to evaluate after this update: at the end, and every `every_updates`; at
    each tenth of the run where that is 0 or the run has a limit of time, of which
    evaluations before the last take a tenth at most.
    """
    if state.progress.is_over:
        return True
    if every_updates and not state.max_seconds:
        return state.update % every_updates == 0
    tenths = state.progress.tenths - state.tenths
    seconds = tenths * state.max_seconds / TENTHS
    return tenths > 0 and state.evaluation_seconds <= EVALUATION_SHARE * seconds


def starting_state(setup: TrainingSetup, resumed: Checkpoint | None) -> TrainState:
    """The state before the first update, or of a checkpoint.

    Raises:
        InputError: the checkpoint does not fit, or is of other data.
    """
    processes = setup.processes
    for module in (setup.encoder, setup.output_layers, setup.input_network):
        if module is not None:
            # another machine may draw slightly different ones
            module.load_state_dict(processes.broadcast_from_rank0(module.state_dict()))
    state = setup.new_state()
    if resumed is not None:
        with processes.raise_together():
            setup.data.require_same_data(resumed.data)
            with reading(resumed.path):
                state.load(
                    resumed.state,
                    own=processes.stream_slice(setup.config.train.streams),
                )
        # The state has copies of the tensors: this frees the memory of the others.
        resumed.state.clear()
    return state
