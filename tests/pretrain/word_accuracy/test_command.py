"""The command word_accuracy: the metrics of a whole run against a plain program, and what it refuses."""

import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from elmoc.corpus import BEGIN, END, Corpus
from elmoc.files.records import read_json, write_json
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.subwords import StoredSubwords, Subwords, begins_word
from pretrain.data.windows import held_out_windows
from pretrain.run.directory import RunDirectory
from pretrain.word_accuracy.__main__ import main, measure_word_accuracy
from tests.pretrain.conftest import TinyRuns

LOOKUP: dict[str, Any] = {
    "input_layer__kind": "subwords",
    "encoder__input_layer": "identity",
    "output_layer__kind": "softmax",
    "output_layer__tied": True,
    "output_layer__projection_regularisation": 0.15,
    "train__updates": 60,
    "schedule__base": 0.05,
}
OF_WORDS: dict[str, Any] = {"input_layer__kind": "vectors", "output_layer__kind": "continuous"}
CANDIDATES = 15
WORDS = 40


@pytest.fixture
def runs(runs: TinyRuns, tiny_subwords: Corpus) -> TinyRuns:
    runs.corpus = tiny_subwords.path
    return runs


def plain_ranks(run: RunDirectory, words: Corpus, direction: str) -> tuple[list[int], list[int]]:
    """The held-out words, and the rank of each: every candidate is written behind all text before it, and scored."""
    model = read_model_directory(run.path)
    stored = model.read_stored_vectors()
    assert isinstance(stored, StoredSubwords)
    subwords, weights = Subwords(stored.units, stored.merges), model.output_layer.weights or {}
    begins = begins_word(stored.units)
    encoder = model.encoder.direction(direction)

    def path(row: int) -> list[int]:
        word = words.lexicon[row]
        units = [stored.units.index(word)] if word in (BEGIN, END) else subwords.rows([word])[0]
        return units if direction == "forward" else units[::-1]

    @torch.no_grad()
    def log_probabilities(units: list[int]) -> np.ndarray:
        """[n, C]: of what comes after each of some units."""
        states = encoder(stored.vectors[units].unsqueeze(0)).layer_states[-1][0]
        scores = states @ weights["shared.projection"].T @ weights["shared.rows"].T + weights["shared.bias"]
        return scores.log_softmax(dim=1).double().numpy()

    true, ranks = [], []
    windows = list(held_out_windows(words, streams=4, window=5, directions=(direction,), words=WORDS))
    for row in range(4):
        text = [int(windows[0][direction][row, 0]), *(int(id_) for each in windows for id_ in each[direction][row, 1:])]
        for place in range(1, len(text)):
            before = [unit for id_ in text[:place] for unit in path(id_)]
            scores = []
            for candidate in range(CANDIDATES):
                own = path(candidate)
                found = log_probabilities(before + own)[len(before) - 1 :]
                score = sum(found[step][unit] for step, unit in enumerate(own))
                if direction == "forward" and words.lexicon[candidate] not in (BEGIN, END):
                    score += np.log(np.exp(found[-1][begins]).sum())
                scores.append(score)
            true.append(text[place])
            inside = text[place] < CANDIDATES
            ranks.append(sum(score >= scores[text[place]] for score in scores) if inside else 0)
    return true, ranks


def test_metrics_are_those_of_a_plain_program(
    runs: TinyRuns, tiny_corpus: Corpus, capsys: pytest.CaptureFixture[str]
) -> None:
    run = runs.run("run", **LOOKUP)
    values = measure_word_accuracy(run.path, words=WORDS, candidates=CANDIDATES)
    for direction in ("forward", "backward"):
        true, ranks = plain_ranks(run, tiny_corpus, direction)
        assert len(true) == WORDS
        for most in (1, 10):
            expected = np.mean([0 < rank <= most for rank in ranks])
            assert values[f"{direction}_accuracy_at_{most}"] == pytest.approx(expected, abs=1e-9)
            assert values[f"{direction}_constant_accuracy_at_{most}"] == pytest.approx(
                np.mean([id_ < min(most, CANDIDATES) for id_ in true])
            )
        assert values[f"{direction}_outside"] == pytest.approx(np.mean([id_ >= CANDIDATES for id_ in true]))
        assert 0 < values[f"{direction}_outside"] < 0.5
    assert values["constant_accuracy_at_1"] < values["accuracy_at_1"] < 1
    assert values["accuracy_at_1"] == np.mean([values["forward_accuracy_at_1"], values["backward_accuracy_at_1"]])
    asked = {"updates": 60, "words": WORDS, "candidates": CANDIDATES}
    assert read_json(run.path / "word_accuracy.json", advice="") == asked | values
    capsys.readouterr()
    assert main([str(run.path), "--words", str(WORDS), "--candidates", str(CANDIDATES)]) == 0
    assert f"accuracy@1 {values['accuracy_at_1']:.4f}" in capsys.readouterr().out


def test_a_corpus_that_has_moved_is_named(
    runs: TinyRuns,
    tiny_corpus: Corpus,
    error_line: Callable[[int], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    runs.corpus = Path(shutil.copytree(runs.corpus, runs.folder / "corpus"))
    run = runs.run("run", **LOOKUP | {"train__updates": 1})
    moved = runs.corpus.rename(runs.corpus.with_name("moved"))
    command = [str(run.path), "--words", "5", "--candidates", "9"]
    assert "is not a finished corpus directory" in error_line(main(command))
    with monkeypatch.context() as patched:
        data = SimpleNamespace(corpus=tiny_corpus)
        patched.setattr("pretrain.word_accuracy.__main__.open_setup", lambda _: SimpleNamespace(data=data))
        assert f"{moved} has other subwords than the model" in error_line(main([*command, f"--units={moved}"]))
    assert main([*command, f"--units={moved}"]) == 0
    assert "whole words, held out" in capsys.readouterr().out


def test_a_run_of_a_gpu_is_measured_where_there_is_none(runs: TinyRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.run("run", **LOOKUP | {"train__updates": 1})
    config = read_json(run.config, advice="")
    config["train"] |= {"device": "cuda", "precision": "bf16", "cuda_graph": True}
    write_json(run.config, config)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("pretrain.execution.device.has_bf16", lambda device: False)
    assert main([str(run.path), "--words", "5", "--candidates", "9"]) == 0


def test_what_cannot_be_measured_is_refused(
    runs: TinyRuns, tiny_corpus: Corpus, error_line: Callable[[int], str]
) -> None:
    of_units = runs.run("units", **LOOKUP | {"train__updates": 1})
    for option in ("--words", "--candidates"):
        assert f"{option} must be at least 1, not 0" in error_line(main([str(of_units.path), option, "0"]))
    said = error_line(main([str(of_units.path), "--corpus", str(runs.corpus)]))
    assert "is a corpus of subwords" in said
    (of_units.model / "heads.safetensors").unlink()
    said = error_line(main([str(of_units.path), "--words", "5"]))
    assert f"{of_units.model} was kept without its output layer (heads.safetensors): copy" in said
    assert "word_accuracy.json" not in [each.name for each in of_units.path.iterdir()]
    transformer = {"encoder__kind": "transformer", "encoder__cell_size": None, "encoder__heads": 2}
    sizes = {"encoder__feedforward_size": 12, "encoder__layers": 1, "train__updates": 1}
    other = runs.run("transformer", **LOOKUP | transformer | sizes)
    assert "has an encoder (transformer) that carries no state" in error_line(main([str(other.path)]))
    few = runs.run("few", **LOOKUP | {"output_layer__tied": False, "output_layer__types": 40, "train__updates": 1})
    assert "has no softmax over all units" in error_line(main([str(few.path)]))
    runs.corpus = tiny_corpus.path
    of_words = runs.run("words", train__updates=1)
    assert "reads words, so that its evaluations are of words already" in error_line(main([str(of_words.path)]))
    assert "holds no run" in error_line(main([str(tiny_corpus.path)]))
