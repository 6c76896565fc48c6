"""Devices and precisions: those that a user names are checked to be there."""

import pytest
import torch
from elmoc.devices import checked_precision
from elmoc.errors import InputError

from elmoc import devices

CPU = torch.device("cpu")


@pytest.mark.parametrize("hardware", [True, False])
def test_auto_takes_bf16_where_the_hardware_has_it(hardware: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "has_bf16", lambda device: hardware)
    assert checked_precision("auto", CPU) == (torch.bfloat16 if hardware else torch.float32)
    assert checked_precision("float32", CPU) == torch.float32
    if hardware:
        assert checked_precision("bf16", CPU) == torch.bfloat16
    else:
        with pytest.raises(InputError, match="bf16"):
            checked_precision("bf16", CPU)
