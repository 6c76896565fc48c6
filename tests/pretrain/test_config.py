"""The config of a run: read strictly, and every error names the key."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from docs.settings import page
from elmoc.errors import InputError
from pretrain.config import RunConfig, config_from_dict, config_to_dict, load_config
from pretrain.output_layers.continuous import ContinuousSettings
from pretrain.output_layers.contrastive import ContrastiveSettings

from pretrain import CONFIGS


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text('[data]\ncorpus = "somewhere"\n[train]\nstreams = 64\nepochs = 3\n')
    return path


def test_defaults_then_file_then_command_line(config: Path) -> None:
    loaded = load_config(config, ["train.streams=32", "data.corpus=else/where", 'train.directions=["backward"]'])
    assert (loaded.train.streams, loaded.train.epochs, loaded.train.window) == (32, 3.0, 20)
    assert isinstance(loaded.train.epochs, float)
    assert loaded.data.corpus == "else/where", "a string need not be quoted"
    assert loaded.train.directions == ("backward",)
    assert load_config(config, ["data.corpus='a = b'"]).data.corpus == "a = b"
    assert load_config(config).train.streams == 64


def test_an_empty_file_is_the_paper(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    default = load_config(tmp_path / "empty.toml")
    assert default == RunConfig()
    assert (default.encoder.projection_size, default.encoder.cell_size, default.encoder.layers) == (512, 4096, 2)
    assert (default.train.streams, default.train.window, default.train.epochs) == (768, 20, 10.0)
    assert (default.optimiser.epsilon, default.optimiser.gradient_norm, default.schedule.base) == (1e-6, 1.0, 1e-4)


def test_a_config_goes_over_its_parents(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far/first.toml").write_text(
        'parent = "../root.toml"\n[train]\nstreams = 5\n[output_layer]\nkind = "contrastive"\ncosine_weight = 2\n'
    )
    (tmp_path / "root.toml").write_text("[train]\nstreams = 4\nwindow = 7\nseed = 3\n[schedule]\nbase = 0.5\n")
    (tmp_path / "second.toml").write_text("[train]\nwindow = 8\n[output_layer]\n")
    own = tmp_path / "own.toml"
    own.write_text('parent = ["far/first.toml", "second.toml"]\n[schedule]\nbase = 0.25\n')
    config = load_config(own, ["train.seed=9"])
    assert (config.train.streams, config.train.window, config.train.seed, config.schedule.base) == (5, 8, 9, 0.25)
    assert config.output_layer == ContrastiveSettings(cosine_weight=2.0)
    own.write_text('parent = ["far/first.toml", "second.toml"]\n[output_layer]\nkind = "continuous"\n')
    assert load_config(own).output_layer == ContinuousSettings()
    alone = tmp_path / "alone.toml"
    alone.write_text("[train]\nstreams = 5\nwindow = 7\nseed = 3\n[schedule]\nbase = 0.5\n")
    own.write_text('parent = "far/first.toml"\n[output_layer]\nkind = "continuous"\n')
    assert load_config(own) == load_config(alone)


def test_the_resolved_config_can_be_read_again(config: Path) -> None:
    loaded = load_config(config, ["schedule.base=0.002", "train.carry_state=false"])
    saved = json.loads(json.dumps(config_to_dict(loaded)))
    assert config_from_dict(saved, "saved") == loaded
    assert saved.keys() == asdict(loaded).keys()
    assert saved["train"].keys() == asdict(loaded.train).keys(), "defaults, too"


@pytest.mark.parametrize(
    "override",
    [
        "train.strems=3",
        "train.streams=0",
        'train.directions=["backward", "forward"]',
        "data.sources=news=2",
        "schedule.decay_end=0.3",
        "encoder.kind=gru",
        "output_layer.kind=[]",
        "output_layer.samples=5",
        f"train.directions={'[' * 2000}",
        "train",
    ],
    ids=lambda override: override[:30],
)
def test_an_impossible_value_is_named(config: Path, override: str) -> None:
    key = override.split("=")[0]
    with pytest.raises(InputError) as error:
        load_config(config, [override])
    assert key.split(".")[-1] in str(error.value)
    assert len(str(error.value)) < 500


def test_another_kind_leaves_out_what_the_file_says_of_its_own_kind_alone(config: Path) -> None:
    config.write_text("[output_layer]\nkind = 'contrastive'\ncosine_weight = 5.0")
    assert load_config(config, ["output_layer.kind=continuous"]).output_layer == ContinuousSettings()
    with pytest.raises(InputError, match="cosine_weight"):
        load_config(config, ["output_layer.cosine_weight=2", "output_layer.kind=continuous"])
    config.write_text("[output_layer]\nkind = 'contrastive'\ncosine_wait = 5.0")
    with pytest.raises(InputError, match="cosine_wait"):
        load_config(config, ["output_layer.kind=continuous"])


def test_the_page_of_settings_is_up_to_date() -> None:
    """`python -m docs.settings > docs/settings.md` makes it."""
    text = page()
    assert (CONFIGS.parent.parent / "docs" / "settings.md").read_text() == text
    assert "|  |" not in text, "a setting without a meaning"
