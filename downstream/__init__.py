"""Probes: task models on frozen features, which show what the features are worth.

from downstream import InputOptions, ProbeData, ProbeOptions, run_probe
data = ProbeData(train=["train.conll"], dev=["dev.conll"])
inputs = InputOptions(vectors=["vectors.bin"], model="runs/quickstart/run")
result = run_probe("ner", data, inputs, ProbeOptions(preset="small"))
result.mean["both"] - result.mean["vectors"]  # points of F1 that the encoder adds
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from downstream.inputs.options import InputOptions
    from downstream.probe.options import ProbeData, ProbeOptions
    from downstream.probing import ProbeResult, run_probe
    from downstream.suite.plan import read_suite
    from downstream.suite.running import SuiteOptions, SuiteResult, run_suite

__all__ = [
    "InputOptions",
    "ProbeData",
    "ProbeOptions",
    "ProbeResult",
    "SuiteOptions",
    "SuiteResult",
    "read_suite",
    "run_probe",
    "run_suite",
]

_MODULES = {
    "InputOptions": "downstream.inputs.options",
    "ProbeData": "downstream.probe.options",
    "ProbeOptions": "downstream.probe.options",
    "ProbeResult": "downstream.probing",
    "SuiteOptions": "downstream.suite.running",
    "SuiteResult": "downstream.suite.running",
    "read_suite": "downstream.suite.plan",
    "run_probe": "downstream.probing",
    "run_suite": "downstream.suite.running",
}


def __getattr__(name: str) -> Any:
    """Import a public name's module when the name is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module 'downstream' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
