"""Steps: what is finished is skipped, and a command that fails ends them."""

from pathlib import Path

import pytest
from elmoc.errors import InputError
from pretrain.recipe.steps import Step, run_module, run_steps


def test_what_is_finished_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there").write_text("")
    ran: list[int] = []
    steps = [
        Step("one", lambda: ran.append(1), tmp_path / "there"),
        Step("two", lambda: ran.append(2), tmp_path / "missing"),
        Step("three", lambda: ran.append(3)),
    ]
    run_steps(steps)
    assert ran == [2, 3]
    assert "step 1 of 3: one: done before" in capsys.readouterr().out


def test_a_command_that_fails_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fails.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="the command above ended with status 3"):
        run_module(["fails"])
