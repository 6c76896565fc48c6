"""A suite of tiny probes, whose jobs are run in this process."""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import downstream.__main__
import msgspec
import pytest
from downstream.probing import ProbeCommand
from elmoc.errors import run_command
from elmoc.model_directory import write_model_directory
from elmoc.settings import convert
from tests.downstream.conftest import columns
from tests.tiny import tiny_model

from downstream import probing
from downstream.suite import jobs

SUITE = """
vectors = "random:1:6"
seeds = 2
[[probe]]
task = "ner"
name = "ten sentences"
train = "ten.conll"
dev = "ten.conll"
options = { epochs = 1, hidden_size = 6, layers = 1, batch_size = 5 }
vectors = { dropout = 0.5 }
[probe.quick]
seeds = 1
options = { train_fraction = 0.5 }
[[probe]]
task = "ner"
name = "again"
train = "ten.conll"
dev = "ten.conll"
seeds = 1
options = { epochs = 1, hidden_size = 5, layers = 1, batch_size = 5 }
"""


class InProcess:
    """Stands for the process of `start_job`: the probe is trained here, when it is started."""

    ran: list[str]
    fails: Callable[[str], bool]

    def __init__(self, module: str, options: Any, *, stdout: Any, **_: Any) -> None:
        assert module == "downstream"
        name = Path(stdout.name).stem
        self.returncode: int | None = None
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
            if InProcess.fails(name):
                print("error: the disk is made of paper")
                self.returncode = 1
            else:
                command = convert(msgspec.to_builtins(options, enc_hook=str), ProbeCommand, where="the options")
                self.returncode = run_command(lambda: probing.run(command))
        stdout.write(out.getvalue().encode())
        InProcess.ran.append(name)

    def poll(self) -> int | None:
        return self.returncode


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run `python -m downstream suite` in the folder; returns the names of the jobs that were run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(jobs, "start_job", InProcess)
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0)
    Path("ten.conll").write_text(columns())
    Path("suite.toml").write_text(SUITE)
    for seed, name in enumerate(("first", "second")):
        model = tiny_model()
        model.training["words"] = 1000 * (seed + 1)
        for parameter in model.encoder.parameters():
            parameter.data += 0.01 * seed
        write_model_directory(tmp_path / name, model)

    def run(*options: str, status: int = 0) -> list[str]:
        InProcess.ran = []
        assert downstream.__main__.main(["suite", "suite.toml", *options]) == status
        return sorted(InProcess.ran)

    InProcess.fails = lambda name: False
    return run


Run = Callable[..., list[str]]


def report(path: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(path, "suite.json").read_text())
    return content
