"""Do commands ask OpenMP's threads to sleep while they wait, without overruling the user?"""

import os

import pytest

from elmoc.process import wait_without_spinning


def test_the_users_choice_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    wait_without_spinning()
    assert os.environ["OMP_WAIT_POLICY"] == "passive"
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    wait_without_spinning()
    assert os.environ["OMP_WAIT_POLICY"] == "active"
