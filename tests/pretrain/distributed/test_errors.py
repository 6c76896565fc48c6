"""Errors of several processes: a lost peer is told from what fails in this process alone."""

import pytest
import torch

from pretrain.distributed.errors import ProcessLost, collective_errors


@pytest.mark.parametrize(
    "own",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 12 GiB"),
        RuntimeError("CUDA error: device-side assert triggered\nCUDA kernel errors might be reported at another call"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=["memory of the GPU", "GPU", "memory"],
)
def test_what_fails_here_is_no_lost_process(own: RuntimeError) -> None:
    with pytest.raises(RuntimeError) as caught, collective_errors():
        raise own
    assert caught.value is own


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:16780. "
            "This is typically caused by a crash",
            "Connection closed by peer [127.0.0.1]:16780",
        ),
        ("NCCL error: remote process exited or there was a network error", "NCCL error: remote process exited or "),
    ],
)
def test_a_lost_process_is_told_in_a_sentence(said: str, reason: str) -> None:
    with pytest.raises(ProcessLost) as caught, collective_errors():
        raise torch.distributed.DistBackendError(said)
    assert f"another process of this run ended or was lost ({reason}" in str(caught.value)
