"""Training a contextual encoder: from a corpus directory to a model directory.

from pretrain import TrainOptions, load_config, train_encoder
config = load_config("pretrain/configs/small.toml", ["data.corpus=corpora/mine"])
run = train_encoder(config, "runs/mine", TrainOptions(max_time="2h"))
"""

import lazy_loader

# Modules are imported when their names are first used, so that commands are quick; the
# names stand in `__init__.pyi`.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
