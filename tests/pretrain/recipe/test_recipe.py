"""The recipe: from a little text to a model with its card, from a model to one adapted to new text, and resumed."""

import importlib
import io
import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from data_scripts.train_fasttext import FastTextOptions
from elmoc.command_line import run_main
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.files.text import read_lines
from elmoc.model_directory import read_model_directory
from elmoc.packing import packed_model
from elmoc.weights import contiguous, packed_weights
from elmoc.word_vectors.coded_rows import CodedRows, pack_codes
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.joined import JoinedVectors
from elmoc.word_vectors.table import VectorTable
from pretrain.recipe.__main__ import main
from pretrain.recipe.adapting import general_corpus
from pretrain.recipe.make import Recipe
from pretrain.recipe.options import RecipeOptions
from pretrain.run.directory import read_metrics
from tests.elmoc.word_vectors.fasttext_files import fasttext_bytes
from tests.pretrain.conftest import TinyRuns
from tests.tiny import learnable_sentences
from tests.tiny_bert import tiny_bert

from elmoc import ElmoC
from pretrain import TrainedRun, make_model, train_encoder
from pretrain.recipe import make

Fails = Callable[[int], str]
OF_RUN = {
    "train.updates": 4,
    "train.device": '"cpu"',
    "evaluation.words": 60,
    "evaluation.every_updates": 4,
    "evaluation.candidates": 20,
}
SETTINGS = OF_RUN | {"encoder.projection_size": 8, "encoder.cell_size": 12, "train.streams": 500, "train.window": 5}

Jobs = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def jobs_here(monkeypatch: pytest.MonkeyPatch) -> Jobs:
    """Have the jobs of recipes read their JSON and run in this process, where PyTorch is loaded; gives modules and
    options of the jobs that were run, and of trainings."""
    jobs: Jobs = []

    def run_here(module: str, options: dict[str, Any]) -> None:
        jobs.append((module, options))
        given = options | ({"workers": 1} if "data_scripts.build" in module else {})
        content = msgspec.json.encode(given, enc_hook=os.fspath)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        status = importlib.import_module(module).main(["--json", "-"])
        if status == 130:
            raise KeyboardInterrupt
        if status:
            raise InputError(f"{module} ended with status {status}")

    def train_here(*arguments: Any) -> TrainedRun:
        jobs.append(("pretrain", {}))
        return train_encoder(*arguments)

    monkeypatch.setattr(make, "run_job", run_here)
    monkeypatch.setattr(make, "train_encoder", train_here)
    return jobs


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    for seed, name in enumerate(("one", "two")):
        sentences = [" ".join(words) for words in learnable_sentences(100, seed=seed)]
        (tmp_path / f"{name}.txt").write_text("\n".join(sentences) + "\n")
    (tmp_path / "vectors.bin").write_bytes(fasttext_bytes())
    (tmp_path / "tiny.toml").write_text("")
    return [f"{name}={tmp_path / name}.txt" for name in ("one", "two")]


def recipe(*words: object, **settings: object) -> int:
    changed = {name.replace("__", "."): value for name, value in settings.items()}
    return main([*map(str, words), *(f"--set={name}={value}" for name, value in (SETTINGS | changed).items())])


def test_text_becomes_a_model_with_a_card(
    texts: list[str], tmp_path: Path, jobs_here: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    out, config = tmp_path / "out", ["--config", tmp_path / "tiny.toml"]
    of_card = ["--set=card.name=Ada's", "--set=card.licence=CC BY 4.0"]
    options = ["--vectors", tmp_path / "vectors.bin", *of_card, *config]
    (tmp_path / "vectors.bin").rename(tmp_path / "away.bin")
    assert recipe(*texts, out, *options) == 1
    (tmp_path / "away.bin").rename(tmp_path / "vectors.bin")
    others = ("--targets=white", "--fasttext={dim = 8}")
    for wrong in ("--set=encoder.layers=0", "--max-time=soon", "--set=data.corpus=other", *others):
        assert recipe(*texts, out, *options, wrong) == 1
    assert not jobs_here, "what cannot be is found before anything is made"
    assert not out.exists()
    assert recipe(*texts, out, *options) == 0
    commands = ["data_scripts.build_corpus", "data_scripts.build_vectors", "data_scripts.build_vectors", "pretrain"]
    assert [module for module, _ in jobs_here] == commands
    assert VectorTable(Corpus(out / "corpus"), "target").source.post_processing == "whiten"
    assert ElmoC.from_pretrained(out).embed(["w1", "w2"]).shape == (3, 2, 16)
    (tmp_path / "vectors.bin").unlink()
    card = "\n".join(read_lines(out / "model/README.md"))
    assert "Ada's" in card
    assert "CC BY 4.0" in card
    printed = capsys.readouterr().out
    assert all(said in printed for said in (f"\n{'one':>32} ", "streams in place of 500"))
    files = {path: path.read_bytes() for path in (out / "model").iterdir()}
    jobs_here.clear()
    assert recipe(*texts, out, *options) == 0, "it is finished"
    assert [module for module, _ in jobs_here] == ["pretrain"]
    assert {path: path.read_bytes() for path in (out / "model").iterdir()} == files


def test_it_goes_on_only_as_it_was_begun(
    texts: list[str], tmp_path: Path, jobs_here: Jobs, error_line: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    out, config = tmp_path / "out", ["--config", tmp_path / "tiny.toml", "--vectors", "random:1:8"]
    (tmp_path / "empty.txt").write_text("")
    assert recipe(*texts, out, *config, "--leave-out", tmp_path / "missing.txt") == 1
    jobs_here.clear()
    assert recipe(f"one={tmp_path / 'empty.txt'}", out, *config) == 1, "nothing was made yet of the other text"
    assert [module for module, _ in jobs_here] == ["data_scripts.build_corpus"]
    (tmp_path / "empty.txt").write_text((tmp_path / "one.txt").read_text())
    jobs_here.clear()
    assert recipe(f"one={tmp_path / 'empty.txt'}", out, *config, train__window=200) == 1, "too little text"
    assert jobs_here[-1][0] == "pretrain"
    capsys.readouterr()
    assert "text" in error_line(recipe(*texts, out, *config))
    assert "vectors" in error_line(recipe(f"one={tmp_path / 'empty.txt'}", out, *config, "--vectors", "random:2:8"))
    assert recipe(f"one={tmp_path / 'empty.txt'}", out, *config) == 0
    assert "is newer than" not in capsys.readouterr().err
    later = (out / "corpus/corpus.json").stat().st_mtime + 5
    os.utime(tmp_path / "empty.txt", (later, later))
    assert recipe(f"one={tmp_path / 'empty.txt'}", out, *config) == 0
    assert f"empty.txt is newer than {out / 'corpus'}" in capsys.readouterr().err
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    assert "mine" in error_line(recipe(*texts, tmp_path / "mine", *config))


def test_own_vectors_are_trained(
    texts: list[str], tmp_path: Path, jobs_here: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_vectors(options: FastTextOptions) -> None:
        options.output.write_bytes(fasttext_bytes())

    command = partial(run_main, FastTextOptions, write_vectors, prog="", description="")
    monkeypatch.setattr("data_scripts.train_fasttext.main", command)
    out, left_out = tmp_path / "out", tmp_path / "dev.txt"
    left_out.write_text("".join(list((tmp_path / "two.txt").open())[:3]) + "w1 w2 w3 w4 w5 w6\n")
    options = ["--held-out", f"one={tmp_path / 'apart.txt'}", "--leave-out", left_out]
    (tmp_path / "apart.txt").write_text("w1 w2 w3\n" * 40)
    for fasttext, status in (("{mixn = 2}", 1), ("{minn = 2, maxn = 5}", 0), ("{minn = 3}", 1)):
        own = ["--config", tmp_path / "tiny.toml", "--fasttext", fasttext]
        assert recipe(*texts, out, *own, *options) == status, "a mistake can be mended until there are vectors"
    assert ElmoC.from_pretrained(out).word_vectors.origin == str(out / "vectors.bin")
    sizes = {"minn": 2, "maxn": 5}
    assert jobs_here[2][1] == {"corpus": out / "corpus", "output": str(out / "vectors.bin"), **sizes}
    corpus = Corpus(out / "corpus")
    assert set(corpus.held_out_sources) == {"one", "two"}
    assert sum(shard.tokens for shard in corpus.held_out if shard.source == "one") == 5 * 40
    assert corpus.record.settings["left_out_sentences"]["two"] > 0


def test_a_teacher_stands_beside_the_word_vectors(texts: list[str], tmp_path: Path, jobs_here: Jobs) -> None:
    out, teacher = tmp_path / "out", tiny_bert(tmp_path / "bert", ["w1", "w2", "w30"])
    options = ["--config", tmp_path / "tiny.toml", "--vectors", tmp_path / "vectors.bin", "--teacher", teacher]
    assert recipe(*texts, out, *options) == 0
    elmo = ElmoC.from_pretrained(out)
    assert isinstance(elmo.word_vectors, JoinedVectors)
    [own, taught] = elmo.word_vectors.parts
    assert (own.origin, taught.size) == (str(tmp_path / "vectors.bin"), 16)
    assert VectorTable(Corpus(out / "corpus"), "target").source.fingerprint == elmo.word_vectors.fingerprint
    assert "bert (apache-2.0), layers" in (out / "model/README.md").read_text()
    jobs_here.clear()
    assert recipe(*texts, out, *options) == 0
    assert [module for module, _ in jobs_here] == ["pretrain"], "the rest is done"
    # A model without a teacher goes on with one beside its vectors, from where it was.
    plain, taught = tmp_path / "plain", tmp_path / "taught"
    assert recipe(*texts, plain, *options[:4]) == 0
    assert recipe(*texts, taught, "--init-from", plain, "--general", "none", *options[:2], *options[4:]) == 0
    assert "word vectors of a teacher" in (taught / "model/README.md").read_text()
    assert ElmoC.from_pretrained(taught).word_vectors.size == own.size + 16


@pytest.mark.parametrize(
    ("gpu", "words", "time", "config"),
    [
        (False, 20_000_000, None, "small.toml"),
        (False, 20_000_000, "3h", "small.toml"),
        (False, 20_000_000, "1h", "fast.toml"),
        (False, 2_000_000, None, "fast.toml"),
        (False, 2_000_000, "9h", "fast.toml"),
        (True, 20_000_000, "5m", "gpu.toml"),
        (True, 2_000_000, None, "fast.toml"),
    ],
)
def test_the_config_follows_from_text_time_and_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gpu: bool, words: int, time: str | None, config: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    monkeypatch.setattr(Recipe, "_words", lambda *_: words)
    (tmp_path / "text.txt").write_text("some text .\n")
    recipe = Recipe([str(tmp_path / "text.txt")], tmp_path / "out", RecipeOptions(max_time=time))
    assert Path(recipe.config).name == config


def test_words_of_more_bytes_are_not_taken_for_more_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pretrain.recipe.make.SMALL_FROM_WORDS", 1000)
    (tmp_path / "text.txt").write_text("предложение .\n" * 300)  # 600 words, 7,500 bytes
    (tmp_path / "rows.jsonl").write_text((json.dumps({"text": "It rained .", "n": "a" * 999}) + "\n") * 150)
    for name in ("text.txt", "rows.jsonl"):
        recipe = Recipe([str(tmp_path / name)], tmp_path / "out", RecipeOptions())
        assert Path(recipe.config).name == "fast.toml"


@pytest.fixture
def model(runs: TinyRuns) -> Path:
    layer = {"kind": "contrastive", "cosine_weight": 1.0}
    settings = {f"output_layer__{name}": value for name, value in layer.items()}
    settings |= {"evaluation__every_updates": 4, "schedule__streams_per_worker": 3}
    return runs.run("first", train__updates=4, card__licence="CC0", **settings).path


@pytest.fixture
def new_text(tmp_path: Path) -> Path:
    words = [" ".join(f"new{word}" for word in sentence) for sentence in learnable_sentences(150, seed=8)]
    (tmp_path / "new.txt").write_text("\n".join(words) + "\n")
    return tmp_path / "new.txt"


def adapt(model: Path, *words: object) -> int:
    sets = [f"--set={name}={value}" for name, value in OF_RUN.items()]
    return main([*sets, "--init-from", str(model), *map(str, words)])


@pytest.mark.parametrize("inside", ["", "model"])
def test_a_model_goes_on_with_new_text_and_general_text(
    model: Path, new_text: Path, tmp_path: Path, jobs_here: Jobs, capsys: pytest.CaptureFixture[str], inside: str
) -> None:
    out = tmp_path / "out"
    assert adapt(model / inside, new_text, out, "--set", "card.licence=CC BY 4.0") == 0
    assert [module.removeprefix("data_scripts.") for module, _ in jobs_here] == [
        *("write_text", "write_text", "build_corpus", "build_vectors", "build_vectors", "pretrain")
    ]
    printed = capsys.readouterr().out
    assert "going on from" in printed
    assert re.search(r"\n +new .*\n +general ", printed), "a row for each source"
    assert {"new/cosine", "general/cosine"} <= read_metrics(out, "evaluation")[-1].keys()
    corpus, old = Corpus(out / "corpus"), read_model_directory(model)
    assert corpus.sources == ["new", "general"]
    assert VectorTable(corpus, "input").transform.same_as(old.transform)
    words = sum(shard.tokens - 2 * shard.sentences for shard in corpus.train if shard.source == "general")
    assert words / (corpus.train_tokens - 2 * corpus.record.train_sentences) == pytest.approx(0.3, abs=0.05)
    config = json.loads((out / "config.json").read_text())
    tokens = sum(shard.tokens for shard in corpus.train if shard.source == "general")
    read = config["data"]["sources"]["general"] * tokens
    assert read / (read + corpus.train_tokens - tokens) == pytest.approx(0.3)
    assert {"kind": "contrastive", "cosine_weight": 1.0}.items() <= config["output_layer"].items()
    assert {"base": 0.005, "streams_per_worker": 3}.items() <= config["schedule"].items()
    assert config["train"]["epochs"] == 2
    adapted = read_model_directory(out)
    assert adapted.training["started_from"]["licence"] == "CC0"
    assert ElmoC.from_pretrained(out).embed(["new1", "w2"]).shape == (3, 2, 16)
    jobs_here.clear()
    assert adapt(model / inside, new_text, out, "--set", "card.licence=CC BY 4.0") == 0
    assert [module for module, _ in jobs_here] == ["pretrain"]


def test_without_general_text_and_what_cannot_be_adapted(
    model: Path, new_text: Path, tmp_path: Path, jobs_here: Jobs, capsys: pytest.CaptureFixture[str]
) -> None:
    assert adapt(model, new_text, tmp_path / "most", "--general-share", "0.95") == 0
    assert "are wanted" in capsys.readouterr().err
    jobs_here.clear()
    for wrong in ([f"general={new_text}"], [new_text, "--general-share=30"], [new_text, "--set=train.epoch=3"]):
        assert adapt(model, *wrong[:1], tmp_path / "out", *wrong[1:]) == 1
    assert adapt(model, new_text, tmp_path / "out", "--vectors", "random:9:8", "--general", "none") == 1
    assert [module.removeprefix("data_scripts.") for module, _ in jobs_here] == ["build_corpus", "build_vectors"]
    own = tmp_path / "own.toml"
    own.write_text(settings := "encoder = { projection_size = 8, cell_size = 12 }\n")
    for config in (["--config", own], []):
        assert adapt(model, f"talk={new_text}", tmp_path / "other", "--general", "none", *config) == 0
    assert own.read_text() == settings, "what a user wrote stays as it is"
    assert Corpus(tmp_path / "other/corpus").sources == ["talk"]


def test_a_shared_model_takes_no_corpus_of_the_same_name(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = read_model_directory(model).training
    assert general_corpus(training, tmp_path / "out", RecipeOptions()) == training["corpus"]
    assert general_corpus(training | {"corpus_tokens": 3}, tmp_path / "out", RecipeOptions()) is None, "another by now"
    ElmoC.from_pretrained(model).save_pretrained(tmp_path / "shared")
    shared = read_model_directory(tmp_path / "shared").training
    monkeypatch.chdir(Path(training["corpus"]).parent)
    assert Path(shared["corpus"], "corpus.json").exists()
    assert general_corpus(shared, tmp_path / "out", RecipeOptions()) is None


def test_the_model_of_the_checkout_can_be_adapted(new_text: Path, tmp_path: Path, jobs_here: Jobs) -> None:
    english = Path(__file__).parents[3] / "models" / "english"
    assert adapt(english, new_text, tmp_path / "out", "--general", "none") == 0
    adapted, parent = ElmoC.from_pretrained(tmp_path / "out" / "model"), ElmoC.from_pretrained(english)
    assert adapted.word_vectors.fingerprint == parent.word_vectors.fingerprint
    assert not torch.equal(adapted.embed(["neww1"]), parent.embed(["neww1"]))


def test_a_packed_model_goes_on_with_its_own_vectors(
    model: Path, new_text: Path, tmp_path: Path, jobs_here: Jobs
) -> None:
    parent = ElmoC.from_pretrained(model)
    words = [f"neww{number}" for number in range(15)]
    rows = parent.word_vectors.lookup(words).astype(np.float16)[None]  # a codebook with a codeword for each word
    coded = CodedRows("summed", codes=pack_codes(np.arange(15)[:, None], 15), codebooks=rows)
    weights = packed_weights(contiguous(parent.encoder.weights()), "int8")
    packed = packed_model(parent, weights, CompactVectors.of_words(words, coded))
    packed.save_pretrained(tmp_path / "packed")
    out = tmp_path / "out"
    # More updates than of other tests: it has to become better than it was.
    longer = "--set=train.updates=40"
    assert adapt(tmp_path / "packed", f"talk={new_text}", out, "--general", "none", longer) == 0
    corpus = Corpus(out / "corpus")
    tables = [VectorTable(corpus, name) for name in ("input", "target")]
    assert {table.source.fingerprint for table in tables} == {packed.word_vectors.fingerprint}
    assert [table.zero_rows for table in tables] == [5, 5], "words without a row, and no n-grams"
    (tmp_path / "packed").rename(tmp_path / "away")
    adapted = ElmoC.from_pretrained(out / "model")
    assert isinstance(adapted.word_vectors, CompactVectors)
    assert adapted.directory.training["started_from"]["packed"]["model"] == parent.fingerprint
    assert adapted.directory.weight_type == "float32"
    assert "packed_from" not in adapted.identity
    assert not torch.equal(adapted.embed(["neww1"]), packed.embed(["neww1"]))


@pytest.mark.parametrize("text", [[], [["It", "rained"]], [{"text": "It rained."}], iter(["a.txt"])])
def test_text_has_to_be_named(tmp_path: Path, text: Any) -> None:
    with pytest.raises(InputError, match=r"no text is named.*make_corpus"):
        make_model(text, tmp_path / "model")


def test_rows_of_raw_text_and_a_corpus_directory_become_models(
    texts: list[str], tmp_path: Path, jobs_here: Jobs
) -> None:
    rows = [{"id": "x", "body": f"Dr. w{number} sat. It slept, too!"} for number in range(90)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"id": "y", "body": None}]))
    options = RecipeOptions(
        config=str(tmp_path / "tiny.toml"),
        vectors="random:1:8",
        field="body",
        overrides=[f"{name}={value}" for name, value in SETTINGS.items()],
    )
    corpus = make_model(tmp_path / "rows.jsonl", tmp_path / "first", options).path / "corpus"
    assert {"Dr.", "w7", "sat", ",", "!"} < set(Corpus(corpus).lexicon)
    assert Corpus(corpus).record.train_documents + Corpus(corpus).record.held_out_documents == 90
    jobs_here.clear()
    options = replace(options, field=None)
    refused = {"held_out": [str(tmp_path / "one.txt")], "init_from": str(tmp_path / "first"), "field": "body"}
    for wrong in [{name: value} for name, value in (refused | {"keep": ["x"], "tokenised": "no"}).items()]:
        with pytest.raises(InputError, match="is a corpus"):
            make_model(corpus, tmp_path / "second", replace(options, **wrong))
    with pytest.raises(InputError, match="general is for init_from"):
        make_model(corpus, tmp_path / "second", replace(options, general=str(corpus)))
    run = make_model(corpus, tmp_path / "second", replace(options, vectors="random:2:8"))
    assert [module for module, _ in jobs_here] == ["data_scripts.build_vectors"] * 2 + ["pretrain"]
    fingerprints = [VectorTable(Corpus(each), "input").source.fingerprint for each in (corpus, run.path / "corpus")]
    assert len(set(fingerprints)) == 2, "it has tables of its own"


def test_a_damaged_record_of_a_recipe_is_named(texts: list[str], tmp_path: Path, error_line: Fails) -> None:
    (tmp_path / "out").mkdir()
    for damaged in ("[]", '{"text": 3}', "{"):
        (tmp_path / "out/begun.json").write_text(damaged)
        assert str(tmp_path / "out/begun.json") in error_line(recipe(*texts, tmp_path / "out"))


@pytest.mark.slow
def test_every_step_is_run_in_a_process_of_its_own(texts: list[str], tmp_path: Path) -> None:
    overrides = [f"{name}={value}" for name, value in SETTINGS.items()]
    sizes = {"dim": 8, "epochs": 1, "buckets": 100, "workers": 1}
    options = RecipeOptions(config=str(tmp_path / "tiny.toml"), fasttext=sizes, overrides=overrides)
    first = make_model(texts, tmp_path / "first", options)
    assert first.updates == 4
    adapted = make_model(
        tmp_path / "two.txt", tmp_path / "second", RecipeOptions(init_from=str(first.path), overrides=overrides)
    )
    assert {"new/cosine", "general/cosine"} <= adapted.evaluation.keys()
    assert ElmoC.from_pretrained(adapted.model).embed(["w1"]).shape == (3, 1, 16)
