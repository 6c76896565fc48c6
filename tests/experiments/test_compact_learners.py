"""Learners of compact vectors: their plain twins, and the files they write."""

import math
import re
from pathlib import Path

import experiments.compact.learners.learning as learning
import numpy as np
import pytest
import torch
from elmoc.word_vectors.opening import open_word_vectors
from experiments.compact.learners.__main__ import main
from experiments.compact.learners.codes import CodeLearner
from experiments.compact.learners.learning import squared_distance
from torch import Tensor

CODES = ("codes", "--codebooks", "3", "--entries", "5", "--steps", "200", "--learning-rate", "0.03")
ALONE = ("alone", "--inner-size", "16", "--epochs", "200", "--learning-rate", "0.01")
WORDS = [f"w{number}" for number in range(40)]


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "PART", 20)


@pytest.fixture
def table(tmp_path: Path) -> list[str]:
    """Arguments that name vectors of forty words."""
    generator = np.random.default_rng(3)
    rows = generator.standard_normal((5, 6))[np.arange(40) % 5] + 0.1 * generator.standard_normal((40, 6)) + 2
    lines = [" ".join([word, *(f"{number:.4f}" for number in row)]) for word, row in zip(WORDS, rows, strict=True)]
    (tmp_path / "v.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "words").write_text("\n".join([*WORDS, "unheard-of"]) + "\n")
    return [str(tmp_path / "v.txt"), "--words", str(tmp_path / "words")]


def run(command: tuple[str, ...], table: list[str], out: Path, *more: str) -> int:
    return main([command[0], table[0], str(out), *table[1:], *command[1:], *more])


def plain_codes(learner: CodeLearner, vectors: Tensor, noise: Tensor) -> Tensor:
    """The loss of Shu and Nakayama (2018), equations 3 to 9, number by number."""
    total = vectors.new_zeros(())
    codebooks, entries, _ = learner.codebooks.shape
    for vector, drawn in zip(vectors, noise, strict=True):
        below = zip(learner.hidden.weight, learner.hidden.bias, strict=True)
        hidden = torch.stack([torch.tanh(row @ vector + bias) for row, bias in below])
        made = torch.zeros_like(vector)
        for book in range(codebooks):
            powers = []
            for entry in range(entries):
                place = book * entries + entry
                score = learner.scores.weight[place] @ hidden + learner.scores.bias[place]
                alpha = (1 + score.exp()).log() + 1e-8
                powers.append((alpha.log() + drawn[book, entry]).exp())
            for power, codeword in zip(powers, learner.codebooks[book], strict=True):
                made = made + power / sum(powers) * codeword
        total = total + sum((a - b) ** 2 for a, b in zip(vector, made, strict=True))
    return total / len(vectors)


def assert_same_gradients(ours: Tensor, theirs: Tensor, module: torch.nn.Module) -> None:
    torch.testing.assert_close(ours, theirs)
    trained = [each for each in module.parameters() if each.requires_grad]
    for mine, other in zip(*(torch.autograd.grad(loss, trained) for loss in (ours, theirs)), strict=True):
        torch.testing.assert_close(mine, other)
        assert mine.any()


def test_the_code_learner_is_its_plain_twin(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(1)
    learner = CodeLearner(5, 3, 4).double()
    for weight in learner.parameters():
        torch.nn.init.normal_(weight)
    vectors = torch.randn(7, 5, dtype=torch.float64)
    torch.manual_seed(2)
    noise = -torch.empty(7, 3, 4, dtype=torch.float64).exponential_().log()
    torch.manual_seed(2)
    made, choices = learner(vectors)
    torch.testing.assert_close(choices.sum(dim=2), torch.ones(7, 3, dtype=torch.float64))
    assert_same_gradients(squared_distance(vectors, made), plain_codes(learner, vectors, noise), learner)
    monkeypatch.setattr(torch.nn.functional, "gumbel_softmax", lambda scores, dim: (1e6 * scores).softmax(dim))
    cold, _ = learner(vectors)
    torch.testing.assert_close(learner.codebooks[torch.arange(3), learner.encode(vectors)].sum(dim=1), cold)


@pytest.mark.parametrize("command", [CODES, ALONE, (*ALONE, "--filter", "binary", "--fixed-base")])
def test_the_error_that_is_told_is_that_of_the_file(
    tmp_path: Path, table: list[str], command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.safetensors"
    assert run(command, table, out) == 0
    told, note = capsys.readouterr()
    assert "1 words without a vector are left out" in note
    vectors, rows = open_word_vectors(out), open_word_vectors(table[0]).lookup(WORDS)
    squares = [float(((a - b) ** 2).sum()) for a, b in zip(rows, vectors.lookup(WORDS), strict=True)]
    pattern = r"loss ‖e − ẽ‖² (\S+) \(‖e‖² (\S+), around their mean (\S+)\), distance (\S+), cosine"
    numbers = [float(each) for each in re.search(pattern, told).groups()]  # type: ignore[union-attr]
    centred = float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())
    distance = np.mean([math.sqrt(each) for each in squares])
    assert numbers == pytest.approx([np.mean(squares), np.square(rows).sum() / 40, centred, distance], rel=1e-3)
    assert numbers[0] < (0.5 * centred if command is CODES else 0.5 * numbers[1])
    # Codes are kept of the words alone; ALONE makes a vector of any string.
    assert vectors.lookup(["unheard-of"]).any() == (command is not CODES)
