"""Global state: what others have set changes no number, and nothing is left changed."""

import os
import random
import signal
import warnings
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.encoders.bidirectional import BidirectionalEncoder, EncoderConfig
from elmoc.encoders.plain_lstm import PlainLstmSizes
from elmoc.encoders.transformer import TransformerSizes
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.subwords import Subwords
from tests.elmoc.interop.conftest import DATA
from tests.tiny import tiny_model
from torch import Tensor

from elmoc import ElmoC, ElmoEmbedding
from elmoc.encoders import EncoderSizes

SENTENCES = [["The", "cat", "sat", "."], ["Stop", "!"], []]
MODELS = {
    "LSTM": tiny_model(),
    "plain LSTM": PlainLstmSizes(projection_size=8, layers=2),
    "Transformer": TransformerSizes(projection_size=8, layers=2, heads=2, feedforward_size=16),
    "ELMo": read_original_elmo(DATA / "allennlp/options.json", DATA / "allennlp/lm_weights.hdf5"),
}
# Contexts, and functions with what they set and set back.
OTHERS: dict[str, Any] = {
    "float64": (torch.set_default_dtype, torch.float64, torch.float32),
    "bfloat16": (torch.set_default_dtype, torch.bfloat16, torch.float32),
    "default device": (torch.set_default_device, "meta", None),
    "deterministic": (torch.use_deterministic_algorithms, True, False),
    "numpy's errors": (lambda each: np.seterr(**each), {"all": "raise"}, np.geterr()),
    "warnings": (warnings.simplefilter, "error", "default"),
    "device": torch.device("meta"),
    "no gradients": torch.no_grad(),
    "inference": torch.inference_mode(),
    "autocast": torch.autocast("cpu", torch.bfloat16),
}


def state() -> list[Any]:
    """Global state of this process, as far as anybody has changed it by accident."""
    return [
        *(torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state()), dict(os.environ)),
        *(torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled(), torch.get_num_threads()),
        *(np.geterr(), list(warnings.filters), [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]),
    ]


def frozen(path: Path) -> tuple[ElmoC, list[Tensor]]:
    elmo = ElmoC.from_pretrained(path)
    texts = [torch.from_numpy(elmo.embed_texts(["The cat sat. Stop!", ""], pooling=each)) for each in ("mean", "max")]
    texts += [each.states for each in elmo.embed_texts(["The cat sat.", ""], pooling=None)]
    return elmo, [*texts, *elmo.embed_batch(SENTENCES), *ElmoEmbedding(elmo).states(SENTENCES)]


def trained(elmo: ElmoC) -> list[Tensor]:
    module = ElmoEmbedding(elmo, dropout=0.0, requires_grad=True, mix_weights=[0.3] * elmo.layers).eval()
    [representation] = module(SENTENCES).representations
    representation.square().sum().backward()
    return [representation, *(each.grad for each in module.parameters() if each.grad is not None)]


def same(found: list[Tensor], expected: list[Tensor]) -> bool:
    return all(one.dtype == other.dtype and torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("name", MODELS)
def test_what_others_have_set_changes_no_number_and_nothing_is_left_changed(name: str, tmp_path: Path) -> None:
    model: Any = MODELS[name]
    if isinstance(model, EncoderSizes):
        model = replace(tiny_model(), encoder=BidirectionalEncoder(EncoderConfig(model, 6)).eval())
    write_model_directory(tmp_path / "model", model)
    elmo, expected = frozen(tmp_path / "model")
    gradients = trained(elmo)
    for kind, other in OTHERS.items():
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            if isinstance(other, tuple):
                stack.callback(other[0], other[2])
                other[0](other[1])
            else:
                stack.enter_context(other)
            before = state()
            elmo, found = frozen(tmp_path / "model")
            assert state() == before, kind
            assert same(found, expected), kind
            assert kind in ("no gradients", "inference", "autocast") or same(trained(elmo), gradients), kind
        assert same(trained(elmo), gradients), f"opened under {kind}"


def test_subwords_leave_the_environment_as_it_is(tiny_subwords: Corpus) -> None:
    before = state()
    Subwords.of_corpus(tiny_subwords).rows(["Zürich", ""])
    assert state() == before
