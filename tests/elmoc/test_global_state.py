"""Global state: what others have set changes no number, and nothing is left changed."""

import os
import random
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.plain_lstm import PlainLstmSizes
from elmoc.encoders.transformer import TransformerSizes
from elmoc.features.dataset import pad_states
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.model_directory import ModelDirectory, write_model_directory
from elmoc.word_vectors.subwords import SubwordVectors
from tests.elmoc.interop.conftest import DATA
from tests.tiny import tiny_model
from torch import Tensor

from elmoc import ElmoC, ElmoEmbedding
from elmoc.encoders import EncoderSizes

SENTENCES = [["The", "cat", "sat", "."], ["Stop", "!"], []]


@contextmanager
def changed(change: Callable[[Any], object], value: Any, before: Any) -> Iterator[None]:
    change(value)
    try:
        yield
    finally:
        change(before)


@contextmanager
def warnings_as_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def default_type(dtype: torch.dtype) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: changed(torch.set_default_dtype, dtype, torch.float32)


OTHERS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "float64": default_type(torch.float64),
    "bfloat16": default_type(torch.bfloat16),
    "default device": lambda: changed(torch.set_default_device, "meta", None),
    "device": lambda: torch.device("meta"),
    "no gradients": torch.no_grad,
    "inference": torch.inference_mode,
    "deterministic": lambda: changed(torch.use_deterministic_algorithms, True, False),
    "numpy's errors": lambda: np.errstate(all="raise"),
    "warnings": warnings_as_errors,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


def with_encoder(sizes: EncoderSizes) -> ModelDirectory:
    encoder = BidirectionalEncoder(EncoderConfig(sizes, 6), fast=True)
    return replace(tiny_model(), encoder=encoder.eval())


MODELS: dict[str, Callable[[], ModelDirectory]] = {
    "LSTM": tiny_model,
    "plain LSTM": lambda: with_encoder(PlainLstmSizes(projection_size=8, layers=2)),
    "Transformer": lambda: with_encoder(TransformerSizes(projection_size=8, layers=2, heads=2, feedforward_size=16)),
    "ELMo": lambda: read_original_elmo(*(DATA / "allennlp" / name for name in ("options.json", "lm_weights.hdf5"))),
}


def state() -> dict[str, Any]:
    """Global state of this process, as far as anybody has changed it by accident."""
    return {
        "random numbers": (torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state())),
        "defaults": (torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled(), np.geterr()),
        "threads": (torch.get_num_threads(), torch.get_float32_matmul_precision()),
        "environment": dict(os.environ),
        "warnings": list(warnings.filters),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)],
    }


def frozen(path: Path) -> tuple[ElmoC, list[Tensor]]:
    elmo = ElmoC.from_pretrained(path)
    states = [*elmo.embed_batch(SENTENCES), *elmo.embed_sentences(SENTENCES)]
    if elmo.encoder.config.sizes.carries_state:
        states += elmo.embed_documents([SENTENCES])[0]
    return elmo, [*states, *ElmoEmbedding(elmo).states(SENTENCES), *pad_states(states)]


def trained(elmo: ElmoC) -> list[Tensor]:
    module = ElmoEmbedding(elmo, dropout=0.0, requires_grad=True, mix_weights=[0.3] * elmo.layers).eval()
    [representation] = module(SENTENCES).representations
    representation.square().sum().backward()
    return [representation, *(each.grad for each in module.parameters() if each.grad is not None)]


def same(found: list[Tensor], expected: list[Tensor]) -> bool:
    pairs = zip(found, expected, strict=True)
    return all(one.dtype == other.dtype and torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("model", MODELS)
def test_what_others_have_set_changes_no_number_and_nothing_is_left_changed(model: str, tmp_path: Path) -> None:
    write_model_directory(tmp_path / "model", MODELS[model]())
    elmo, expected = frozen(tmp_path / "model")
    gradients = trained(elmo)
    for name, other in OTHERS.items():
        with other():
            before = state()
            elmo, found = frozen(tmp_path / "model")
            assert state() == before, name
            assert same(found, expected), name
            if name not in ("no gradients", "inference", "autocast"):
                assert same(trained(elmo), gradients), name
        assert same(trained(elmo), gradients), f"opened under {name}"


def test_subwords_leave_the_environment_as_it_is(tiny_subwords: Any) -> None:
    from elmoc.word_vectors.subwords import Subwords

    before = dict(os.environ)
    subwords = Subwords.of_corpus(tiny_subwords)
    SubwordVectors(torch.zeros(len(subwords.units), 3), subwords).lookup(subwords.units[:2])
    assert dict(os.environ) == before
