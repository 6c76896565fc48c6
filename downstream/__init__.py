"""Probes: task models on frozen features, which show what the features are worth.

from downstream import InputOptions, ProbeData, ProbeOptions, run_probe
data = ProbeData(train=["train.conll"], dev=["dev.conll"])
inputs = InputOptions(vectors=["vectors.bin"], model="runs/quickstart/run")
result = run_probe("ner", data, inputs, ProbeOptions(preset="small"))
result.mean["both"] - result.mean["vectors"]  # points of F1 that the encoder adds
"""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from downstream.inputs.options import InputOptions
    from downstream.probe.options import ProbeData, ProbeOptions
    from downstream.probing import ProbeResult, run_probe
    from downstream.suite.plan import read_suite
    from downstream.suite.running import SuiteOptions, SuiteResult, run_suite

# Modules are imported when their names are first used, so that commands are quick.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "inputs.options": ["InputOptions"],
        "probe.options": ["ProbeData", "ProbeOptions"],
        "probing": ["ProbeResult", "run_probe"],
        "suite.plan": ["read_suite"],
        "suite.running": ["SuiteOptions", "SuiteResult", "run_suite"],
    },
)
