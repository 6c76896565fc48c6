"""Training a contextual encoder: from a corpus directory to a model directory.

from pretrain import TrainOptions, load_config, train_encoder
config = load_config("pretrain/configs/small.toml", ["data.corpus=corpora/mine"])
run = train_encoder(config, "runs/mine", TrainOptions(max_time="2h"))
"""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from pretrain.config import CONFIGS, RunConfig, load_config
    from pretrain.options import TrainOptions
    from pretrain.recipe.make import make_model
    from pretrain.recipe.options import RecipeOptions
    from pretrain.trained_run import TrainedRun, train_encoder

# Modules are imported when their names are first used, so that commands are quick.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "config": ["CONFIGS", "RunConfig", "load_config"],
        "options": ["TrainOptions"],
        "recipe.make": ["make_model"],
        "recipe.options": ["RecipeOptions"],
        "trained_run": ["TrainedRun", "train_encoder"],
    },
)
