"""The config of a run: read strictly, and every error names the key."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from elmoc.errors import InputError
from pretrain import CONFIGS
from pretrain.config import SOURCES, RunConfig, config_from_dict, config_to_dict, load_config
from pretrain.output_layers.continuous import ContinuousSettings
from pretrain.output_layers.contrastive import ContrastiveSettings


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


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.toml")), ids=lambda path: path.name)
def test_the_configs_of_the_project_load(path: Path) -> None:
    assert load_config(path).train.streams > 0


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("twins/small_*.toml")), ids=lambda path: path.name)
def test_a_twin_differs_in_sizes_and_what_goes_with_them_alone(path: Path) -> None:
    twin, parent = (config_to_dict(load_config(each)) for each in (path, CONFIGS / path.name.removeprefix("small_")))
    sizes = config_to_dict(load_config(CONFIGS / "twins/sizes.toml"))
    changed = {
        f"{section}.{name}"
        for section, settings in twin.items()
        for name, value in settings.items()
        if parent[section][name] != value
    }
    assert changed <= {
        *("data.corpus", "encoder.projection_size", "encoder.cell_size", "schedule.base"),
        *(
            "train.streams",
            "train.mix_shards",
            "train.epochs",
            "train.precision",
            "evaluation.words",
            "evaluation.candidates",
        ),
        *("schedule.linear_warmup_updates", "schedule.linear_cooldown"),
        *("output_layer.cutoffs", "output_layer.reduction", "output_layer.samples", "input_layer.filters"),
        *("output_layer.rate_factor", "output_layer.accumulator"),
    }
    assert twin["encoder"]["cell_size"] == sizes["encoder"]["cell_size"]
    assert twin["output_layer"]["kind"] == parent["output_layer"]["kind"]


def test_a_config_goes_over_its_parents(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far/first.toml").write_text(
        'parent = "../root.toml"\n[train]\nstreams = 5\n[output_layer]\nkind = "contrastive"\ncosine_weight = 2\n'
    )
    (tmp_path / "root.toml").write_text("[train]\nstreams = 4\nwindow = 7\nseed = 3\n[schedule]\nbase = 0.5\n")
    (tmp_path / "second.toml").write_text("[train]\nwindow = 8\n")
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parent = 3\n", r"own.toml: parent must be the path of a config, or a list of them: correct it"),
        ("parent = [3]\n", r"own.toml: parent must be the path of a config, or a list of them: correct it"),
        ('parent = "own.toml"\n', r"own.toml: its parent own.toml has it as a parent, too: correct it"),
        ('parent = "other.toml"\n', r"other.toml: its parent own.toml has it as a parent, too: correct it"),
        ('parent = "none.toml"\n', r"none.toml"),
        ('parent = "bad.toml"\n', r"bad.toml: unknown key train.strems"),
    ],
)
def test_impossible_parents(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "other.toml").write_text('parent = "own.toml"\n')
    (tmp_path / "bad.toml").write_text("[train]\nstrems = 3\n")
    (tmp_path / "own.toml").write_text(text)
    with pytest.raises(InputError, match=message):
        load_config(tmp_path / "own.toml")


def test_the_resolved_config_can_be_read_again(config: Path) -> None:
    loaded = load_config(config, ["schedule.base=0.002", "train.carry_state=false"])
    saved = json.loads(json.dumps(config_to_dict(loaded)))
    assert config_from_dict(saved, "saved", advice="start again") == loaded
    assert saved.keys() == asdict(loaded).keys()


@pytest.mark.parametrize(
    "override",
    [
        "train.strems=3",
        "encoder.attention=true",
        "modle.size=3",
        "train.streams=2.5",
        "train.streams='4'",
        "train.streams=true",
        "train.epochs=true",
        "train.epochs=many",
        "train.carry_state=1",
        "train.directions=forward",
        "train.directions=[1]",
        "data.corpus=3",
        "train.streams=0",
        "train.window=-1",
        "train.updates=-1",
        "train.threads=-1",
        "train.seed=-1",
        "train.epochs=0",
        "train.epochs=nan",
        "train.epochs=inf",
        "train.precision=fp8",
        "train.parallel=model",
        "train.directions=[]",
        'train.directions=["backward", "forward"]',
        'train.directions=["forward", "forward"]',
        'train.directions=["sideways"]',
        "evaluation.every_updates=-1",
        "evaluation.words=0",
        "evaluation.candidates=0",
        "log.every_updates=0",
        "log.checkpoint_updates=-1",
        "log.checkpoint_minutes=0",
        "log.keep=0",
        "optimiser.beta1=1.0",
        "optimiser.beta2=-0.1",
        "optimiser.epsilon=0",
        "optimiser.gradient_norm=0",
        "optimiser.weight_decay=-0.1",
        "optimiser.average=0.6",
        "schedule.base=0",
        "schedule.base=nan",
        "schedule.base=inf",
        "schedule.streams_per_worker=0",
        "schedule.warmup_updates=0",
        "schedule.warmup_fraction=0",
        "schedule.decay_end=0.3",
        "schedule.decay_start=-1",
        "schedule.minimum=1.5",
        "schedule.linear_warmup_updates=-1",
        "schedule.linear_cooldown=2",
        "encoder.cell_clip=nan",
        "encoder.layers=1e9",
        "encoder.layers=1000000000",
        "encoder.cell_size=1000000000000",
        "encoder.projection_size=1000000000000",
        "encoder.cell_clip=1e308",
        "encoder.kind=gru",
        "output_layer.kind=[]",
        "train.threads=1e6",
        "train.threads=1000000",
        "train.seed=1e23",
        "train.seed=18446744073709551616",
        f"train.seed={'9' * 4000}",
        f"train.seed={'9' * 5000}",
        "train.epochs=1e308",
        "train.updates=1000000000",
        "train.streams=99999999999999999999",
        "schedule.base=1e308",
        "schedule.decay_start=1e300",
        "optimiser.epsilon=1e308",
        "log.checkpoint_minutes=1e308",
        "evaluation.words=1e400",
        'data.corpus="\\u0000"',
        "data.corpus=\udcff",
        "train.precision=\udcff",
        "train.streams=\udcff",
        f"train.directions={'[' * 2000}",
    ],
    ids=lambda override: override[:40],
)
def test_an_impossible_value_is_named(config: Path, override: str) -> None:
    key = override.split("=")[0]
    named = key if not key.startswith("modle") else "unknown key modle"
    with pytest.raises(InputError, match=named.replace(".", r"\.")) as error:
        load_config(config, [override])
    assert str(error.value).startswith(("--set: ", f"{config} with --set: "))
    assert len(str(error.value)) < 500
    with pytest.raises(InputError) as error:
        load_config(config, [override], option="the command line")
    assert str(error.value).startswith(("the command line: ", f"{config} with the command line: "))


@pytest.mark.parametrize(
    ("content", "override"),
    [
        ("[output_layer]\nkind = 'sampled'\ntied = true", "output_layer.projection_regularisation=0.15"),
        ("[encoder]\nkind = 'transformer'\nprojection_size = 384", "encoder.heads=12"),
    ],
)
def test_an_override_may_need_what_the_file_says(config: Path, content: str, override: str) -> None:
    config.write_text("")
    kind = content.partition("kind = ")[2].partition("\n")[0]
    with pytest.raises(InputError):
        load_config(config, [override] + ([f"{override.partition('.')[0]}.kind={kind}"] if kind else []))
    config.write_text(content)
    load_config(config, [override])


@pytest.mark.parametrize(
    ("content", "overrides", "sentence"),
    [
        ("[train]\nstreams = 0", ["train.window=3"], "run.toml: train.streams must be at least 1, not 0: correct it"),
        ("[train]\nstreams = 0", ["train.window=0"], "--set: train.window must be at least 1, not 0: correct it"),
        (
            "[encoder]\nkind = 'gru'",
            ["encoder.layers=3"],
            "run.toml: encoder.kind must be one of lstm, plain_lstm, transformer, not 'gru'",
        ),
        (
            "[encoder]\nlayers = 3",
            ["encoder.kind=gru"],
            "--set: encoder.kind must be one of lstm, plain_lstm, transformer, not 'gru': correct it",
        ),
        ("[encoder]\nlairs = 3", ["encoder.kind=lstm"], "run.toml: unknown key encoder.lairs (known: encoder.kind, "),
        ("[train]\nkind = 'x'", [], "run.toml: unknown key train.kind (known: train.directions, "),
        ("", ["data.sources=news=2"], f"--set: {SOURCES}, not 'news=2': correct it"),
        ("", ["data.sources={news='a'}"], f"--set: {SOURCES}, not {{'news': 'a'}}: correct it"),
        ("", ["data.sources.news=2"], f"--set: {SOURCES}, not data.sources.news: correct it"),
        ("[data]\nsources = ['news']", [], f"run.toml: {SOURCES}, not ['news']: correct it"),
        (
            "[schedule]\ndecay_start = 3",
            [],
            "run.toml: schedule.decay_end must be above schedule.decay_start=3.0, not 2",
        ),
        (
            "",
            ["schedule.decay_start=3"],
            "run.toml with --set: schedule.decay_end must be above schedule.decay_start=3",
        ),
        (
            "[output_layer]\nkind = 'softmax'\ntied = true",
            ["output_layer.types=100"],
            "run.toml with --set: output_layer.tied needs a class for each type: leave output_layer.types out",
        ),
        (
            "[output_layer]\nkind = 'softmax'\ntied = true\ntypes = 5",
            ["train.window=3"],
            "run.toml: output_layer.tied needs a class for each type: leave output_layer.types out",
        ),
    ],
)
def test_what_is_wrong_is_said_of_where_it_stands(
    config: Path, content: str, overrides: list[str], sentence: str
) -> None:
    config.write_text(content)
    with pytest.raises(InputError) as error:
        load_config(config, overrides)
    assert str(error.value).removeprefix(f"{config.parent}/").startswith(sentence)


@pytest.mark.parametrize(
    ("content", "overrides"),
    [
        ("[train]\nstreams = 0", ["train.streams=3"]),
        ("[encoder]\nkind = 'gru'", ["encoder.kind=lstm"]),
        ("[schedule]\ndecay_start = 0.1", ["schedule.decay_end=0.3"]),
        ("", ["train.streams=0", "train.streams=3"]),
        ("", ["schedule.decay_start=3", "schedule.decay_end=4"]),
    ],
)
def test_what_was_wrong_may_be_overridden(config: Path, content: str, overrides: list[str]) -> None:
    config.write_text(content)
    key, _, value = overrides[-1].partition("=")
    section, _, name = key.partition(".")
    assert str(getattr(getattr(load_config(config, overrides), section), name)) in (value, f"{value}.0")


def test_another_kind_leaves_out_what_the_file_says_of_its_own_kind_alone(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("[output_layer]\nkind = 'contrastive'\ncosine_weight = 5.0")
    layer = load_config(config, ["output_layer.kind=continuous"]).output_layer
    assert layer == ContinuousSettings()
    load_config(config, ["output_layer.kind=continuous"], quiet=True)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"{config}: output_layer.cosine_weight is left out: output_layer.kind=continuous has no such setting"
    ]
    with pytest.raises(InputError, match=r"--set: unknown key output_layer\.cosine_weight"):
        load_config(config, ["output_layer.kind=continuous", "output_layer.cosine_weight=5"])
    config.write_text("[output_layer]\nkind = 'contrastive'\ncosine_wait = 5.0")
    with pytest.raises(InputError, match=r"unknown key output_layer\.cosine_wait"):
        load_config(config, ["output_layer.kind=continuous"])


@pytest.mark.parametrize(
    ("override", "kinds"),
    [
        ("output_layer.samples=5", "output_layer.kind=sampled or fixed"),
        ("encoder.heads=3", "encoder.kind=transformer"),
        ("input_layer.filters=[]", "input_layer.kind=character_cnn"),
    ],
)
def test_a_key_of_another_kind_is_known(config: Path, override: str, kinds: str) -> None:
    with pytest.raises(
        InputError, match=rf"unknown key {override.split('=')[0]} .*\); it belongs to {kinds}: correct it"
    ):
        load_config(config, [override])
    with pytest.raises(InputError) as error:
        load_config(config, ["output_layer.simples=5"])
    assert "belongs to" not in str(error.value)


def test_what_a_run_notes_is_no_config(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config_to_dict(RunConfig())))
    with pytest.raises(
        InputError, match=r"config.json is not valid TOML .*, or give a config such as pretrain/configs/"
    ):
        load_config(path)
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(InputError, match=rf"give the TOML file that it was started with, {tmp_path} and --resume"):
        load_config(path)


@pytest.mark.parametrize("override", ["train.streams", "streams=3", "=3", ""])
def test_an_override_without_section_key_and_value(config: Path, override: str) -> None:
    with pytest.raises(InputError, match=r"--set takes section\.key=value"):
        load_config(config, [override])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[train\nstreams = 3", "is not valid TOML"),
        (b"[train]\nstreams = 3\nstreams = 4", "is not valid TOML"),
        (b"[train]\nprecision = '\xff'", "is not valid TOML"),
        (b"train = 3", "train must be a section"),
        (b"streams = 3", "unknown key streams"),
    ],
    ids=["broken", "twice", "latin-1", "no section", "outside a section"],
)
def test_a_file_that_is_no_config(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "bad.toml").write_bytes(content)
    with pytest.raises(InputError, match=rf"bad\.toml.*{message}"):
        load_config(tmp_path / "bad.toml")


def test_a_section_that_is_none_cannot_be_overridden(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("train = 3")
    with pytest.raises(InputError, match="train must be a section"):
        load_config(tmp_path / "bad.toml", ["train.streams=3"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml does not exist"):
        load_config(tmp_path / "none.toml")
