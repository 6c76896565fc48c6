"""The command `python -m pretrain.word_accuracy RUN`: how often a model that reads subwords finds whole words.

What training prints of such a model is of units. Here the candidates are the most frequent words of the corpus of
words, and the words to find are those that other models of that corpus are scored by, so that all compare.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from elmoc.corpus import Corpus
from elmoc.errors import InputError, run_command
from elmoc.files.records import write_json
from elmoc.model_directory import ADVICE, ModelDirectory, read_model_directory
from elmoc.progress import progress_bar
from elmoc.word_vectors.subwords import StoredSubwords, Subwords
from pretrain.config import TrainConfig
from pretrain.data.windows import ANYWHERE
from pretrain.output_layers.softmax import SoftmaxOutput
from pretrain.run.directory import WORD_ACCURACY, RunDirectory
from pretrain.setup import TrainingSetup, open_setup
from pretrain.word_accuracy.held_out import HeldOutWords, word_metrics
from pretrain.word_accuracy.ranks import UnitModel


def measure_word_accuracy(
    path: Path | str,
    *,
    units: Path | str | None = None,
    corpus: Path | str | None = None,
    words: int | None = None,
    candidates: int | None = None,
) -> dict[str, float]:
    """Measure the exported model of a run, and write its metrics into the run directory.

    Args:
        path: of the run directory.
        units: the run's own corpus, of subwords; None: where it was when the run was started.
        corpus: the corpus of words that the run's was made from; None: where it was then.
        words: how many held-out words to find; None: as many as an evaluation of the run reads.
        candidates: the most frequent types among which they are; None: as many as the run's config says.

    Returns:
        The metrics; see `word_metrics`. The file has the updates of the model beside them, and what was asked for.

    Raises:
        InputError: the run's model reads no subwords, has no softmax over all of them, or carries no state; the corpus
            of subwords has others than the model.
    """
    run = RunDirectory(path)
    run.require_resumable()
    config = run.read_config()
    config = replace(config, train=here(config.train))
    if units is not None:
        config = replace(config, data=replace(config.data, corpus=str(units)))
    model = read_model_directory(path, fast=config.train.recurrence == "fused")
    stored = model.read_stored_vectors()
    if not isinstance(stored, StoredSubwords):
        raise InputError(f"{path} reads words, so that its evaluations are of words already (see metrics.jsonl)")
    setup = open_setup(config)
    if setup.data.corpus.lexicon != list(stored.units):
        raise InputError(f"{config.data.corpus} has other subwords than the model of {path}: --units names its corpus")
    of_words = Corpus(setup.data.corpus.record.settings["words"] if corpus is None else corpus)
    of_words.require_words()
    wanted = config.evaluation.words if words is None else words
    most = config.evaluation.candidates if candidates is None else candidates
    held_out = HeldOutWords.of(replace(setup.data, corpus=of_words, cut=ANYWHERE), wanted)
    total = sum(ids[:, 1:].size for text in held_out.ids.values() for ids in text.values())
    with progress_bar(total=total, unit=" words", unit_scale=True, desc="words") as bar:
        values = word_metrics(
            unit_models(Path(path), setup, model, stored.vectors),
            Subwords(stored.units, stored.merges),
            held_out,
            candidates=most,
            progress=bar.update,
        )
    measured = {"updates": model.training["updates"], "words": wanted, "candidates": most}
    write_json(run.path / WORD_ACCURACY, measured | values)
    return values


def here(train: TrainConfig) -> TrainConfig:
    """How a run computes, as far as this machine can: on a GPU and in bf16 where it has them."""
    return replace(
        train,
        device="cpu" if train.device == "cpu" else "auto",
        precision="fp32" if train.precision == "fp32" else "auto",
        cuda_graph=False,
    )


def unit_models(path: Path, setup: TrainingSetup, model: ModelDirectory, vectors: Tensor) -> dict[str, UnitModel]:
    """The language model of each direction of a run's exported model, which reads these vectors of units [C, E]."""
    if not setup.config.encoder.carries_state:
        raise InputError(
            f"{path} has an encoder ({setup.config.encoder.kind}) that carries no state, and words are looked for unit "
            "by unit, with those that do (encoder.kind=lstm or plain_lstm)"
        )
    if model.output_layer.weights is None:
        raise InputError(f"{model.path} was kept without its output layer (heads.safetensors): {ADVICE}")
    device = setup.execution.device
    setup.output_layers.load_state_dict(model.output_layer.weights, assign=True)
    setup.output_layers.to(device).eval()
    encoder = model.encoder.to(device)
    models = {}
    for direction in encoder.directions:
        layer = setup.output_layers.direction(direction)
        if not isinstance(layer, SoftmaxOutput) or layer.types < len(vectors):
            raise InputError(
                f"{path} has no softmax over all units, so that words have no probability: its output_layer.kind is "
                f"{setup.config.output_layer.kind}"
            )
        models[direction] = UnitModel(encoder.direction(direction), layer, vectors.to(device), setup.execution)
    return models


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.word_accuracy",
        description="How often a model that reads subwords finds a whole held-out word among the most frequent words, "
        f"as models of words are scored. Writes {WORD_ACCURACY} into the run directory.",
    )
    parser.add_argument("run", type=Path, metavar="RUN", help="run directory of a model that reads subwords")
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        help="the corpus of words (default: where it was when the units were made)",
    )
    parser.add_argument(
        "--units",
        type=Path,
        metavar="DIR",
        help="the corpus of subwords that the run was trained on (default: where it was then)",
    )
    parser.add_argument("--words", type=int, metavar="N", help="held-out words to find (default: evaluation.words)")
    parser.add_argument(
        "--candidates", type=int, metavar="N", help="most frequent words among which (default: evaluation.candidates)"
    )
    arguments = parser.parse_args(argv)
    return run_command(lambda: print_word_accuracy(arguments))


def print_word_accuracy(arguments: argparse.Namespace) -> None:
    """Measure as the parsed command line says, and print what was found."""
    for name in ("words", "candidates"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise InputError(f"--{name} must be at least 1, not {getattr(arguments, name)}")
    values = measure_word_accuracy(
        arguments.run,
        units=arguments.units,
        corpus=arguments.corpus,
        words=arguments.words,
        candidates=arguments.candidates,
    )
    shown = [
        f"{label} {values[metric]:.4f} ({values[f'constant_{metric}']:.4f})"
        for label, metric in (("accuracy@1", "accuracy_at_1"), ("accuracy@10", "accuracy_at_10"))
    ]
    print(f"whole words, held out (by frequency): {', '.join(shown)}, outside the candidates {values['outside']:.1%}")
    print(f"written to {arguments.run / WORD_ACCURACY}")


if __name__ == "__main__":
    sys.exit(main())
