"""Tokens of other libraries: layers are chosen by name or index, and tokens may hold blanks."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from elmoc.errors import InputError
from elmoc.interop.token_vectors import token_vectors

from elmoc import ElmoC

SENTENCES = [["New York", "is", " ", "big", "\n"], [], ["\t"], ["It", "rained", "."]]


def tokens(sentences: list[list[str]]) -> list[list[SimpleNamespace]]:
    return [[SimpleNamespace(text=text) for text in sentence] for sentence in sentences]


@pytest.fixture
def model(model_path: Path) -> ElmoC:
    return ElmoC.from_pretrained(model_path)


def test_layers_by_name_and_index(model: ElmoC) -> None:
    words = ["The", "bank", "was", "steep"]
    bottom, middle, top = model.embed(words)
    expected = {
        "average": (bottom + middle + top) / 3,
        "top": top,
        "all": torch.cat([bottom, middle, top], dim=-1),
        (2, 0): torch.cat([top, bottom], dim=-1),
    }
    for layers, vectors in expected.items():
        [found] = token_vectors(model, tokens([words]), layers)
        torch.testing.assert_close(found, vectors)


@pytest.mark.parametrize("layers", ["bottom", [], ["top", 0], [True], [3], [0, -1]])
def test_layers_that_are_none_or_that_the_model_lacks(layers: Any, model: ElmoC) -> None:
    with pytest.raises(InputError):
        model.choose_layers(layers)


def test_a_token_with_blanks_gets_the_mean_over_its_words_and_one_of_blanks_alone_zeros(model: ElmoC) -> None:
    first, empty, blank, plain = token_vectors(model, tokens(SENTENCES), "top", batch_size=2)
    words = model.embed(["New", "York", "is", "big"])[-1]
    zeros = torch.zeros(model.width)
    torch.testing.assert_close(first, torch.stack([words[:2].mean(dim=0), words[2], zeros, words[3], zeros]))
    assert empty.shape == (0, model.width)
    assert torch.equal(blank, zeros.unsqueeze(0))
    torch.testing.assert_close(plain, model.embed(SENTENCES[3])[-1])
