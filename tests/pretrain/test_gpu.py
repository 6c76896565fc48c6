"""Does training on a GPU learn what it learns on a CPU, resume, and leave a model that dumps the same features?"""

import pytest
import torch

from elmoc.model import load_model
from pretrain.run_directory import read_metrics
from tests.pretrain.conftest import TinyRuns

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is here"),
]
SENTENCES = [["w1", "w2", "w3"], ["w7"], ["w4", "unseen", "w6", "w7", "w8"]]


def test_the_same_run_on_a_gpu_ends_where_it_ends_on_a_cpu(runs: TinyRuns) -> None:
    settings = {"encoder__dropout": 0.0, "train__precision": "fp32"}
    cpu = runs.run("cpu", train__device="cpu", **settings)
    gpu = runs.run("gpu", train__device="cuda", **settings)
    for left, right in zip(read_metrics(cpu.path, "evaluation"), read_metrics(gpu.path, "evaluation"), strict=True):
        assert left["cosine"] == pytest.approx(right["cosine"], abs=1e-3)
    here, there = load_model(gpu.path), load_model(gpu.path, device="cuda")
    for left, right in zip(here.layer_states(SENTENCES), there.layer_states(SENTENCES), strict=True):
        torch.testing.assert_close(left, right, atol=1e-4, rtol=1e-4)


def test_a_gpu_run_is_resumed_and_also_on_the_cpu(runs: TinyRuns) -> None:
    run = runs.run("run", train__device="cuda")
    for device in ("cuda", "cpu"):
        for path in run.checkpoint_paths()[1:]:
            path.unlink()
        runs.run("run", "--resume", train__device=device)


def test_bf16_on_a_gpu(runs: TinyRuns) -> None:
    run = runs.run("run", train__device="cuda", train__precision="bf16")
    assert load_model(run.path).encoder.forward_lm.input_projection.weight.dtype == torch.float32
