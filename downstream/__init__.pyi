from .inputs.options import InputOptions
from .probe.options import ProbeData, ProbeOptions
from .probing import ProbeResult, run_probe
from .suite.plan import read_suite
from .suite.running import SuiteOptions, SuiteResult, run_suite

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
