"""Devices and precisions: those that a user names are checked to be there."""

import pytest
import torch

from elmoc import devices
from elmoc.devices import checked_precision
from elmoc.errors import InputError

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


@pytest.mark.parametrize("instructions", ["", "_is_avx512_bf16_supported", "_is_amx_tile_supported"])
def test_a_processor_has_bf16_where_one_of_two_kinds_of_instructions_is_there(
    instructions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda found=name == instructions: found, raising=False)
    assert devices.has_bf16(CPU) == bool(instructions)
    for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"):
        monkeypatch.delattr(torch.cpu, name)
    assert not devices.has_bf16(CPU), "a release of PyTorch that does not say so"
