"""Fixtures: original ELMo models, the reference ones and small random ones."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from elmoc.model_directory import write_model_directory
from tests.pages import ROOT, blocks
from tests.tiny import tiny_model

DATA = Path(__file__).parent / "data"
Files = tuple[Path, Path]
"""The options and the weights."""


def run_page_programs(library: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the blocks of the page that import a library, in a folder with a random model and a few of the entities."""
    programs = [each for each in blocks(ROOT / "docs/integrations.md", "python") if f"import {library}\n" in each]
    assert programs
    write_model_directory(folder / "models/english", tiny_model())
    data = "quickstart/data"
    text = gzip.decompress((ROOT / data / "entities_train.conll.gz").read_bytes()).decode()
    first = gzip.compress("\n\n".join(text.split("\n\n")[:12]).encode())
    (folder / data).mkdir(parents=True)
    for split in ("train", "dev", "test"):
        (folder / data / f"entities_{split}.conll.gz").write_bytes(first)
    monkeypatch.chdir(folder)
    for program in programs:
        exec(compile(program, "docs/integrations.md", "exec"), {"__name__": "__main__"})


@pytest.fixture(scope="session", params=["allennlp", "bilm_tf"])
def reference(request: pytest.FixtureRequest) -> Path:
    """The folder of a reference model."""
    return DATA / request.param


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Files]:
    """Writes a small original ELMo with random weights."""

    def write(folder: str = "small", **changes: Any) -> Files:
        (tmp_path / folder).mkdir()
        files = tmp_path / folder / "options.json", tmp_path / folder / "weights.hdf5"
        write_original(*files, **changes)
        return files

    return write


def write_original(
    options_path: Path,
    weights_path: Path,
    *,
    lstm: dict[str, Any] | None = None,
    char_cnn: dict[str, Any] | None = None,
    projection: bool = True,
    seed: int = 0,
) -> None:
    """Write options, changed by `lstm` and `char_cnn`, and random weights that fit them."""
    options: dict[str, Any] = {
        "lstm": {"dim": 6, "n_layers": 2, "projection_dim": 5, "cell_clip": 1, "proj_clip": 0.5} | (lstm or {}),
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 3},
            "filters": [[1, 3], [3, 4]],
            "max_characters_per_token": 12,
            "n_characters": 262,
            "n_highway": 1,
        }
        | (char_cnn or {}),
    }
    options_path.write_text(json.dumps(options), encoding="utf-8")
    generator = np.random.default_rng(seed)
    cnn, encoder = options["char_cnn"], options["lstm"]
    cell, size, total = encoder["dim"], encoder["projection_dim"], sum(number for _, number in cnn["filters"])
    shapes: dict[str, tuple[int, ...]] = {"char_embed": (261, cnn["embedding"]["dim"])}
    for index, (width, number) in enumerate(cnn["filters"]):
        shapes |= {f"CNN/W_cnn_{index}": (1, width, cnn["embedding"]["dim"], number), f"CNN/b_cnn_{index}": (number,)}
    for index in range(cnn["n_highway"] or 0):
        for gate in ("carry", "transform"):
            shapes |= {f"CNN_high_{index}/W_{gate}": (total, total), f"CNN_high_{index}/b_{gate}": (total,)}
    if projection:
        shapes |= {"CNN_proj/W_proj": (total, size), "CNN_proj/b_proj": (size,)}
    for direction in range(2):
        for layer in range(encoder["n_layers"]):
            name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            shapes |= {f"{name}/W_0": (2 * size, 4 * cell), f"{name}/B": (4 * cell,), f"{name}/W_P_0": (cell, size)}
    with h5py.File(weights_path, "w") as file:
        for name, shape in shapes.items():
            file.create_dataset(name, data=generator.standard_normal(shape).astype(np.float32))
