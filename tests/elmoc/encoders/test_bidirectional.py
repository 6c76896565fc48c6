"""The bidirectional encoder: its weights, by their names in the file, give the equations' states in both directions."""

from pathlib import Path

import numpy as np
from elmoc.word_vectors.sources import RandomVectors
from safetensors.numpy import load_file
from tests.references import encode_one

from elmoc import ElmoC


def test_weights_are_ported_as_the_documentation_says(elmo: ElmoC, model_path: Path) -> None:
    tensors = load_file(model_path / "model.safetensors")
    words = ["The", "cat", "sat", "."]
    boundary = tensors["recipe.boundary"]
    vectors = np.stack([boundary[0], *RandomVectors(seed=3, size=6).lookup(words), boundary[1]])
    found = []
    for direction, step in (("forward_lm.", 1), ("backward_lm.", -1)):
        weights = {name.removeprefix(direction): each for name, each in tensors.items() if name.startswith(direction)}
        states = encode_one(vectors[::step], weights, layers=2, cell_clip=3.0, projection_clip=3.0)
        found.append(np.stack(states)[:, ::step])
    expected = np.concatenate(found, axis=-1)[:, 1:-1]  # [L + 1, n, 2P]
    np.testing.assert_allclose(elmo.embed(words).numpy(), expected, atol=1e-5)
