"""The paper's configs: each trains, is resumed exactly, is exported and makes features, at the sizes of a test."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import pretrain
from elmoc.__main__ import main as elmoc_main
from elmoc.corpus import Corpus
from elmoc.features.reader import FeatureFile
from elmoc.model import ElmoC
from pretrain.__main__ import main
from pretrain.run.directory import RunDirectory
from tests.pretrain.conftest import TINY, TinyRuns, assert_same, last_checkpoint

CONFIGS = sorted(path for path in (Path(pretrain.__file__).parent / "configs").glob("elmo*.toml"))
TINY_LAYERS: dict[str, dict[str, Any]] = {
    "elmo.toml": {"input_layer.filters": [[1, 4], [2, 6]], "output_layer.samples": 5},
    "elmo_a.toml": {"output_layer.cutoffs": [6, 14], "output_layer.reduction": 2},
}
SUBWORDS = "elmo_sub.toml"


def arguments(config: Path, runs: TinyRuns, name: str, *options: str) -> list[str]:
    values = TINY | {"data.corpus": str(runs.corpus), "train.updates": 10, "log.checkpoint_updates": 5}
    sets = [f"--set={key}={value}" for key, value in (values | TINY_LAYERS.get(config.name, {})).items()]
    return [str(config), str(runs.folder / name), *sets, *options]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_it_trains_resumes_and_makes_features(runs: TinyRuns, config: Path, tiny_subwords: Corpus) -> None:
    if config.name == SUBWORDS:
        runs.corpus = tiny_subwords.path
    assert main(arguments(config, runs, "run")) == 0
    shutil.copytree(runs.folder / "run", runs.folder / "resumed")
    run, resumed = RunDirectory(runs.folder / "run"), RunDirectory(runs.folder / "resumed")
    resumed.checkpoint_paths()[-1].unlink()
    assert last_checkpoint(resumed)["update"] == 5
    assert main(arguments(config, runs, "resumed", "--resume")) == 0
    assert_same(last_checkpoint(resumed), last_checkpoint(run), but=("seconds", "metrics_bytes"))
    text = runs.folder / "text.txt"
    text.write_text("w1 w2 unheard-of\nw3\n")
    assert elmoc_main(["dump-features", str(run.path), str(text), str(runs.folder / "f.h5")]) == 0
    model = ElmoC.from_pretrained(run.path, precision="auto")
    features = FeatureFile(runs.folder / "f.h5")
    for index, line in enumerate(text.read_text().splitlines()):
        torch.testing.assert_close(torch.tensor(features[index]), model.embed(line.split()), rtol=1e-4, atol=1e-5)
