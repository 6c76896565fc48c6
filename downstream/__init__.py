"""Probes: task models on frozen features, which show what the features are worth.

from downstream import InputOptions, ProbeData, ProbeOptions, run_probe
data = ProbeData(train=["train.conll"], dev=["dev.conll"])
inputs = InputOptions(vectors=["vectors.bin"], model="runs/quickstart/run")
result = run_probe("ner", data, inputs, ProbeOptions(preset="small"))
result.mean["both"] - result.mean["vectors"]  # points of F1 that the encoder adds
"""

import lazy_loader

# Modules are imported when their names are first used, so that commands are quick; the
# names stand in `__init__.pyi`.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
