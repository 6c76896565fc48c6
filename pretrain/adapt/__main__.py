"""The command `python -m pretrain.adapt MODEL TEXT… OUT`: a trained model goes on with new text.

General text is written (a sample of what the model was trained on); commands of the project build a corpus of both,
make its vector tables as the model's were made, and train the encoder on; and what that did to held-out text of both
kinds is printed. `OUT` is then a run directory: its `model/` is the adapted model.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmoc.errors import run_command
from pretrain.recipe.options import add_options, require_text, shared_values


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain.adapt",
        description="Go on with a trained model on new text, without forgetting the old. Safe to interrupt; goes on by "
        "the same command.",
    )
    parser.add_argument("model", help="the model or run directory to go on from")
    add_options(parser, text="new text")
    parser.add_argument(
        "--general",
        metavar="CORPUS",
        help="corpus directory of general text (default: the one that the model was trained on, where that is there; "
        "'none' for none)",
    )
    parser.add_argument(
        "--general-share", type=float, default=0.3, metavar="X", help="of what is read, general text (%(default)s)"
    )
    parser.add_argument("--epochs", type=float, default=2.0, metavar="N", help="readings of the new text (%(default)s)")
    parser.add_argument("--learning-rate", type=float, metavar="X", help="default: half of that of the training before")
    parser.add_argument(
        "--vectors", metavar="FILE", help="the model's word vectors, where they are not where they were"
    )
    parser.add_argument(
        "--keep-targets",
        action="store_true",
        help="process target vectors with the numbers of the training before (default: fitted to the text, which found "
        "more of its words)",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    arguments = parser().parse_args(argv)
    return run_command(lambda: adapt(arguments))


def adapt(arguments: argparse.Namespace) -> None:
    """Adapt a model as the parsed command line says.

    Raises `InputError` where something it is given cannot be used, and where a step fails.
    """
    from elmoc.model_directory import read_model_directory
    from pretrain.adapt.plan import Adaptation
    from pretrain.adapt.report import report
    from pretrain.recipe.begun import begun, require_no_file
    from pretrain.recipe.steps import run_steps

    require_no_file(arguments.output)
    model = read_model_directory(arguments.model)
    given = sampled_corpus(arguments.output) if arguments.general is None else arguments.general
    adaptation = Adaptation(
        model=model,
        path=Path(arguments.model),
        general=general_corpus(given, model.training),
        epochs=arguments.epochs,
        general_share=arguments.general_share,
        learning_rate=arguments.learning_rate,
        vectors=arguments.vectors,
        keep_targets=arguments.keep_targets,
        **shared_values(arguments),
    )
    require_text(arguments, adaptation.corpus)
    with begun(arguments.output, "python -m pretrain.adapt", adaptation.options):
        for warning in adaptation.warnings():
            print(f"warning: {warning}", file=sys.stderr)
        run_steps(adaptation.steps())
        report(arguments.output)


def sampled_corpus(output: Path) -> str | None:
    """The corpus whose sample of general text is in a run directory that was begun; None where there is no sample.

    It may be gone or another by now: nothing more is read of it.
    """
    from pretrain.adapt.plan import GENERAL_HELD_OUT
    from pretrain.recipe.begun import recorded

    sampled = recorded(output).get("general") if (output / GENERAL_HELD_OUT).exists() else None
    return sampled if isinstance(sampled, str) else None


def general_corpus(given: str | None, training: Mapping[str, Any]) -> str | None:
    """The corpus directory that general text is taken from: the one that is `given`, else that of the model's training.

    None where there is none: the latter is not known, not there any more or another by now, or the two runs of a joined
    model had others; unless it is not asked for, a line says which.
    """
    from elmoc.corpus import Corpus
    from pretrain.adapt.record import agreed, records_of

    if given is not None:
        return None if given == "none" else given
    corpora = {
        name: {each: record[each] for each in ("corpus_tokens",) if each in record}
        | ({"corpus": os.path.realpath(record["corpus"])} if isinstance(record.get("corpus"), str) else {})
        for name, record in records_of(training).items()
    }
    alike, differing = agreed(corpora)
    recorded = alike.get("corpus")
    if differing:
        said = "; ".join(f"{name}: {each}" for name, each in differing.items())
        why = f"the model's directions were trained on different corpora ({said})"
    elif not isinstance(recorded, str):
        why = "the model does not say on which corpus it was trained"
    elif not (Path(recorded) / "corpus.json").is_file():
        why = f"the corpus that the model was trained on is not there any more ({recorded})"
    elif (tokens := Corpus(recorded).train_tokens) != alike.get("corpus_tokens"):
        trained_on = alike.get("corpus_tokens", "a number not known")
        why = f"{recorded} has {tokens} tokens, and had {trained_on} when the model was trained on it"
    else:
        print(f"general text is taken from {recorded}, on which the model was trained")
        return recorded
    print(f"no general text is taken: {why}")
    return None


if __name__ == "__main__":
    sys.exit(main())
