"""Training a contextual encoder: from a corpus directory to a model directory.

from pretrain import TrainOptions, load_config, train_encoder
config = load_config("pretrain/configs/small.toml", ["data.corpus=corpora/mine"])
run = train_encoder(config, "runs/mine", TrainOptions(max_time="2h"))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pretrain.config import CONFIGS, RunConfig, load_config
    from pretrain.options import TrainOptions
    from pretrain.recipe.make import make_model
    from pretrain.recipe.options import RecipeOptions
    from pretrain.trained_run import TrainedRun, train_encoder

_MODULES = {
    "CONFIGS": "pretrain.config",
    "RecipeOptions": "pretrain.recipe.options",
    "RunConfig": "pretrain.config",
    "TrainOptions": "pretrain.options",
    "TrainedRun": "pretrain.trained_run",
    "load_config": "pretrain.config",
    "make_model": "pretrain.recipe.make",
    "train_encoder": "pretrain.trained_run",
}

__all__ = [
    "CONFIGS",
    "RecipeOptions",
    "RunConfig",
    "TrainOptions",
    "TrainedRun",
    "load_config",
    "make_model",
    "train_encoder",
]


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used, so that commands
    which import the package stay quick.
    """
    if name not in _MODULES:
        raise AttributeError(f"module 'pretrain' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
