"""References: the original ELMo step by step in numpy, straight from `weights.hdf5`, as bilm-tf's code defines it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from scipy.special import expit as sigmoid
from torch import Tensor

from elmoc import ElmoC

State = dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]
"""Direction and layer → hidden and cell."""


def character_ids(word: str, most: int) -> list[int]:
    """The ids of bilm-tf's `UnicodeCharsVocabulary`; `<S>` and `</S>` are the marks of a sentence."""
    marks = {"<S>": [256], "</S>": [257]}
    characters = marks.get(word, list(word.encode("utf-8", "ignore")[: most - 2]))
    ids = [258, *characters, 259]
    return ids + [260] * (most - len(ids))


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """All datasets of a file."""
    weights: dict[str, np.ndarray] = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: weights.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return weights


def word_vector(word: str, weights: dict[str, np.ndarray], options: dict[str, Any]) -> np.ndarray:
    """[P]: convolutions, their largest values, highway layers, projection."""
    cnn = options["char_cnn"]
    activation = {"relu": lambda x: np.maximum(x, 0), "tanh": np.tanh}[cnn["activation"]]
    embedded = weights["char_embed"][character_ids(word, cnn["max_characters_per_token"])]  # [T, D]
    features = []
    for index, (width, _) in enumerate(cnn["filters"]):
        kernel = weights[f"CNN/W_cnn_{index}"][0]  # [width, D, filters]
        windows = [
            np.einsum("wd,wdf->f", embedded[start : start + width], kernel)
            for start in range(len(embedded) - width + 1)
        ]
        features.append(activation(np.max(windows, axis=0) + weights[f"CNN/b_cnn_{index}"]))
    x = np.concatenate(features)
    for index in range(cnn.get("n_highway") or 0):
        own = {
            name.rpartition("/")[2]: value for name, value in weights.items() if name.startswith(f"CNN_high_{index}/")
        }
        carry = sigmoid(x @ own["W_carry"] + own["b_carry"])
        x = carry * np.maximum(x @ own["W_transform"] + own["b_transform"], 0) + (1 - carry) * x
    if "CNN_proj/W_proj" in weights:
        x = x @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"]
    return x


def layer_states(
    sentence: Sequence[str], weights: dict[str, np.ndarray], options: dict[str, Any], state: State
) -> np.ndarray:
    """[L + 1, n, 2P] of a sentence; `state` is that before it, and becomes that after it."""
    lstm = options["lstm"]
    vectors = [word_vector(word, weights, options) for word in ("<S>", *sentence, "</S>")]
    halves = []
    for direction in (0, 1):
        inputs = vectors[::-1] if direction else vectors
        layers = [inputs]
        for layer in range(lstm["n_layers"]):
            own = {
                name: weights[f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/{name}"]
                for name in ("W_0", "B", "W_P_0")
            }
            zeros = (np.zeros(lstm["projection_dim"]), np.zeros(lstm["dim"]))
            h, c = state.get((direction, layer), zeros)
            outputs = []
            for x in inputs:
                i, g, f, o = np.split(np.concatenate([x, h]) @ own["W_0"] + own["B"], 4)
                c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(g)
                if lstm.get("cell_clip"):
                    c = np.clip(c, -lstm["cell_clip"], lstm["cell_clip"])
                h = (sigmoid(o) * np.tanh(c)) @ own["W_P_0"]
                if lstm.get("proj_clip"):
                    h = np.clip(h, -lstm["proj_clip"], lstm["proj_clip"])
                outputs.append(h + x if layer > 0 and lstm.get("use_skip_connections") else h)
            state[direction, layer] = (h, c)
            layers.append(outputs)
            inputs = outputs
        halves.append(np.array(layers)[:, ::-1] if direction else np.array(layers))
    return np.concatenate(halves, axis=-1)[:, 1:-1]


@torch.no_grad()
def carried_states(elmo: ElmoC, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
    """Layer states [L + 1, n, 2P] with the state carried from each sentence to the next, as the original tools do.

    Forward, all is one long sentence; backward, the sentences are in order, each turned round.
    """
    text = [word for sentence in sentences for word in ("<s>", *sentence, "</s>")]
    lengths = [len(sentence) + 2 for sentence in sentences]
    vectors = torch.from_numpy(elmo.directory.transform.lookup(text, elmo.word_vectors)).unsqueeze(0)
    turned = torch.cat([part.flip(1) for part in vectors.split(lengths, dim=1)], dim=1)
    forward = torch.cat(elmo.encoder.direction("forward")(vectors).layer_states)
    backward = torch.cat(elmo.encoder.direction("backward")(turned).layer_states)
    parts = zip(forward.split(lengths, dim=1), backward.split(lengths, dim=1), strict=True)
    return [torch.cat([ahead, back.flip(1)], -1)[:, 1:-1] for ahead, back in parts]
