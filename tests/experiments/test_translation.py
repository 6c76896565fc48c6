"""Translation: every way to keep vectors has a row a subword; padding and later words are not seen; a run is scored."""

import gzip
import json
from pathlib import Path

import experiments.translation as translation
import pytest
import torch
from experiments.translation import BEGIN, END, PAD, ROWS, Options, Translator, run

PIECES = [f"piece{number}" for number in range(20)]


@pytest.mark.parametrize("name", ROWS)
def test_padding_and_later_words_are_not_seen_and_all_vectors_are_trained(name: str) -> None:
    torch.manual_seed(1)
    model = Translator(ROWS[name], PIECES).eval()
    assert len(model.vectors) == 4 - ROWS[name].roles
    source, target = torch.tensor([[BEGIN, 5, 6, END]]), torch.tensor([[BEGIN, 7, 8, 9]])
    scores = model(source, target)
    assert scores.shape == (1, 4, 20)
    padded = torch.tensor([[BEGIN, 5, 6, END, PAD], [BEGIN, 7, 7, 7, END]])
    later = torch.tensor([[BEGIN, 7, 8, 11, PAD], [BEGIN, 3, 4, 5, 6]])
    torch.testing.assert_close(model(padded, later)[0, :3], scores[0, :3], atol=1e-4, rtol=1e-4)
    model.train()(padded, later).square().sum().backward()
    for each in model.vectors:
        assert all(weight.grad is not None and weight.grad.any() for weight in each.parameters())
        assert each.rows().shape == (20, translation.WIDTH)
    assert all(END not in line for line in model.eval().translate(padded))


def test_a_run_learns_to_copy_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translation, "SUBWORDS", 300)
    monkeypatch.setattr(translation, "BATCH", 16)
    lines = "".join(f"a b c d {'e f' if row % 2 else 'g h'}\n" for row in range(200))
    for name in ("train.en", "train.de", "val.en", "val.de"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(lines.encode()))
    options = Options(tmp_path / "out", tmp_path, updates=40, rows=("tied, three ways",), seeds=(1,), threads=1)
    for _ in range(2):
        run(options)
    (result,) = map(json.loads, (tmp_path / "out/results.jsonl").read_text().splitlines())
    assert result["bleu"] > 50
