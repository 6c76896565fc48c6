"""Training on a GPU: it learns what a CPU learns, resumes, and leaves a model that dumps the same features."""

from itertools import islice

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.encoders.bidirectional import DirectionEncoder, EncoderConfig
from elmoc.encoders.fused_recurrence import choose_kernels
from elmoc.encoders.lstm import LstmSizes
from elmoc.encoders.plain_lstm import run_layer
from elmoc.model import ElmoC
from elmoc.word_vectors.table import VectorTable
from pretrain.data.batches import BatchMaker, stream_batches
from pretrain.run.directory import read_metrics
from tests.pretrain.conftest import PARTS, TinyRuns, assert_resumes_exactly
from tests.pretrain.data.reading import windows_of_shards

from elmoc.encoders import DIRECTIONS

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device is here")]
SENTENCES = [["w1", "w2", "w3"], ["w7"], ["w4", "unseen", "w6", "w7", "w8"]]


def test_the_same_run_on_a_gpu_ends_where_it_ends_on_a_cpu(runs: TinyRuns) -> None:
    settings = {"encoder__dropout": 0.0, "train__precision": "float32"}
    cpu = runs.run("cpu", train__device="cpu", **settings)
    gpu = runs.run("gpu", train__device="cuda", **settings)
    for left, right in zip(read_metrics(cpu.path, "evaluation"), read_metrics(gpu.path, "evaluation"), strict=True):
        assert left["cosine"] == pytest.approx(right["cosine"], abs=1e-3)
    here, there = ElmoC.from_pretrained(gpu.path), ElmoC.from_pretrained(gpu.path, device="cuda")
    torch.testing.assert_close(here.embed_batch(SENTENCES), there.embed_batch(SENTENCES), atol=1e-4, rtol=1e-4)


def test_a_resumed_gpu_run_ends_as_the_run_did(runs: TinyRuns) -> None:
    settings = {"train__device": "cuda", "encoder__dropout": 0.3, "log__checkpoint_updates": 6}
    runs.run("run", **settings)
    assert_resumes_exactly(runs, "run", 6, **settings)


@pytest.mark.parametrize("kind", PARTS)
def test_every_kind_does_on_a_gpu_what_it_does_on_a_cpu(runs: TinyRuns, kind: str, tiny_subwords: Corpus) -> None:
    if kind == "subwords":
        runs.corpus = tiny_subwords.path
    settings = {"encoder__dropout": 0.0, "log__every_updates": 1, "train__updates": 6, **PARTS[kind]}
    losses = {
        name: [line["loss"] for line in read_metrics(runs.run(name, **settings, **options).path, "train")]
        for name, options in {
            "cpu": {"train__device": "cpu"},
            "gpu": {"train__device": "cuda"},
            "bf16": {"train__device": "cuda", "train__precision": "bf16"},
        }.items()
    }
    assert losses["gpu"] == pytest.approx(losses["cpu"], rel=1e-3)
    assert losses["bf16"][:4] == pytest.approx(losses["cpu"][:4], rel=0.05)
    assert losses["bf16"] == pytest.approx(losses["cpu"], rel=0.1)  # large steps add up: 0.08 was seen after the fourth
    assert ElmoC.from_pretrained(runs.folder / "gpu", device="cuda").embed(SENTENCES[0]).isfinite().all()


@pytest.mark.parametrize(("inputs", "targets"), [("raw", "raw"), ("half", "other")])
def test_batches_reach_a_busy_gpu_whole(tiny_corpus: Corpus, inputs: str, targets: str) -> None:
    device = torch.device("cuda")
    tables = [VectorTable(tiny_corpus, name) for name in (inputs, targets)]
    windows = list(islice(windows_of_shards(tiny_corpus, 4, 5), 60))
    batches = stream_batches(iter(windows), BatchMaker(*tables), device)
    read = []
    for number, batch in enumerate(batches):
        if number % 7 < 4:
            torch.cuda._sleep(20_000_000)  # the computation is behind, so that buffers are asked for before it is done
        read.append([(batch.inputs(direction), batch.targets(direction).vectors) for direction in DIRECTIONS])
    for window, directions in zip(windows, read, strict=True):
        for ids, (some, others) in zip(window.ids.values(), directions, strict=True):
            for vectors, table, own in ((some, tables[0], ids[:, :-1]), (others, tables[1], ids[:, 1:])):
                np.testing.assert_array_equal(vectors.cpu().numpy(), np.asarray(table.rows, dtype=np.float32)[own])


def test_streaming_takes_no_more_memory_as_it_goes(tiny_corpus: Corpus) -> None:
    device, table = torch.device("cuda"), VectorTable(tiny_corpus, "raw")
    windows = windows_of_shards(tiny_corpus, 4, 5)
    before = torch.cuda.memory_allocated()
    batches = stream_batches(windows, BatchMaker(table, table), device)
    used = [torch.cuda.memory_allocated() - before for _ in islice(batches, 200)]
    batches.close()
    assert 0 < max(used[100:]) <= 1.2 * max(used[:100]), "windows have more or fewer distinct words"
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("number", [0, 1])
def test_the_fused_recurrence_is_the_plain_one_on_a_gpu(number: int) -> None:
    if number >= torch.cuda.device_count():
        pytest.skip("there is one GPU")
    device = torch.device("cuda", number)  # whichever is the current one
    assert choose_kernels("cuda", torch.float32, torch.float32).description == "Triton"
    torch.manual_seed(0)
    sizes = LstmSizes(projection_size=20, cell_size=300, dropout=0.3)
    plain, fused = (
        DirectionEncoder(EncoderConfig(sizes, word_vector_size=6).build_input_layer(), sizes.build(fast=fast)).to(
            device
        )
        for fast in (False, True)
    )
    fused.load_state_dict(plain.state_dict())
    vectors, masks = torch.randn(4, 5, 6, device=device), plain.encoder.draw_dropout_masks(4, 5)
    tops = []
    for encoder in (plain, fused):
        tops.append(encoder(vectors, dropout_masks=masks).layer_states[-1])
        tops[-1].square().sum().backward()
    torch.testing.assert_close(tops[1], tops[0], atol=1e-4, rtol=1e-4)
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(fused.get_parameter(name).grad, parameter.grad, atol=1e-3, rtol=1e-3)


def test_the_plain_lstm_is_in_float32_on_a_gpu_under_autocast() -> None:
    torch.manual_seed(0)
    layer = torch.nn.LSTM(8, 8, batch_first=True, device="cuda")
    inputs, state = torch.randn(3, 5, 8, device="cuda"), tuple(torch.randn(2, 1, 3, 8, device="cuda"))
    gradients = []
    for enabled in (False, True):
        with torch.autocast("cuda", torch.bfloat16, enabled=enabled):
            outputs, after = run_layer(layer, inputs, state)
        assert {each.dtype for each in (outputs, *after)} == {torch.float32}
        gradients.append(torch.autograd.grad(1e-9 * outputs.sum(), [*layer.parameters()]))  # 0 in float16
    torch.testing.assert_close(gradients[1], gradients[0], atol=0, rtol=1e-4)
