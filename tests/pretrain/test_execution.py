"""The device of a run: on a GPU, convolutions are rounded to TF32 in bf16 alone."""

import pytest
import torch
from elmoc.errors import InputError
from pretrain.execution import choose_execution


def test_cudnn_takes_tf32_in_bf16_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"is_available": True, "current_accelerator": torch.device("cuda"), "device_count": 2}
    for name, value in (asked | {"set_device_index": None}).items():
        monkeypatch.setattr(torch.accelerator, name, lambda *_, value=value: value)
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
