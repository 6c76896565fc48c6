from .config import CONFIGS, RunConfig, load_config
from .options import TrainOptions
from .recipe.make import make_model
from .recipe.options import RecipeOptions
from .trained_run import TrainedRun, train_encoder

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
