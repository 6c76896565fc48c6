"""The bidirectional encoder: its weights, ported to NumPy from the names of the file, give the same states."""

from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from elmoc import ElmoC
from elmoc.word_vectors.sources import RandomVectors

Array = np.ndarray


def normalised(values: Array, weights: dict[str, Array], name: str) -> Array:
    values = (values - values.mean(-1, keepdims=True)) / np.sqrt(values.var(-1, keepdims=True) + 1e-5)
    return values * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def sigmoid(values: Array) -> Array:
    return 1 / (1 + np.exp(-values))


def layer_states(weights: dict[str, Array], vectors: Array) -> Array:
    """[L + 1, n + 2, P] of one direction, from vectors [n + 2, E] in its reading order."""
    projected = vectors @ weights["input_projection.weight"].T + weights["input_projection.bias"]
    states = [normalised(projected, weights, "input_norm")]
    for number in range(2):
        layer = f"layers.{number}"
        hidden, cell, outputs = np.zeros(5), np.zeros(7), []
        for inputs in states[-1]:
            product = weights[f"{layer}.input_weight"] @ inputs + weights[f"{layer}.hidden_weight"] @ hidden
            i, f, g, o = np.split(product + weights[f"{layer}.bias"], 4)
            cell = np.clip(sigmoid(i) * np.tanh(g) + sigmoid(f) * cell, -3, 3)
            shorter = np.clip(weights[f"{layer}.projection_weight"] @ (sigmoid(o) * np.tanh(cell)), -3, 3)
            hidden = normalised(shorter, weights, f"{layer}.norm")
            outputs.append(hidden)
        states.append(np.stack(outputs) + (states[-1] if number else 0))
    return np.stack(states)


def test_weights_are_ported_as_the_documentation_says(model_path: Path) -> None:
    tensors = load_file(model_path / "model.safetensors")
    words = ["The", "cat", "sat", "."]
    boundary = tensors["recipe.boundary"]
    vectors = np.stack([boundary[0], *RandomVectors(seed=3, size=6).lookup(words), boundary[1]])
    found = []
    for direction, step in (("forward_lm.", 1), ("backward_lm.", -1)):
        weights = {
            name.removeprefix(direction): tensor for name, tensor in tensors.items() if name.startswith(direction)
        }
        found.append(layer_states(weights, vectors[::step])[:, ::step])
    states = np.concatenate(found, axis=-1)[:, 1:-1]
    np.testing.assert_allclose(ElmoC.from_pretrained(model_path).embed(words).numpy(), states, atol=1e-5)
