"""What does a run leave behind while it goes on: log lines, evaluations, the exported model, checkpoints?"""

import time
from typing import Any

from tqdm import tqdm

from elmoc.model_directory import write_model_directory
from pretrain.evaluation.held_out import evaluate, evaluation_line
from pretrain.evaluation.retrieval import Evaluator
from pretrain.run.clock import Clock
from pretrain.run.directory import MetricsLog, RunDirectory
from pretrain.run.gather_state import weights_to_first, whole_state
from pretrain.setup import TrainingSetup
from pretrain.step import DirectionStep, summary
from pretrain.train_state import TrainState


class Recorder:
    """Writes a run's figures, model and checkpoints.

    Args:
        setup, state, clock: of the run.
        run: its directory.
        metrics_bytes: bytes of its `metrics.jsonl` that belong to `state`.
    """

    def __init__(
        self, *, setup: TrainingSetup, state: TrainState, run: RunDirectory, clock: Clock, metrics_bytes: int
    ) -> None:
        self._setup = setup
        self._state = state
        self._run = run
        self._clock = clock
        self._evaluator = Evaluator(setup.corpus, setup.targets, setup.config.evaluation.candidates, setup.device)
        self._log = MetricsLog(run, size=metrics_bytes, update=state.update)
        self._saved: int | None = None
        self._steps: list[dict[str, DirectionStep]] = []
        self._standing: dict[str, float] = {}

    def add(self, steps: dict[str, DirectionStep], rate: float, progress: tqdm) -> None:
        """Take note of an update; every so many of them become a line of the log."""
        state, config = self._state, self._setup.config.log
        self._steps.append(steps)
        if state.update % config.every_updates and state.update != state.updates:
            return
        values = summary(self._steps)
        speed = self._clock.speed(self._setup.words_per_update)
        more = {"learning_rate": rate, "words_per_second": speed, "masked_targets": state.masked}
        self._log.write("train", state.update, state.words, values | more)
        self._steps.clear()
        self._standing["loss"] = values["loss"]
        figures = ", ".join(f"{name} {value:.4f}" for name, value in self._standing.items())
        progress.set_postfix_str(f"update {state.update:,}/{state.updates:,}, {figures}", refresh=False)

    def evaluate(self) -> None:
        """Evaluate; when it is the best so far, export the model and save a checkpoint."""
        started = time.monotonic()
        state, processes = self._state, self._setup.processes
        weights_to_first(processes, state)
        values = evaluate(self._setup, state, self._evaluator)
        self._clock.evaluated(time.monotonic() - started)
        self._log.write("evaluation", state.update, state.words, values)
        self._standing["held-out cosine"] = values["cosine"]
        tqdm.write(evaluation_line(state, values))
        if processes.broadcast_from_rank0(values["cosine"] > state.best_cosine):
            state.best_cosine, state.best_update = values["cosine"], state.update
            training: dict[str, Any] = {
                "corpus": str(self._setup.corpus.path),
                "words": state.words,
                "updates": state.update,
                "held_out": {name: round(value, 5) for name, value in values.items()},
            }
            write_model_directory(self._run.model, self._setup.model_directory(training))
            self.save()

    def save(self) -> None:
        """Write a checkpoint of the state as it is now, unless this update has one."""
        if self._saved == self._state.update:
            return
        self._saved = self._state.update
        self._state.seconds = self._clock.seconds()
        self._run.save(
            self._state.update,
            whole_state(self._setup.processes, self._state)
            | {"data": self._setup.data, "metrics_bytes": self._log.size()},
            keep=self._setup.config.log.keep,
            best=self._state.best_update,
        )
        self._clock.saved()

    def close(self) -> None:
        """Close the log."""
        self._log.close()
