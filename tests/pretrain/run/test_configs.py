"""The configs: each trains, is exported and makes features, at the sizes of a test."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from data_scripts.build_vectors import TableOptions, build_vectors
from elmoc.__main__ import main as elmoc_main
from elmoc.corpus import Corpus
from elmoc.features.reader import FeatureFile
from elmoc.model import ElmoC
from elmoc.word_vectors.table import VectorTable
from pretrain.__main__ import main
from pretrain.config import load_config
from pretrain.run.directory import RunDirectory
from tests.pretrain.conftest import TINY, TinyRuns, last_checkpoint

from pretrain import CONFIGS

# the small ones compute in bf16 where the processor has it
CONFIGS = sorted(path for path in CONFIGS.rglob("*.toml") if path.name != "sizes.toml")
TINY_LAYERS: dict[str, dict[str, Any]] = {
    "elmo.toml": {"input_layer.filters": [[1, 4], [2, 6]], "output_layer.samples": 5},
    "elmo_a.toml": {"output_layer.cutoffs": [6, 14], "output_layer.reduction": 2},
}
SUBWORDS = "elmo_sub.toml"
# those that the configs name; of different vectors
TABLES = ("input", "target", "one_billion", "random", "cnn")


@pytest.fixture(scope="module")
def corpus(tiny_corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    path = tmp_path_factory.mktemp("configs") / "corpus"
    shutil.copytree(tiny_corpus.path, path)
    for seed, name in enumerate(TABLES):
        build_vectors(TableOptions(corpus=path, origin=f"random:{seed}:8", name=name, workers=1))
    return Corpus(path)


def paper_name(config: Path) -> str:
    return config.name.removeprefix("small_")


def arguments(config: Path, runs: TinyRuns, name: str, *options: str) -> list[str]:
    tables = ("data.input_vectors", "data.target_vectors")
    tiny = {key: value for key, value in TINY.items() if key not in tables}
    values = tiny | {"data.corpus": str(runs.corpus), "train.updates": 5}
    if load_config(config).encoder.kind == "plain_lstm":
        del values["encoder.cell_size"]
    sets = [f"--set={key}={value}" for key, value in (values | TINY_LAYERS.get(paper_name(config), {})).items()]
    return [str(config), str(runs.folder / name), *sets, *options]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda path: path.stem)
def test_it_trains_and_makes_features(runs: TinyRuns, config: Path, corpus: Corpus, tiny_subwords: Corpus) -> None:
    runs.corpus = (tiny_subwords if paper_name(config) == SUBWORDS else corpus).path
    assert main(arguments(config, runs, "run")) == 0
    run, data = RunDirectory(runs.folder / "run"), load_config(config).data
    read = last_checkpoint(run)["data"]
    for key, table in (("data.input_vectors", data.input_vectors), ("data.target_vectors", data.target_vectors)):
        if key in read and table in TABLES and load_config(config).input_layer.kind == "vectors":
            assert read[key].startswith(VectorTable(corpus, table).source.fingerprint), "the tables that it names"
    text = runs.folder / "text.txt"
    text.write_text("w1 w2 unheard-of\nw3\n")
    assert elmoc_main(["dump-features", str(run.path), str(text), str(runs.folder / "f.h5")]) == 0
    model = ElmoC.from_pretrained(run.path, precision="auto")
    features = FeatureFile(runs.folder / "f.h5")
    for index, line in enumerate(text.read_text().splitlines()):
        torch.testing.assert_close(torch.tensor(features[index]), model.embed(line.split()), rtol=1e-4, atol=1e-5)
