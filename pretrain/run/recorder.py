"""Recorder: what a run writes and prints while it goes on, and what rank 0 gathers from
the other processes for it.

Every process has a recorder and calls the same methods of it, in which rank 0 alone
logs, prints and writes.
"""

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tqdm import tqdm

from elmoc.errors import InputError, drop_output, duration, reason
from elmoc.model_directory import write_model_directory
from elmoc.process import progress_bar
from pretrain.config import fixed_settings
from pretrain.distributed.processes import Processes
from pretrain.evaluation import MACRO, EvaluationTable, evaluate, score_of, sources_of
from pretrain.run.directory import MetricsLog, RunDirectory
from pretrain.run.stop_signals import StopRequest
from pretrain.setup import TrainingSetup
from pretrain.step import DirectionStep, summary
from pretrain.train_state import TrainState

# evaluations of a run with --max-time: one before the first update, and one at each
# tenth
EVALUATIONS = 11
# the share of --max-time that evaluations may take, and the share of an evaluation's
# words that is timed, as 1 / TRIAL
EVALUATING = 0.1
TRIAL = 20


class Recorder:
    """Logs, evaluates and saves a run.

    Args:
        setup, state: of the run.
        run: its directory.
        resumed: the checkpoint that it goes on from, if it does.
        stop: what asks it to stop, as it is asked where what it prints is not taken.
    """

    def __init__(
        self,
        setup: TrainingSetup,
        state: TrainState,
        run: RunDirectory,
        *,
        resumed: dict[str, Any] | None,
        stop: StopRequest,
    ) -> None:
        self._setup = setup
        self._state = state
        self._run = run
        self._stop = stop
        self._saved = None if resumed is None else (state.update, state.tenths)
        self._saved_seconds = state.seconds
        self._steps: list[
            dict[str, DirectionStep]
        ] = []  # since the last line of the log
        self._seconds: list[
            float
        ] = []  # of these updates, as far as this process made them
        if not setup.processes.is_rank0:
            return
        self._scorer = setup.config.output_layer.scorer(
            corpus=setup.data.corpus,
            targets=setup.data.targets,
            candidates=setup.config.evaluation.candidates,
            device=setup.execution.device,
        )
        if resumed is not None:
            self._steps = [
                {name: DirectionStep(*each) for name, each in steps.items()}
                for steps in resumed["unlogged"]
            ]
        self._log = MetricsLog(
            run.metrics, size=resumed["metrics_bytes"] if resumed else 0
        )
        self._table = EvaluationTable(setup.data.corpus.unit)
        self._loss = math.nan  # of the last line of the log
        self._began = time.monotonic()
        self._share = state.progress.share
        self._bar = progress_bar(
            total=1.0,
            initial=self._share,
            bar_format="{percentage:3.0f}% |{bar:20}| {desc}",
        )
        if state.progress.is_over:
            self._print(
                f"{run.path} is finished: to train on, start a new run with --init-from {run.path}"
            )

    def add(self, steps: dict[str, DirectionStep], rate: float, seconds: float) -> None:
        """Take note of an update that took `seconds`; every few of them become a line
        of the log.
        """
        if not self._setup.processes.is_rank0:
            return
        state = self._state
        words = self._setup.data.words_per_update
        self._steps.append(steps)
        self._seconds.append(seconds)
        share = state.progress.share
        with self._taken():
            self._bar.update(share - self._bar.n)
        if (
            state.update % self._setup.config.log.every_updates
            and not state.progress.is_over
        ):
            return
        values = summary(self._steps)
        speed = words * len(self._seconds) / sum(self._seconds)
        more = {
            "learning_rate": rate,
            "words_per_second": speed,
            "masked_targets": state.masked,
        }
        self._log.write("train", state.update, state.words, values | more)
        self._loss = values["loss"]
        self._steps.clear()
        self._seconds.clear()
        left = (
            (time.monotonic() - self._began)
            * (1 - share)
            / max(1e-9, share - self._share)
        )
        if state.max_seconds:
            left = state.max_seconds - state.seconds
        best = f", best {self._setup.config.output_layer.metric.replace('_', ' ')} {state.best_score:.4f}"
        unit = self._setup.data.corpus.unit
        self._bar.set_description_str(
            f"{duration(left)} left, {speed:,.0f} {unit}/s"
            + (best if state.best_update is not None else ""),
            refresh=False,
        )

    def evaluate(self) -> None:
        """Evaluate; when it is the best so far, export the model and save a checkpoint."""
        state = self._state
        processes = self._setup.processes
        is_best = False
        with processes.raise_together():
            if processes.is_rank0:
                is_best = self._evaluate_and_export()
        is_best, state.evaluation_seconds, state.evaluation_words = (
            processes.broadcast_from_rank0(
                (is_best, state.evaluation_seconds, state.evaluation_words)
            )
        )
        state.tenths = state.progress.tenths
        if is_best:
            self.save()

    def _evaluate_and_export(self) -> bool:
        """Log and print held-out metrics; export the model when its score is the best
        so far, which is the answer.

        The score is the metric of the output layers; where there are several sources,
        its mean over them, which is logged, too. Raises `InputError` where there is no
        best so far and can be none.
        """
        state = self._state
        config = self._setup.config
        values = self._held_out()
        metric = config.output_layer.metric
        score = score_of(values, metric)
        if len(sources_of(values)) > 1:
            metric = MACRO + metric
            values = values | {metric: score}
        self._log.write("evaluation", state.update, state.words, values)
        for line in self._table.rows(
            values, words=state.words, seconds=state.seconds, loss=self._loss
        ):
            self._print(line)
        if state.best_update is None and math.isnan(score):
            raise InputError(
                f"the held-out {metric}, by which the best model is chosen, is not a number: check the vector tables"
            )
        if not score > state.best_score:
            return False
        state.best_score = score
        state.best_update = state.update
        held_out = {
            name: round(value, 5) if math.isfinite(value) else None
            for name, value in values.items()
        }
        training = self._setup.training_record() | {
            "words": state.words,
            "updates": state.update,
            "held_out": held_out,
            "recipe": fixed_settings(config),
        }
        write_model_directory(self._run.model, self._setup.model_directory(training))
        return True

    def _held_out(self) -> dict[str, float]:
        """The held-out metrics; with `--max-time` a share is timed before the first,
        and says how many words fit.
        """
        setup = self._setup
        state = self._state
        words = state.evaluation_words or setup.config.evaluation.words
        if state.max_seconds and not state.evaluation_words:
            few = max(1, words // TRIAL)
            for _ in range(2):  # the first allocates and compiles
                started = time.monotonic()
                evaluate(
                    state,
                    setup.data,
                    self._scorer,
                    words=few,
                    execution=setup.execution,
                )
            each = (time.monotonic() - started) / few
            state.evaluation_words = max(
                1, min(words, int(EVALUATING * state.max_seconds / EVALUATIONS / each))
            )
            if state.evaluation_words < words:
                self._print(
                    f"evaluations read {state.evaluation_words:,} held-out words in place of {words:,}, "
                    f"to take at most {EVALUATING:.0%} of the time"
                )
            words = state.evaluation_words
            state.evaluation_seconds = each * state.evaluation_words
        return evaluate(
            state, setup.data, self._scorer, words=words, execution=setup.execution
        )

    @property
    def checkpoint_is_due(self) -> bool:
        """Whether to save now, every `checkpoint_updates` or `checkpoint_minutes`; the
        same in every process.
        """
        log = self._setup.config.log
        if log.checkpoint_updates:
            return self._state.update % log.checkpoint_updates == 0
        return self._state.seconds - self._saved_seconds > 60 * log.checkpoint_minutes

    def save(self) -> None:
        """Write a checkpoint of the state as it is now, unless there is one with this
        update and evaluation.
        """
        state = self._state
        if self._saved == (state.update, state.tenths):
            return
        self._saved = (state.update, state.tenths)
        self._saved_seconds = state.seconds
        values = gather_state(self._setup.processes, state)
        if self._setup.processes.is_rank0:
            values["data"] = self._setup.data.fingerprints
            values["started_from"] = self._setup.started_from
            values["metrics_bytes"] = self._log.size()
            values["unlogged"] = [
                {name: tuple(step) for name, step in steps.items()}
                for steps in self._steps
            ]
            self._run.save(
                state.update,
                values,
                keep=self._setup.config.log.keep,
                best=state.best_update,
            )

    def close(self) -> None:
        """Close the progress bar and the log."""
        if not self._setup.processes.is_rank0:
            return
        with self._taken():
            self._bar.close()
        self._log.close()

    def _print(self, text: str) -> None:
        """Print a line above the progress bar."""
        with self._taken():
            tqdm.write(text)
            print(end="", flush=True)

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """Ask the run to stop, so that it saves, where what the block prints is not
        taken, as by a closed terminal.
        """
        try:
            yield
        except OSError as error:
            self._stop.asked = True
            drop_output()
            with suppress(OSError):
                print(
                    f"warning: the run cannot print any more ({reason(error)}), and stops",
                    file=sys.stderr,
                )


def gather_state(processes: Processes, state: TrainState) -> dict[str, Any]:
    """What a checkpoint holds, whole in rank 0; every process calls this."""
    values = state.to_dict()
    recurrent = values["recurrent"]
    for direction, layers in recurrent.items():
        if layers is not None:
            recurrent[direction] = [
                tuple(processes.gather(part) for part in layer) for layer in layers
            ]
    return values
