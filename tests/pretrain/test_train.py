"""The train loop: it learns, settings do what they say, and bad inputs end in one sentence."""

import json
from itertools import islice

import numpy as np
import pytest
import torch
from elmoc.corpus import Corpus
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.table import VectorTable, write_vector_table
from pretrain.optimiser import Progress, ScheduleConfig, learning_rate
from pretrain.run.directory import RunDirectory, read_metrics
from tests.conftest import Fails
from tests.pretrain.conftest import TinyRuns, assert_same, last_checkpoint, needs_bf16
from tests.pretrain.data.reading import updates_of_epoch, windows_of_shards
from tests.tiny import add_table, learnable_sentences, write_corpus

from elmoc import ElmoC
from elmoc.encoders import DIRECTIONS


def encoder_differs(one: RunDirectory, other: RunDirectory) -> bool:
    left, right = last_checkpoint(one)["encoder"], last_checkpoint(other)["encoder"]
    return any(not torch.equal(left[name], right[name]) for name in left)


def test_it_learns_what_there_is_to_learn(runs: TinyRuns) -> None:
    run = runs.run("run", train__updates=150, encoder__cell_size=32, encoder__projection_size=16)
    losses = [line["loss"] for line in read_metrics(run.path, "train")]
    assert losses[-1] < 0.6 * losses[0]
    first, *_, last = read_metrics(run.path, "evaluation")
    for direction in DIRECTIONS:
        assert (
            last[f"{direction}_cosine"] > max(last[f"{direction}_constant_cosine"], first[f"{direction}_cosine"]) + 0.2
        )
        assert last[f"{direction}_accuracy_at_1"] > 2 * last[f"{direction}_constant_accuracy_at_1"]
    (states,) = ElmoC.from_pretrained(run.path).embed_batch([["w3", "w4"]])
    assert states.shape == (3, 2, 32)
    exported = read_model_directory(run.path)
    best = max(read_metrics(run.path, "evaluation"), key=lambda line: line["cosine"])
    assert exported.training["updates"] == best["update"]
    assert exported.training["held_out"]["cosine"] == pytest.approx(best["cosine"], abs=1e-5)


def test_metrics_are_one_object_a_line_and_add_up(runs: TinyRuns) -> None:
    run = runs.run("run", train__updates=10, log__every_updates=3, evaluation__every_updates=4)

    def strict(constant: str) -> float:
        raise AssertionError(f"{constant} is no JSON")

    lines = [json.loads(line, parse_constant=strict) for line in run.metrics.read_text().splitlines()]
    assert [(line["kind"], line["update"]) for line in lines] == [
        ("evaluation", 0),
        ("train", 3),
        ("evaluation", 4),
        ("train", 6),
        ("evaluation", 8),
        ("train", 9),
        ("train", 10),
        ("evaluation", 10),
    ]
    for line in lines:
        assert line["words"] == line["update"] * 4 * 5
        if line["kind"] == "train":
            assert line["loss"] == pytest.approx((line["forward_loss"] + line["backward_loss"]) / 2)
            done = line["update"] - 1
            rate = learning_rate(ScheduleConfig(base=0.01), update=done, progress=Progress(done, 10), streams=4)
            assert line["learning_rate"] == rate


def test_a_line_has_the_means_over_its_own_updates(runs: TinyRuns) -> None:
    several, each = (
        read_metrics(runs.run(f"run{every}", train__updates=8, log__every_updates=every).path, "train")
        for every in (3, 1)
    )
    names = [f"{direction}_{name}" for direction in DIRECTIONS for name in ("loss", "gradient_norm")]
    for line, (first, last) in zip(several, ((0, 3), (3, 6), (6, 8)), strict=True):
        assert line["update"] == last
        for name in ("loss", *names):
            values = [own[name] for own in each[first:last]]
            assert line[name] == pytest.approx(np.mean(values)), name
            assert line[name] != pytest.approx(values[-1]), name


# A weight that is read at every step, in bf16.
PLAIN_BF16 = {"train__precision": "bf16", "train__recurrence": "plain"}


@pytest.mark.parametrize("own", [{}, pytest.param(PLAIN_BF16, marks=needs_bf16)], ids=["float32", "plain bf16"])
@pytest.mark.parametrize("threads", [1, 2])
def test_directions_together_are_the_directions_apart(runs: TinyRuns, threads: int, own: dict[str, str]) -> None:
    together = runs.run("together", train__threads=threads, **own)
    apart = {each: runs.run(each, train__threads=1, train__directions=[each], **own) for each in DIRECTIONS}
    both = last_checkpoint(together)
    for direction in DIRECTIONS:
        alone = last_checkpoint(apart[direction])
        for kind in ("encoder", "heads"):
            same = {name: value for name, value in both[kind].items() if name.startswith(direction)}
            assert_same(dict(alone[kind]), same, kind)
        assert_same(alone["recurrent"][direction], both["recurrent"][direction])
    whole = read_model_directory(together.path)
    for direction, run in apart.items():
        model = read_model_directory(run.path)
        half = whole.encoder.direction(direction).state_dict()
        assert_same(dict(model.encoder.direction(direction).state_dict()), dict(half))
        assert model.training["held_out"]["cosine"] == whole.training["held_out"][f"{direction}_cosine"]


def test_carried_state_makes_a_difference_from_the_second_update_on(runs: TinyRuns) -> None:
    carried, fresh = (
        [runs.run(f"{carry}{updates}", train__updates=updates, train__carry_state=carry) for updates in (1, 2)]
        for carry in (True, False)
    )
    assert_same(last_checkpoint(carried[0])["encoder"], last_checkpoint(fresh[0])["encoder"])
    assert encoder_differs(carried[1], fresh[1])
    assert last_checkpoint(fresh[1])["recurrent"] == {"forward": None, "backward": None}


def test_dropout_is_drawn_from_the_seed_alone(runs: TinyRuns) -> None:
    plain = runs.run("plain", encoder__dropout=0.0)
    torch.manual_seed(123)
    dropped = runs.run("dropped", encoder__dropout=0.5)
    torch.manual_seed(456)
    again = runs.run("again", encoder__dropout=0.5)
    for kind in ("encoder", "heads", "optimisers"):
        assert_same(last_checkpoint(dropped)[kind], last_checkpoint(again)[kind], kind)
    assert encoder_differs(plain, dropped)


def test_targets_without_a_direction_are_counted(runs: TinyRuns, tiny_corpus: Corpus) -> None:
    run = runs.run("run", data__target_vectors="gaps", train__updates=20)
    zero = [tiny_corpus.ids[word] for word in ("w3", "w4")]
    windows = windows_of_shards(tiny_corpus, 4, 5)
    expected = np.cumsum(
        [sum(np.isin(ids[:, 1:], zero).sum() for ids in window.ids.values()) for window in islice(windows, 20)]
    )
    lines = read_metrics(run.path, "train")
    assert [line["masked_targets"] for line in lines] == [expected[line["update"] - 1] for line in lines]
    assert expected[-1] > 0
    assert read_metrics(runs.run("whole").path, "train")[-1]["masked_targets"] == 0


def test_epochs_give_the_updates_unless_they_are_given(runs: TinyRuns, tiny_corpus: Corpus) -> None:
    per_epoch = updates_of_epoch(tiny_corpus, 24, 20)
    run = runs.run("run", train__updates=0, train__epochs=1.5, train__streams=24, train__window=20)
    checkpoint = last_checkpoint(run)
    assert checkpoint["update"] == checkpoint["updates"] == round(1.5 * per_epoch)
    assert checkpoint["position"]["epoch"] == 1


@needs_bf16
def test_bf16_trains_with_weights_in_float32(runs: TinyRuns) -> None:
    run = runs.run("run", train__precision="bf16", train__updates=60)
    losses = [line["loss"] for line in read_metrics(run.path, "train")]
    assert losses[-1] < losses[0]
    checkpoint = last_checkpoint(run)
    assert {tensor.dtype for tensor in checkpoint["encoder"].values()} == {torch.float32}
    assert {part.dtype for state in checkpoint["recurrent"]["forward"] for part in state} == {torch.float32}
    assert encoder_differs(run, runs.run("float32", train__updates=60))


def test_a_loss_that_is_not_finite_ends_the_run(runs: TinyRuns, error_line: Fails) -> None:
    # Of a word that is not in the held-out text.
    held_out = [sentence for sentence in learnable_sentences(40, 1) if "w7" not in sentence]
    corpus = write_corpus(runs.folder / "corpus", [learnable_sentences(50, 0)], [held_out])
    vectors = RandomVectors(seed=5, size=8)
    rows = add_table(corpus, "raw", vectors)
    rows[corpus.ids["w7"], 2] = 3e38
    transform = VectorTable(corpus, "raw").transform
    write_vector_table(corpus, "raw", rows=rows, vectors=vectors, transform=transform, post_processing="none")
    runs.corpus = corpus.path
    assert "loss is nan at update" in error_line(runs.status("run"))
    assert "NaN" not in (runs.folder / "run" / "metrics.jsonl").read_text()
