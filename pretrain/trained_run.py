"""Trained runs: how one call starts or resumes a run, and what it gives."""

from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from elmoc.errors import say, warn
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.settings import parse_duration
from elmoc.stopping import Stopped
from pretrain.config import (
    CardConfig,
    RunConfig,
    all_settings,
    config_from_dict,
    config_to_dict,
)
from pretrain.distributed.processes import connect
from pretrain.options import TrainOptions
from pretrain.run.directory import RunDirectory, read_metrics
from pretrain.setup import TrainingSetup, set_up
from pretrain.train import train


@dataclass(frozen=True)
class TrainedRun:
    """What a call of `train_encoder` or `make_model` has made.

    path: the run directory.
    model: the model directory inside it, which has the weights of the best evaluation.
        The run directory, too, can be given wherever a model is asked for.
    updates: the number of updates done.
    words: read so far in each direction.
    evaluation: the line of the last evaluation in `metrics.jsonl`: metrics by name (see
        `pretrain.evaluation.evaluate`), None where not a number. It is empty in all
        processes but the first.
    """

    path: Path
    model: Path
    updates: int
    words: int
    evaluation: dict[str, Any] = field(repr=False)


def train_encoder(
    config: RunConfig, out: Path | str, options: TrainOptions = TrainOptions()
) -> TrainedRun:
    """Train an encoder, or go on with a run that was begun with the same settings.

    A run that was stopped goes on from its last checkpoint, bit for bit as if it had
    never stopped. A finished run is only looked at. While training goes on, Ctrl-C
    saves a checkpoint before `KeyboardInterrupt` is raised; the same call goes on then.
    Lines are printed and a progress bar is shown, unless the call is made inside of
    `elmoc.errors.quiet`. Under `torchrun` every process makes the same call.

    The page docs/train.md describes training, and docs/settings.md every setting.

    Args:
        config: all settings. `config.data.corpus` is a corpus directory with vector
            tables [V, E]. An update reads `config.train.streams` (B) times
            `config.train.window` (T) words in each direction.
        out: the run directory to make, or to go on with.
        options: the model that a new run starts from, and the time that the run takes.

    Returns:
        The run, with the path of its model. The layer states of the model are
        [L + 1, n, 2P] for a sentence of n words (`elmoc.ElmoC`).

    Raises:
        InputError: a setting is impossible, the corpus or a table cannot be read, `out`
            holds something else or a run with other settings, or the loss is not
            finite. The message names what is wrong, and what to do.
        KeyboardInterrupt: the run was asked to stop, and has saved (`Stopped`).

    Example:
        config = load_config("pretrain/configs/small.toml", ["data.corpus=corpora/a"])
        run = train_encoder(config, "runs/a", TrainOptions(max_time="2h"))
        elmo = ElmoC.from_pretrained(run.model)
    """
    return start_or_resume(
        config,
        out,
        options,
        resume=RunDirectory(out).config.exists(),
    )


def start_or_resume(
    config: RunConfig, out: Path | str, options: TrainOptions, *, resume: bool
) -> TrainedRun:
    """Start a run, or go on with one; see `train_encoder`.

    Args:
        config: all settings.
        out: the run directory.
        options: of the call.
        resume: whether there has to be a run in `out`, or must not be one.
    """
    run = RunDirectory(out)
    with connect() as processes, ExitStack() as stack:
        # The setting `train.threads` is not for what a notebook computes afterwards.
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        resumed = None
        init_from = options.init_from
        # What is wrong in one process ends all of them with one sentence.
        with processes.raise_together():
            config = config_from_dict(config_to_dict(config), "")
            max_seconds = (
                None if options.max_time is None else parse_duration(options.max_time)
            )
            if processes.is_rank0 and resume:
                run.require_resumable(config, init_from)
                stack.enter_context(run.locked())
                resumed = run.last_checkpoint()
                # A run without a checkpoint starts again, from the same model.
                init_from = run.started_from() if resumed is None else None
            elif processes.is_rank0:
                run.require_new()
        resumed, init_from, max_seconds = processes.broadcast_from_rank0(
            (resumed, init_from, max_seconds)
        )
        with processes.raise_together():
            setup = set_up(
                config,
                init_from,
                processes,
                own_model=run.model if resume else None,
                started_from=None if resumed is None else resumed.started_from,
            )
        # Processes with different settings would not train one model.
        processes.require_equal_settings(
            all_settings(config)
            | setup.data.fingerprints
            | {
                "train.device": setup.execution.device.type,
                "train.precision": setup.execution.precision,
            }
        )
        with processes.raise_together():
            # The directory is made when all that can be wrong has been looked at.
            if processes.is_rank0 and not resume:
                stack.enter_context(run.locked())
                run.start(config, init_from)
            say_what_begins(setup, run, options.max_time, resume=resume)
        state, stopped_by = train(setup, run, resumed=resumed, max_seconds=max_seconds)
        if processes.is_rank0:
            complete_card(run.model, config.card)
        done = (
            f"done: the model is in {run.model}; to train on, start a new run with "
            f"--init-from {run.path}"
        )
        stopped = "stopped after saving: go on by --resume, or by the same call"
        # A terminal that is closed is no error: the run has saved.
        with suppress(OSError):
            say(done if state.progress.is_over else stopped)
    if not state.progress.is_over:
        raise Stopped(stopped_by)
    return TrainedRun(
        path=run.path,
        model=run.model,
        updates=state.update,
        words=state.words,
        evaluation=read_metrics(run.path, "evaluation")[-1]
        if processes.is_rank0
        else {},
    )


def complete_card(path: Path, card: CardConfig) -> None:
    """Give a model the name and the licence of its text that were said after it had
    been exported.
    """
    said = {name: value for name, value in asdict(card).items() if value}
    # The model of a finished run may be elsewhere by now.
    if said and path.exists():
        model = read_model_directory(path, output_layers=False)
        if not said.items() <= model.training.items():
            write_model_directory(path, replace(model, training=model.training | said))


def say_what_begins(
    setup: TrainingSetup, run: RunDirectory, max_time: str | None, *, resume: bool
) -> None:
    """Print the length of a run, and where and how it computes.

    Args:
        setup: of the run.
        run: its directory.
        max_time: its length, unless it is a number of updates.
        resume: whether it goes on; what is wrong with its data was said before.
    """
    data = setup.data
    say(
        f"{run.path}: {data.corpus.train_tokens:,} training {data.corpus.unit}, "
        f"{max_time or f'{setup.updates:,} updates'}, "
        f"{data.updates_per_epoch:,} updates an epoch"
    )
    count = setup.processes.world_size
    say(f"{setup.how}, {count} {'process' if count == 1 else 'processes'}")
    if setup.processes.is_rank0 and not resume and data.unread_text is not None:
        warn(data.unread_text)
