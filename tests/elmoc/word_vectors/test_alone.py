"""ALONE: vectors and masks equal slow twins; its file comes back, and damaged ones are refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from elmoc.errors import InputError
from elmoc.word_vectors.alone import AloneConfig, AloneNetwork, AloneVectors
from elmoc.word_vectors.opening import open_word_vectors
from safetensors.numpy import load_file, save_file
from torch import Tensor

WORDS = ["the", "Zürich", "unheard-of", "日本語", "", "\ud800"]
CONFIG = AloneConfig(size=5, base_size=6, inner_size=8, seed=5)


def alone(config: AloneConfig = CONFIG) -> AloneVectors:
    """Random vectors."""
    torch.manual_seed(1)
    return AloneVectors.of_network(AloneNetwork(config))


def plain_vector(network: AloneNetwork, numbers: list[int]) -> Tensor:
    """Equation 3 of the paper, number by number."""
    columns = [network.columns[place, column] for place, column in enumerate(numbers)]
    mask = torch.stack(columns).sum(dim=0)
    base = (mask if network.config.zeros is None else mask.clamp(max=1)) * network.base
    hidden = [(row * base).sum().clamp(min=0) for row in network.inner.weight]
    return torch.stack([sum(w * h for w, h in zip(row, hidden, strict=True)) for row in network.outer.weight])


@pytest.mark.parametrize("zeros", [None, 0.5])
def test_vectors_and_gradients_are_those_of_a_plain_program(zeros: float | None) -> None:
    config = replace(CONFIG, zeros=zeros)
    network = AloneNetwork(config).double()
    numbers = config.numbers(WORDS)
    plain = torch.stack([plain_vector(network, row) for row in numbers.tolist()])
    vectors = network(torch.from_numpy(numbers))
    torch.testing.assert_close(vectors, plain)
    weights = list(network.parameters())
    of_both = (torch.autograd.grad(each.square().sum(), weights) for each in (vectors, plain))
    for ours, theirs in zip(*of_both, strict=True):
        torch.testing.assert_close(ours, theirs)
        assert ours.any()
    dropout = torch.tensor([0.0, 2.0] * 4, dtype=torch.float64)
    outer = network.outer.weight.detach().clone()
    dropped = network(torch.from_numpy(numbers), dropout)
    network.outer.weight.data = outer * dropout
    torch.testing.assert_close(dropped, network(torch.from_numpy(numbers)))


@pytest.mark.parametrize("zeros", [None, 0.5])
def test_masks_are_drawn_as_in_the_paper(zeros: float | None) -> None:
    config = AloneConfig(size=1, zeros=zeros, base_size=40)
    numbers = config.numbers([str(number) for number in range(3000)])
    assert len(np.unique(numbers, axis=0)) == 3000
    assert (numbers.min() == 0) & (numbers.max() == 63)
    masks = AloneNetwork(config).masks(torch.from_numpy(numbers)).numpy()
    if zeros is None:
        assert (abs(masks.mean()) < 0.1) & (abs(masks.std() - 1) < 0.1)
    else:
        assert (set(np.unique(masks)) == {0.0, 1.0}) & (abs(masks.mean() - 0.5) < 0.05)
    other = replace(config, seed=2)
    assert (other.numbers(WORDS) != config.numbers(WORDS)).any()
    assert (other.columns() != config.columns()).any()


def test_a_file_comes_back_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    vectors = alone(replace(CONFIG, zeros=0.5))
    vectors.write(tmp_path / AloneVectors.file_name)
    again = open_word_vectors(tmp_path)
    np.testing.assert_array_equal(again.lookup(WORDS), vectors.lookup(WORDS))
    assert again.fingerprint == vectors.fingerprint != alone().fingerprint
    weights = load_file(tmp_path / AloneVectors.file_name)
    about = vectors.description()
    damages = [{"entries": 65_536}, {"filters": 0}, {"inner_size": 9}, {"size": -1}, {"base_size": "6"}]
    for damage in damages:
        save_file(weights, tmp_path / AloneVectors.file_name, metadata={"elmoc": json.dumps(about | damage)})
        with pytest.raises(InputError, match=AloneVectors.file_name):
            open_word_vectors(tmp_path)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_are_too_large_are_told() -> None:
    weights = alone().tensors() | {"base": torch.full((6,), 3e38)}
    with pytest.raises(InputError, match="not finite"):
        AloneVectors(CONFIG, weights).lookup(WORDS)
