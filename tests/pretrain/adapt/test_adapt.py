"""Adapting: a tiny model goes on with new text, with and without general text, and by the same command."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from elmoc import ElmoC
from elmoc.corpus import Corpus
from elmoc.model_directory import read_model_directory, write_model_directory
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.table import VectorTable
from pretrain.adapt.__main__ import general_corpus, main
from pretrain.adapt.general import write_sample
from pretrain.adapt.plan import TOKENS_AT_LEAST, Adaptation, named
from pretrain.adapt.report import rows
from pretrain.adapt.settings import recipe_of
from pretrain.config import load_config
from pretrain.run.directory import read_metrics
from tests.pretrain.conftest import TinyRuns
from tests.tiny import learnable_sentences, write_corpus

Fails = Callable[[int], str]
SETTINGS = ("evaluation.words=60", "evaluation.candidates=20", "evaluation.every_updates=6", "train.updates=6")
SHORT = [f"--set={each}" for each in (*SETTINGS, "train.device=cpu")]


@pytest.fixture
def new_text(tmp_path: Path) -> Path:
    words = [" ".join(f"new{word}" for word in sentence) for sentence in learnable_sentences(150, seed=8)]
    (tmp_path / "new.txt").write_text("\n".join(words) + "\n")
    return tmp_path / "new.txt"


@pytest.fixture
def model(runs: TinyRuns) -> Path:
    return runs.run("first", train__updates=4, evaluation__every_updates=4, card__licence="CC0").path


def adapt(model: Path, *words: object) -> int:
    return main([str(model), *map(str, words), *SHORT])


def test_a_model_goes_on_and_both_curves_are_shown(
    model: Path, new_text: Path, tmp_path: Path, steps_here: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert adapt(model, new_text, out, "--licence", "CC BY 4.0", "--keep-targets") == 0
    assert [line[0] for line in steps_here] == [
        "data_scripts.build_corpus",
        "data_scripts.build_vectors",
        "data_scripts.build_vectors",
        "pretrain",
    ]
    printed = capsys.readouterr().out
    assert "general text is taken from" in printed
    for kind in ("new", "general"):
        assert f"\n{kind} text, cosine" in printed
        assert f"{kind}/cosine" in read_metrics(out, "evaluation")[-1]
    assert "\nmean over kinds, cosine" in printed
    corpus, old = Corpus(out / "corpus"), read_model_directory(model)
    for name, transform in (("input", old.transform), ("target", old.output_layer.transform)):
        assert transform is not None
        assert VectorTable(corpus, name).transform.same_as(transform)
    assert "going on from" in printed
    assert ", as it is" in printed
    config = json.loads((out / "config.json").read_text())
    general = sum(shard.tokens for shard in corpus.train if shard.source == "general")
    read = config["data"]["sources"]["general"] * general
    assert read / (read + corpus.train_tokens - general) == pytest.approx(0.3)
    assert config["schedule"]["base"] == 0.005
    assert config["train"]["epochs"] == 2
    adapted = read_model_directory(out)
    assert adapted.training["started_from"]["licence"] == "CC0"
    assert adapted.training["licence"] == "CC BY 4.0"
    assert ElmoC.from_pretrained(out).embed(["new1", "w2"]).shape == (3, 2, 16)
    files = {path: path.read_bytes() for path in (out / "model").iterdir()}
    steps_here.clear()
    assert adapt(model, new_text, out, "--licence", "CC BY 4.0", "--keep-targets") == 0
    assert [line[0] for line in steps_here] == ["pretrain"]
    assert "--resume" in steps_here[0]
    assert {path: path.read_bytes() for path in (out / "model").iterdir()} == files


def test_text_that_is_none_is_found_before_anything_is_made(
    model: Path, new_text: Path, tmp_path: Path, steps_here: list[list[str]], error_line: Fails
) -> None:
    new_text.write_bytes(new_text.read_bytes()[:40] + b"\xff\n")
    assert "new.txt, line " in (said := error_line(adapt(model, new_text, tmp_path / "out")))
    assert "byte 0xff is not valid UTF-8" in said
    assert not steps_here
    assert not (tmp_path / "out").exists()


def test_it_goes_on_where_it_was_interrupted(
    model: Path,
    new_text: Path,
    tmp_path: Path,
    steps_here: list[list[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out"
    assert adapt(model, new_text, out, "--general", "none", "--set", "train.streams=100000") == 1  # the last step fails
    error = capsys.readouterr().err
    assert "warning: without general text" in error
    assert "error: pretrain ended with status 1" in error
    assert (out / "corpus/vectors/target.json").exists()
    assert not (out / "config.json").exists()
    assert adapt(model, new_text, out) == 1
    assert "other values of general (was None, is '" in capsys.readouterr().err
    assert adapt(model, model, out, "--general", "none") == 1
    assert "other values of texts (was" in capsys.readouterr().err
    assert adapt(model, new_text, model) == 1
    assert "is not empty, and was not begun by this command" in capsys.readouterr().err
    steps_here.clear()
    assert adapt(model, new_text, out, "--general", "none") == 0
    assert [line[0] for line in steps_here] == ["pretrain"]
    assert "cosine" in capsys.readouterr().out


def test_it_goes_on_without_the_corpus_that_its_general_text_is_from(
    tiny_corpus: Corpus, new_text: Path, tmp_path: Path, steps_here: list[list[str]]
) -> None:
    shutil.copytree(tiny_corpus.path, tmp_path / "old")
    settings = {"train__updates": 4, "evaluation__every_updates": 4}
    model, out = TinyRuns(tmp_path, tmp_path / "old").run("first", **settings).path, tmp_path / "out"
    assert adapt(model, new_text, out, "--set", "train.streams=100000") == 1  # the last step fails
    shutil.rmtree(tmp_path / "old")
    assert adapt(model, new_text, out) == 0
    assert Corpus(out / "corpus").sources == ["new", "general"]


def test_where_there_is_no_general_text_it_is_said_why(
    tiny_corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = {"corpus": str(tiny_corpus.path), "corpus_tokens": tiny_corpus.train_tokens}
    gone = tmp_path / "gone"
    for training, said in (
        ({}, "the model does not say on which corpus it was trained"),
        (there | {"corpus": str(gone)}, f"the corpus that the model was trained on is not there any more ({gone})"),
        (
            there | {"corpus_tokens": 7},
            f"{tiny_corpus.path} has {tiny_corpus.train_tokens} tokens, and had 7 when the model was trained on it",
        ),
    ):
        assert general_corpus(None, training) is None
        assert capsys.readouterr().out == f"no general text is taken: {said}\n"
    assert general_corpus("none", there) is None
    assert not capsys.readouterr().out
    assert general_corpus(None, there) == str(tiny_corpus.path)


def test_without_a_share_general_text_is_only_evaluated(
    model: Path, new_text: Path, tiny_corpus: Corpus, tmp_path: Path, steps_here: list[list[str]]
) -> None:
    out, held_out = tmp_path / "out", tmp_path / "held.txt"
    held_out.write_text("new1 new2 new3\n" * 40)
    options = ["--general", tiny_corpus.path, "--general-share", 0, "--held-out", held_out]
    assert adapt(model, f"tweets={new_text}", out, *options) == 0
    corpus = Corpus(out / "corpus")
    assert corpus.sources == ["tweets"]
    assert corpus.held_out_sources == ["tweets", "general"]


def test_new_text_is_not_called_general(model: Path, new_text: Path, tmp_path: Path, error_line: Fails) -> None:
    said = error_line(adapt(model, f"general={new_text}", tmp_path / "out"))
    assert "general=… is what general text is called here: give your text another name" in said
    assert not (tmp_path / "out").exists()


def test_texts_without_a_name_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b.txt").write_text("12345")
    assert named(["a=b.txt", "x=folder", "f*"], "new") == ["new=a=b.txt", "x=folder", "new=f*"]


def test_a_name_that_is_none_is_said_to_be_one(model: Path, new_text: Path, tmp_path: Path, error_line: Fails) -> None:
    said = error_line(adapt(model, f"höhe={new_text}", tmp_path / "out"))
    assert "is neither a file nor NAME=PATH with a NAME of letters, digits, _ and -: correct it" in said
    assert not (tmp_path / "out").exists()


def test_general_text_is_measured_by_the_text_that_is_read(
    model: Path, new_text: Path, tiny_corpus: Corpus, tmp_path: Path, steps_here: list[list[str]]
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    new_text.rename(folder / "new.txt")
    (folder / ".hidden.txt").write_text("left out " * 100_000)
    out = tmp_path / "out"
    assert adapt(model, folder, out, "--general", tiny_corpus.path, "--general-share", 0.5, "--epochs", 1) == 0
    written = sum(len(line.split()) + 2 for line in (out / "general.txt").read_text().splitlines() if line)
    assert TOKENS_AT_LEAST <= written < tiny_corpus.train_tokens, "with what is hidden it would be all of it"


def test_a_share_that_little_general_text_cannot_have_is_refused_before_anything_is_made(
    model: Path, new_text: Path, tmp_path: Path, steps_here: list[list[str]], error_line: Fails
) -> None:
    """And a smaller one can be given then."""
    new_text.write_text(new_text.read_text() * 10)
    general = write_corpus(tmp_path / "general", [[["word"] * 8] * 4], [[["word"] * 8] * 40])
    out, options = tmp_path / "out", ["--general", general.path, "--general-share"]
    said = error_line(adapt(model, new_text, out, *options, 0.95))
    assert f"--general-share 0.95: {general.path} has so little general text that an epoch would read it " in said
    assert said.endswith("times, and at most 1,000 are possible: give a smaller share")
    assert [path.name for path in out.rglob("*")] == ["begun.json"]
    assert adapt(model, new_text, out, *options, 0.1) == 0


def test_sentences_that_are_to_be_left_out_are(
    model: Path, new_text: Path, tmp_path: Path, steps_here: list[list[str]]
) -> None:
    left_out = tmp_path / "dev.txt"
    left_out.write_text("\n".join(line for line in new_text.read_text().splitlines()[:3]) + "\n")
    assert adapt(model, new_text, tmp_path / "out", "--leave-out", left_out) == 0
    assert sum(Corpus(tmp_path / "out/corpus").record.settings["left_out_sentences"].values()) >= 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--general-share", "1"], "--general-share must be at least 0 and at most 0.95, not 1.0"),
        (["--epochs", "nan"], "--epochs must be"),
        (["--learning-rate", "0"], "--learning-rate must be above 0"),
        (["--max-time", "soon"], "--max-time takes a number"),
        (["--general", "nowhere"], "nowhere is not a finished corpus directory"),
    ],
)
def test_bad_options_are_one_sentence(
    model: Path, new_text: Path, tmp_path: Path, error_line: Fails, options: list[str], message: str
) -> None:
    assert message in error_line(adapt(model, new_text, tmp_path / "out", *options))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("train.nope=1", "--set: unknown key train.nope (known: train.directions, "),
        ("train.streams=0", "--set: train.streams must be at least 1"),
        ("nothing", "--set takes section.key=value, not 'nothing'"),
        ("schedule.decay_end=0.1", "first with --set: schedule.decay_end must be above"),
        ("encoder.cell_size=13", "the encoder has other sizes: cell_size (here 13, there 12)"),
        ("data.input_vectors=raw", "--set data.input_vectors: the corpus and its tables `input` and `target` are made"),
        ("data.corpus=corpora/mine", "--set data.corpus: the corpus and its tables"),
        ("data.sources={new=-1}", "--set: data.sources.new must be at least 0 and at most 1,000, not -1"),
        ("data.sources={new=0}", "--set data.sources gives all new text the weight 0: give a kind of it one above 0"),
        ("data.sources={tweets=2}", "--set data.sources: no text here is named tweets (it has general, new): correct"),
        ("train.device=gpu", "train.device: 'gpu' is not a device: use cpu, cuda or cuda:N"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_is_made(
    model: Path, new_text: Path, tmp_path: Path, error_line: Fails, given: str, message: str
) -> None:
    words = [str(model), str(new_text), str(tmp_path / "out"), *SHORT, "--set", given]
    assert message in error_line(main(words))
    assert not (tmp_path / "out").exists()


def test_a_run_that_has_lost_its_figures_is_reported_without_those_before(
    model: Path, new_text: Path, tmp_path: Path, steps_here: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert adapt(model, new_text, out) == 0
    after = [line for line in capsys.readouterr().out.splitlines() if "text, cosine" in line]
    metrics = out / "metrics.jsonl"
    last = metrics.read_text().splitlines()[-1]
    assert json.loads(last)["update"] > 0
    for left in ("", f"{last}\n"):  # all is lost, or the beginning
        metrics.write_text(left)
        assert adapt(model, new_text, out) == 0
        printed = capsys.readouterr().out
        assert f"{metrics} has lost the evaluation before the first update" in printed
        shown = [line for line in printed.splitlines() if "text, cosine" in line]
        assert shown == [f"{line[:32]}{'–':>10}{line[42:]}" for line in after]


@pytest.mark.parametrize(
    ("sets", "weights", "sampled"),
    [
        ((), {"general": 3 / 7 * 120 / 90}, 2 * 3 / 7 * 4000),
        (("data.sources={a=9}", "data.sources = {a=2.0}"), {"general": 3 / 7 * 170 / 90, "a": 2.0}, 2 * 3 / 7 * 6000),
        (("data.sources={a=0, general=0.25}",), {"general": 0.25, "a": 0.0}, TOKENS_AT_LEAST),
    ],
)
def test_general_text_has_its_share_beside_kinds_that_are_weighted(
    model: Path, tmp_path: Path, sets: tuple[str, ...], weights: dict[str, float], sampled: float
) -> None:
    sentences = {"a": 5, "b": 7, "general": 9}  # of ten tokens
    texts = [[[name] * 8] * number for name, number in sentences.items()]
    out = tmp_path / "out"
    write_corpus(out / "corpus", texts, texts[:1], sources=[*sentences, "a"])
    general = write_corpus(tmp_path / "general", [[["word"] * 8] * 1000], texts[:1])
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("four" * 2500)  # 2,000 tokens each, as estimated
    adaptation = Adaptation(
        model=read_model_directory(model),
        path=model,
        texts=(f"a={tmp_path / 'a.txt'}", f"b={tmp_path / 'b.txt'}"),
        held_out=(),
        leave_out=(),
        general=str(general.path),
        output=out,
        vectors=None,
        max_time=None,
        card={},
        sets=("train.streams=2", *sets),
    )
    sample, *_, training = adaptation.steps()
    sample.run()
    written = sum(len(line.split()) + 2 for line in (out / "general.txt").read_text().splitlines() if line)
    assert written == pytest.approx(sampled, abs=10)
    command = [str(word) for word in training.run() or ()]
    assert [each for each in command if "=" in each] == ["train.streams=2"]
    assert load_config(command[1]).data.sources == pytest.approx(weights)


def test_vectors_that_have_moved(
    model: Path, new_text: Path, tmp_path: Path, steps_here: list[list[str]], error_line: Fails
) -> None:
    """Those that the model was trained against, which are others than those it reads."""
    moved = tmp_path / "moved.txt"
    moved.write_text("".join(f"w{row} {row} 1 0 2 0 3 {-row} 1\n" for row in range(9)))
    named = {"origin": "was/here.txt", "fingerprint": open_word_vectors(str(moved), only=[]).fingerprint}
    whole = read_model_directory(model)
    record = replace(whole.output_layer, config=whole.output_layer.config | named)
    write_model_directory(tmp_path / "apart", replace(whole, output_layer=record))
    out = tmp_path / "out"
    assert adapt(tmp_path / "apart", new_text, out, "--general", "none", "--vectors", moved) == 0
    of_inputs, of_targets = [line[2] for line in steps_here if line[0] == "data_scripts.build_vectors"]
    assert of_inputs == whole.word_vectors.origin
    assert of_targets == str(moved)
    moved.write_text("w1 1 2 3 4 5 6 7 8\n")
    said = error_line(adapt(tmp_path / "apart", new_text, tmp_path / "other", "--vectors", moved))
    assert f"--vectors {moved} are neither those that" in said
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("lost", "options", "message"),
    [
        ("transform", ["--keep-targets"], "does not say how its target vectors were processed"),
        ("targets", [], "was not trained against word vectors"),
        ("rate", [], "does not say by which rate it was trained: give --learning-rate"),
        ("setting", [], "the settings of OLD: unknown key train.gone (known: "),
    ],
)
def test_a_model_that_cannot_go_on_is_refused_before_anything_is_made(
    model: Path, new_text: Path, tmp_path: Path, error_line: Fails, lost: str, options: list[str], message: str
) -> None:
    whole = read_model_directory(model)
    record = whole.output_layer
    if lost == "transform":  # as of older versions
        record = replace(record, transform=None)
    if lost == "targets":
        record = replace(record, config={"kind": "softmax"})
    training = {} if lost == "rate" else dict(whole.training)
    if lost == "setting":  # one of a version that is not this
        training["recipe"] = training["recipe"] | {"train.gone": 1}
    write_model_directory(tmp_path / "old", replace(whole, output_layer=record, training=training))
    message = message.replace("OLD", str(tmp_path / "old"))
    assert message in error_line(adapt(tmp_path / "old", new_text, tmp_path / "out", *options))
    assert not (tmp_path / "out").exists()


def test_a_contrastive_model_goes_on_with_its_own_settings(
    runs: TinyRuns, new_text: Path, tmp_path: Path, steps_here: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"kind": "contrastive", "extra_candidates": 3, "cosine_weight": 1.0}
    of_layer = {f"output_layer__{name}": value for name, value in settings.items()}
    model = runs.run("first", train__updates=4, evaluation__every_updates=4, optimiser__average=0.1, **of_layer).path
    out = tmp_path / "out"
    assert adapt(model / "model", new_text, out, "--keep-targets") == 0
    printed = capsys.readouterr().out
    assert f"going on from {model / 'model'}, as it is" in printed
    assert "general text, perplexity" in printed
    config = json.loads((out / "config.json").read_text())
    assert settings.items() <= config["output_layer"].items()
    assert config["optimiser"]["average"] == 0.1
    assert read_metrics(out, "evaluation")[0]["reciprocal_rank"] > 0


def test_a_run_and_its_model_give_the_same_settings(runs: TinyRuns) -> None:
    settings = {"train__precision": "auto", "train__recurrence": "plain", "train__threads": 1, "train__seed": 3}
    run = runs.run("first", train__updates=4, evaluation__every_updates=4, **settings).path
    first, second = (recipe_of(path, read_model_directory(path)) for path in (run, run / "model"))
    assert first == second
    assert first["train"] == {
        "directions": ["forward", "backward"],
        "streams": 4,
        "window": 5,
        "order": "sentences",
        "cut": "anywhere",
        "carry_state": True,
    }


def test_figures_of_any_size_stand_apart() -> None:
    large = {"new/perplexity": 176184.855, "new/constant_perplexity": 1.5}
    assert list(rows(large, large)) == [f"{'new text, perplexity':32}{'1.76e+05':>10}{'1.76e+05':>10}{'1.500':>16}"]


def test_a_sample_is_the_beginning_of_every_shard(tmp_path: Path, tiny_corpus: Corpus) -> None:
    whole = write_sample(tiny_corpus, tiny_corpus.train, tmp_path / "all.txt", tokens=10**9)
    assert whole == tiny_corpus.train_tokens
    text = (tmp_path / "all.txt").read_text()
    assert text.count("\n\n") + 1 == sum(shard.documents for shard in tiny_corpus.train)
    part = write_sample(tiny_corpus, tiny_corpus.train, tmp_path / "part.txt", tokens=whole // 4)
    assert whole // 4 <= part <= whole // 4 + 20 * len(tiny_corpus.train)
    own, beginning = tmp_path / "all of it.txt", tmp_path / "beginning.txt"
    for shard in tiny_corpus.train:
        write_sample(tiny_corpus, [shard], own, tokens=10**9)
        written = write_sample(tiny_corpus, [shard], beginning, tokens=shard.tokens // 4)
        assert shard.tokens // 4 <= written <= shard.tokens // 4 + 20
        assert own.read_text().startswith(beginning.read_text())


def test_a_sample_has_kinds_of_text_as_they_were_weighted(tmp_path: Path) -> None:
    texts = [[[name] * 8] * 200 for name in ("talk", "news", "rest")]
    corpus = write_corpus(tmp_path / "c", texts, texts[:1], sources=["talk", "news", "rest", "talk"])
    weights = {"talk": 2.0, "rest": 0.0, "unknown": 5.0}
    write_sample(corpus, corpus.train, tmp_path / "part.txt", tokens=900, weights=weights)
    words = Counter((tmp_path / "part.txt").read_text().split())
    assert words == {"talk": 8 * 60, "news": 8 * 30}


@pytest.mark.parametrize(("tokens", "tiny"), [(1000, 50), (3000, 150), (10**9, 210)])
def test_a_sample_has_a_kind_in_proportion_however_little_text_it_has(tmp_path: Path, tokens: int, tiny: int) -> None:
    corpus = write_corpus(
        tmp_path / "c",
        [[["tiny"] * 8] * 20, [["rest"] * 8] * 400],
        [[["rest"] * 8]],
        sources=["tiny", "rest", "rest"],
    )
    written = write_sample(corpus, corpus.train, tmp_path / "part.txt", tokens=tokens, weights={"tiny": 20.0})
    assert written == min(tokens, corpus.train_tokens)
    words = Counter((tmp_path / "part.txt").read_text().split())
    assert words == {"tiny": 8 * tiny, "rest": 8 * tiny}
