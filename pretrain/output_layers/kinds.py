"""The kinds of output layers there are, by the name that configs and model directories have for them."""

from pretrain.output_layers import OutputLayerSettings
from pretrain.output_layers.continuous import ContinuousSettings

OUTPUT_LAYERS: dict[str, type[OutputLayerSettings]] = {settings.kind: settings for settings in (ContinuousSettings,)}
