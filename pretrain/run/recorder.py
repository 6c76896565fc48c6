"""Recorder: what a run writes and prints while it goes on, and what rank 0 gathers from
the other processes for it.

Every process has a recorder and calls the same methods of it, in which rank 0 alone
logs, prints and writes.
"""

import math
import time
from contextlib import suppress

from tqdm import tqdm

from elmoc.errors import InputError, say
from elmoc.model_directory import write_model_directory
from elmoc.process import progress_bar
from elmoc.settings import plain_values
from pretrain.config import fixed_settings
from pretrain.evaluation import MACRO, evaluate, score_of, sources_of, table_rows
from pretrain.run.directory import Checkpoint, MetricsLog, RunDirectory
from pretrain.setup import TrainingSetup
from pretrain.step import DirectionStep, summary
from pretrain.train_state import TrainState


class Recorder:
    """Logs, evaluates and saves a run.

    Args:
        setup: of the run.
        state: of the run.
        run: its directory.
        resumed: the checkpoint that it goes on from, if it does.
    """

    def __init__(
        self,
        setup: TrainingSetup,
        state: TrainState,
        run: RunDirectory,
        *,
        resumed: Checkpoint | None,
    ) -> None:
        self._setup = setup
        self._state = state
        self._run = run
        # The update and the evaluation of the newest checkpoint.
        self._saved = None if resumed is None else (state.update, state.tenths)
        self._saved_seconds = state.seconds
        # The updates since the last line of the log, and their seconds, as far as this
        # process made them.
        self._steps: list[dict[str, DirectionStep]] = (
            [] if resumed is None else list(resumed.unlogged)
        )
        self._seconds: list[float] = []
        # The learning rate of the last update.
        self._rate = math.nan
        if not setup.processes.is_rank0:
            return
        self._scorer = setup.config.output_layer.scorer(
            corpus=setup.data.corpus,
            counts_read=setup.data.counts_read,
            targets=setup.data.targets,
            candidates=setup.config.evaluation.candidates,
            device=setup.execution.device,
        )
        self._log = MetricsLog(
            run.metrics, size=0 if resumed is None else resumed.metrics_bytes
        )
        self._board = None
        if setup.config.log.tensorboard:
            # Of an extra.
            from torch.utils.tensorboard import SummaryWriter

            # What was written behind the checkpoint is written again.
            self._board = SummaryWriter(run.board, purge_step=state.update + 1)
        self._has_heading = False
        # The training loss in the last line of the log.
        self._loss = math.nan
        self._bar = progress_bar(
            total=1.0,
            initial=state.progress.share,
            # The mean speed so far: each evaluation would count for a smoothed one.
            smoothing=0,
            bar_format="{percentage:3.0f}% |{bar:20}| {remaining} left{desc}",
        )

    def add(self, steps: dict[str, DirectionStep], rate: float, seconds: float) -> None:
        """Take note of an update; log every few of them, and the last one where it is
        known to be that.

        Args:
            steps: what the update did in each direction.
            rate: its learning rate.
            seconds: its time.
        """
        if not self._setup.processes.is_rank0:
            return
        state = self._state
        self._steps.append(steps)
        self._seconds.append(seconds)
        # The time that is left cannot be told from a smaller share.
        if state.progress.share > 1e-4:
            self._bar.update(state.progress.share - self._bar.n)
        self._rate = rate
        every = self._setup.config.log.every_updates
        if state.update % every == 0 or state.progress.is_over:
            self.log()

    def log(self) -> None:
        """Log a line of the updates since the line before, if there are any."""
        if not self._seconds:
            return
        # The seconds of updates alone, without evaluations and checkpoints.
        data = self._setup.data
        speed = data.words_per_update * len(self._seconds) / sum(self._seconds)
        values = summary(self._steps) | {
            "learning_rate": self._rate,
            "words_per_second": speed,
            "masked_targets": self._state.masked,
        }
        self._write("train", values)
        self._loss = values["loss"]
        self._steps.clear()
        self._seconds.clear()
        self._bar.set_description_str(
            f", {speed:,.0f} {data.corpus.unit}/s", refresh=False
        )

    def _write(self, kind: str, values: dict[str, float]) -> None:
        """Write a line of the log, and the same for TensorBoard."""
        state = self._state
        self._log.write(kind, state.update, state.words, values)
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(f"{kind}/{name}", value, state.update)

    def evaluate(self) -> None:
        """Evaluate; export the model and save a checkpoint where it is the best so
        far.
        """
        state = self._state
        processes = self._setup.processes
        is_best = False
        began = time.monotonic()
        with processes.raise_together():
            if processes.is_rank0:
                # The time that is left is told by the time of training: `unpause`
                # leaves out what has passed since this.
                self._bar.last_print_t = time.time()
                is_best = self._evaluate_and_export()
                self._bar.unpause()
        seconds = time.monotonic() - began
        # Rank 0 alone evaluates; a checkpoint is gathered from all.
        is_best, seconds = processes.broadcast_from_rank0((is_best, seconds))
        # Before the length of the run changes: a tenth that is over stays so.
        state.tenths = state.progress.tenths
        # A run that is over stays so, however long its last evaluation takes.
        if state.max_seconds and not state.progress.is_over:
            state.evaluation_seconds = seconds
        if is_best:
            self.save()

    def _evaluate_and_export(self) -> bool:
        """Log and print held-out metrics; export the model where its score is the best
        so far, which is the answer.

        The score is the metric of the output layers; where there are several sources,
        its mean over them, which is logged, too. Raises `InputError` where there is no
        best so far and can be none.
        """
        state = self._state
        config = self._setup.config
        values = evaluate(
            state,
            self._setup.data,
            self._scorer,
            words=config.evaluation.words,
            execution=self._setup.execution,
        )
        metric = config.output_layer.metric
        score = score_of(values, metric)
        if len(sources_of(values)) > 1:
            metric = MACRO + metric
            values[metric] = score
        self._write("evaluation", values)
        rows = table_rows(
            values,
            unit=self._setup.data.corpus.unit,
            words=state.words,
            seconds=state.seconds,
            loss=self._loss,
            with_heading=not self._has_heading,
        )
        # Above the progress bar; the terminal may be closed.
        with suppress(OSError), tqdm.external_write_mode():
            for line in rows:
                say(line)
        self._has_heading = True
        # Later evaluations may lack a number: the best model so far stays.
        if state.best_update is None and math.isnan(score):
            raise InputError(
                f"the held-out {metric}, by which the best model is chosen, is not a "
                "number: check the vector tables"
            )
        # A score that is not a number is not the best either.
        if not score > state.best_score:
            return False
        state.best_score = score
        state.best_update = state.update
        training = self._setup.training_record() | {
            "words": state.words,
            "updates": state.update,
            "held_out": {
                name: round(value, 5) if math.isfinite(value) else None
                for name, value in values.items()
            },
            "recipe": fixed_settings(config),
        }
        write_model_directory(self._run.model, self._setup.model_directory(training))
        return True

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
        # The end of a run, or a signal, may come just after a checkpoint.
        if self._saved == (state.update, state.tenths):
            return
        self._saved = (state.update, state.tenths)
        self._saved_seconds = state.seconds
        # Every process sends its streams' recurrent state.
        values = state.to_dict(self._setup.processes.gather)
        if not self._setup.processes.is_rank0:
            return
        values |= {
            "data": self._setup.data.fingerprints,
            "started_from": self._setup.started_from,
            "metrics_bytes": self._log.size(),
            "unlogged": plain_values(self._steps),
        }
        self._run.save(
            state.update,
            values,
            keep=self._setup.config.log.keep,
            best=state.best_update or 0,
        )

    def close(self) -> None:
        """Close the progress bar and the log."""
        if not self._setup.processes.is_rank0:
            return
        self._bar.close()
        self._log.close()
        if self._board is not None:
            self._board.close()
