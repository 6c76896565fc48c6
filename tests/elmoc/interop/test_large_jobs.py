"""Large jobs: the programs of the page for `datasets` and Ray, each with two processes."""

import importlib
from pathlib import Path

import pytest
from tests.elmoc.interop.conftest import run_page_programs


@pytest.mark.parametrize(("engine", "printed"), [("datasets", "10\n"), ("ray", "(10,)\n")])
def test_two_processes_of_an_engine(
    engine: str, printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(engine, reason=f"{engine} is not installed: make test-integrations")
    if engine == "ray":
        importlib.import_module("ray").init(num_cpus=2, include_dashboard=False)
    run_page_programs(engine, tmp_path, monkeypatch)
    assert printed in capfd.readouterr().out
