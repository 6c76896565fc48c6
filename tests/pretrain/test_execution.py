"""The device of a run: on a GPU, convolutions are rounded to TF32 in bf16 alone."""

import pytest
import torch
from pretrain.execution import choose_execution


def test_cudnn_takes_tf32_in_bf16_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"device_count": 2, "get_device_capability": (9, 0), "set_device": None}.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, value=value: value)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    allowed = []
    for precision in ("float32", "bf16", "auto"):
        choose_execution(device="cuda:1", precision=precision, fast=True)
        allowed.append(torch.backends.cudnn.allow_tf32)
    assert allowed == [False, True, True]
