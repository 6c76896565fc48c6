"""Steps: what is finished is skipped, and a step that is stopped ends them."""

from pathlib import Path

import pytest
from pretrain.recipe.steps import Step, run_steps


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


def test_a_step_that_is_stopped_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_steps([Step("one", stop), Step("two", stop)])
    assert "stopped in step 1 of 2" in capsys.readouterr().out
