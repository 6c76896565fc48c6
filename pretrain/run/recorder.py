"""Recorder: what a run writes while it goes on, and the values that rank 0 gathers from the others for it.

Every process has a recorder and calls the same methods of it. The collective calls of `evaluate` and `save` stand here
once, and no process can skip one: all that rank 0 does alone, between them, is in its `RunWriter`.
"""

import math
import time
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from elmoc.errors import InputError
from elmoc.model_directory import read_model_directory, write_model_directory
from pretrain.checkpoint import Checkpoint
from pretrain.config import fixed_settings
from pretrain.distributed.processes import Processes
from pretrain.evaluation import MACRO, evaluate, evaluation_line, score_of, sources_of
from pretrain.run.clock import Clock
from pretrain.run.directory import MetricsLog, RunDirectory
from pretrain.run.output import Output
from pretrain.run.stop_signals import StopRequest
from pretrain.setup import TrainingSetup
from pretrain.step import DirectionStep, summary
from pretrain.train_state import TrainState

OF_A_DIRECTION = ("optimisers", "averages", "generators", "recurrent")
"""What only the processes of a direction have. The weights of every direction are everywhere, but may be old."""


class Recorder:
    """Logs, evaluates and saves a run.

    Args:
        setup, state, clock: of the run.
        run: its directory.
        resumed: the checkpoint that it goes on from, if it does.
        stop: what asks it to stop, as it is asked where what it prints is not taken.
    """

    def __init__(
        self,
        *,
        setup: TrainingSetup,
        state: TrainState,
        run: RunDirectory,
        clock: Clock,
        resumed: Checkpoint | None,
        stop: StopRequest,
    ) -> None:
        self._processes = setup.processes
        self._state = state
        self._clock = clock
        self._saved: int | None = None
        self._writer = RunWriter(setup, state, run, resumed, stop) if setup.processes.is_rank0 else None

    def add(self, steps: dict[str, DirectionStep], rate: float) -> None:
        """Take note of an update, of which all processes know; every few of them become a line of the log."""
        if self._writer is not None:
            self._writer.add(steps, rate, self._clock)

    def say(self, sentence: str) -> None:
        """Print a line above the progress bar, once for all processes."""
        if self._writer is not None:
            self._writer.say(sentence)

    def evaluate(self) -> None:
        """Evaluate; when it is the best so far, export the model and save a checkpoint."""
        started = time.monotonic()
        self._state.evaluated = self._state.update
        is_best = False
        with self._state.averaged():
            gather_weights(self._processes, self._state)
            with self._processes.raise_together():
                if self._writer is not None:
                    values = self._writer.evaluate()
                    self._clock.record_evaluation(time.monotonic() - started)
                    is_best = self._writer.write_evaluation(values)
        if self._processes.broadcast_from_rank0(is_best):
            self.save()

    def save(self) -> None:
        """Write a checkpoint of the state as it is now, unless this update has one."""
        if self._saved == self._state.update:
            return
        self._saved = self._state.update
        self._state.seconds, self._state.longest_evaluation = self._clock.seconds(), self._clock.longest_evaluation
        values = gather_state(self._processes, self._state)
        if self._writer is not None:
            self._writer.write_checkpoint(values)
        self._clock.record_checkpoint()

    def close(self) -> None:
        """Close the log."""
        if self._writer is not None:
            self._writer.close()


class RunWriter:
    """Writes a run's log lines, model and checkpoints, in rank 0; nothing here is a collective call."""

    def __init__(
        self,
        setup: TrainingSetup,
        state: TrainState,
        run: RunDirectory,
        resumed: Checkpoint | None,
        stop: StopRequest,
    ) -> None:
        self._setup = setup
        self._state = state
        self._run = run
        self._output_layer = setup.config.output_layer
        self._scorer = setup.scorer()
        self._steps: list[dict[str, DirectionStep]] = []  # since the last line of the log
        if resumed is not None:
            self._steps = steps_of(resumed.unlogged)
            run.remove_checkpoints(keep=setup.config.log.keep, best=state.best_update)  # it may have been killed before
            self._renew_card()
        self._log = MetricsLog(run, size=resumed.metrics_bytes if resumed else 0, update=state.update)
        self._latest: dict[str, float] = {}
        words, unit = state.updates * setup.data.words_per_update, setup.data.corpus.unit
        self._output = Output(stop, total=words, done=state.words, unit=unit)
        if resumed is not None and state.update == state.updates:
            self._output.print(
                f"{run.path} is finished: to train it longer, start a new run, in another directory, with "
                f"--init-from {run.path}"
            )

    def _renew_card(self) -> None:
        """Have a model that was exported before say the name and the licence that the run is given now."""
        if not self._setup.card or not self._run.model.exists():
            return
        model = read_model_directory(self._run.model)
        training = model.training | self._setup.card
        if training != model.training:
            write_model_directory(self._run.model, replace(model, training=training))

    def add(self, steps: dict[str, DirectionStep], rate: float, clock: Clock) -> None:
        """See `Recorder.add`."""
        state, words = self._state, self._setup.data.words_per_update
        self._output.advance(words, total=state.updates * words)
        self._steps.append(steps)
        if state.update % self._setup.config.log.every_updates and state.update != state.updates:
            return
        values = summary(self._steps)
        speed = clock.words_per_second(words)
        more = {"learning_rate": rate, "words_per_second": speed, "masked_targets": state.masked}
        self._log.write("train", state.update, state.words, values | more)
        self._steps.clear()
        self._latest["loss"] = values["loss"]
        metrics = ", ".join(f"{name} {value:.4f}" for name, value in self._latest.items())
        self._output.show(f"update {state.update:,}/{state.updates:,}, {metrics}")

    def say(self, sentence: str) -> None:
        """Print a line above the progress bar."""
        self._output.print(sentence)

    def evaluate(self) -> dict[str, float]:
        """The held-out metrics of the weights as they are now."""
        setup = self._setup
        words = setup.config.evaluation.words
        return evaluate(self._state, setup.data, self._scorer, words=words, execution=setup.execution)

    def write_evaluation(self, values: dict[str, float]) -> bool:
        """Log and print held-out metrics; export the model when its score is the best so far, which is the answer.

        The score is the metric of the output layers; where there are several sources, its mean over them, which is
        logged, too. Raises `InputError` where there is no best so far and can be none.
        """
        state, metric = self._state, self._output_layer.metric
        score = score_of(values, metric)
        if len(sources_of(values)) > 1:
            metric = MACRO + metric
            values = values | {metric: score}
        self._log.write("evaluation", state.update, state.words, values)
        self._latest[f"held-out {metric}"] = score
        self._output.print(evaluation_line(state, self._output_layer, values, self._setup.data.corpus.unit))
        if state.best_update is None and math.isnan(score):
            raise InputError(
                f"the held-out {metric}, by which the best model is chosen, is not a number: check that the vector "
                "tables hold no huge numbers, and that held-out words have target vectors which are not all zeros"
            )
        is_best = score > state.best_score
        if is_best:
            state.best_score, state.best_update = score, state.update
            held_out = {name: round(value, 5) if math.isfinite(value) else None for name, value in values.items()}
            training = self._setup.training_record() | {
                "words": state.words,
                "updates": state.update,
                "held_out": held_out,
                "recipe": fixed_settings(self._setup.config),
            }
            write_model_directory(self._run.model, self._setup.model_directory(training))
        return is_best

    def write_checkpoint(self, values: dict[str, Any]) -> None:
        """Write what `gather_state` gave to the run directory."""
        more = {
            "data": self._setup.data.fingerprints,
            "metrics_bytes": self._log.size(),
            "unlogged": tensors_of(self._steps),
        }
        self._run.save(
            self._state.update,
            values | more,
            keep=self._setup.config.log.keep,
            best=self._state.best_update,
        )

    def close(self) -> None:
        """Close the progress bar and the log."""
        self._output.close()
        self._log.close()


def tensors_of(steps: list[dict[str, DirectionStep]]) -> dict[str, Tensor]:
    """What updates did as a checkpoint has it: for each direction float64 [n, 3]."""
    return {
        name: torch.tensor([each[name] for each in steps], dtype=torch.float64) for name in (steps[0] if steps else ())
    }


def steps_of(tensors: dict[str, Tensor]) -> list[dict[str, DirectionStep]]:
    """What `tensors_of` made tensors of."""
    by_direction = [[(name, DirectionStep.of(numbers)) for numbers in rows.tolist()] for name, rows in tensors.items()]
    return [dict(steps) for steps in zip(*by_direction, strict=True)]


def gather_weights(processes: Processes, state: TrainState) -> None:
    """Bring the weights that rank 0 has, but does not train, up to date; every process calls this."""
    for direction, ranks in processes.ranks.items():
        if ranks.start:
            modules = (state.encoder.direction(direction), state.output_layers.direction(direction))
            weights = processes.send_to_rank0([module.state_dict() for module in modules], source=ranks.start)
            if processes.is_rank0:
                for module, values in zip(modules, weights, strict=True):
                    module.load_state_dict(values)


def gather_state(processes: Processes, state: TrainState) -> dict[str, Any]:
    """What a checkpoint holds, whole in rank 0; every process calls this."""
    gather_weights(processes, state)
    values = state.to_dict()
    for direction, group in processes.groups.items():
        if (layers := values["recurrent"][direction]) is not None:
            values["recurrent"][direction] = [tuple(group.gather(part) for part in layer) for layer in layers]
    for direction, ranks in processes.ranks.items():
        if ranks.start:
            own = {kind: values[kind][direction] for kind in OF_A_DIRECTION if direction in values[kind]}
            for kind, value in processes.send_to_rank0(own, source=ranks.start).items():
                values[kind][direction] = value
    return values
