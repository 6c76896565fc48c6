"""Making a model: from text to a model by one call."""

from collections.abc import Sequence
from pathlib import Path

from elmoc.errors import say
from elmoc.files.writing import locked
from pretrain.recipe.options import RecipeOptions
from pretrain.recipe.plan import Recipe
from pretrain.recipe.steps import run_steps
from pretrain.trained_run import TrainedRun

DEFAULT = RecipeOptions()


def make_model(
    text: Path | str | Sequence[Path | str],
    out: Path | str,
    options: RecipeOptions = DEFAULT,
) -> TrainedRun:
    """Make a model from text, or adapt one to new text (`init_from`).

    A corpus is built, fastText is trained on it (or word vectors are given), two vector
    tables are made, and the encoder is trained. Each step but the training is a process
    of its own. Ctrl-C is passed on to the step that runs, which saves; the same call
    goes on then. Steps that are done are not done again.

    The page docs/train.md describes it.

    Args:
        text: files, .gz files, folders or globs; NAME=PATH names the kind of a text.
            One sentence a line, words split on white space, and a blank line between
            documents; raw text with `RecipeOptions(tokenised="auto")`.
        out: the run directory to make, or to go on with.
        options: see `RecipeOptions`; the defaults suit the text and the machine.

    Returns:
        The run, with the path of its model.

    Raises:
        InputError: an option is impossible, `out` holds something else or was begun
            with other options, or a step failed. The message says what to do.
        KeyboardInterrupt: the call was asked to stop, and has saved.

    Example:
        run = make_model("novels.txt", "runs/novels", RecipeOptions(max_time="20m"))
        elmo = ElmoC.from_pretrained(run.model)
    """
    texts = [text] if isinstance(text, Path | str) else list(text)
    recipe = Recipe(list(map(str, texts)), Path(out), options)
    with locked(recipe.record):
        recipe.begin()
        trained: TrainedRun = run_steps(recipe.steps())
    say(f"give {out} wherever a model is asked for; its card is {out}/model/README.md")
    return trained
