"""The device of a run: on a GPU, convolutions are rounded to TF32 in bf16 alone."""

import pytest
import torch
from elmoc.errors import InputError
from pretrain.execution import choose_execution


def test_cudnn_takes_tf32_in_bf16_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.accelerator, "set_device_index", lambda _: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    allowed = []
    for precision in ("float32", "bf16", "auto"):
        choose_execution(device="cuda:1", precision=precision)
        allowed.append(torch.backends.cudnn.allow_tf32)
    assert allowed == [False, True, True]


def test_mistakes_name_the_key() -> None:
    with pytest.raises(InputError, match=r"train\.device"):
        choose_execution(device="tpu", precision="auto")
