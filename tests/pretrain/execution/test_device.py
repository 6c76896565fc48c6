"""The device of a run: one that is none is named together with its setting."""

import pytest

from elmoc.errors import InputError
from pretrain.execution.device import choose_execution


@pytest.mark.parametrize("device", ["abacus", "cpu:1", "cuda:999"])
def test_a_device_that_cannot_be_used_is_named_with_its_setting(device: str) -> None:
    with pytest.raises(InputError, match=rf"^train\.device: '?{device}'? is not "):
        choose_execution(device=device, precision="fp32", fast=True)
