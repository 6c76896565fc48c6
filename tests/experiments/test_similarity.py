"""Word similarity: Spearman's ρ of cosines and human judgements, over the pairs that have vectors."""

from pathlib import Path

import numpy as np
import pytest
import torch
from elmoc.model import ElmoC
from elmoc.word_vectors.stored import LexiconVectors
from experiments.similarity import main, read_pairs
from scipy.stats import rankdata

VECTORS = "a 1 0\nb 1 1\nc 0 1\nd -1 1\nnone 0 0\n"
# cosines with a: b .71, c 0, d -.71; of c and d .71
PAIRS = "a\tb\t9\na\tc\t5\na\td\t0.5\nc\td\t7\na\tnone\t10\n"


def plain_rho(cosines: list[float], scores: list[float]) -> float:
    return float(np.corrcoef(rankdata(cosines), rankdata(scores))[0, 1])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    vectors, pairs = tmp_path / "v.vec", tmp_path / "EN-TEST.txt"
    vectors.write_text(VECTORS)
    pairs.write_text(PAIRS)
    return vectors, pairs


def cells(printed: str, name: str) -> list[str]:
    (line,) = [line for line in printed.splitlines() if line.startswith(f"| {name}")]
    return line.replace("|", " ").split()


def test_of_word_vectors(files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    vectors, pairs = files
    spaces = pairs.with_name("spaces.txt")
    spaces.write_text("a b 1\n\na  c 2\na d 3.5\n")
    assert main([str(vectors), str(pairs), str(spaces)]) == 0
    printed = capsys.readouterr().out
    half = 0.5**0.5
    rho = plain_rho([half, 0, -half, half], [9, 5, 0.5, 7])
    assert cells(printed, "EN-TEST") == ["EN-TEST", "5", "4", f"{100 * rho:.1f}"]
    assert cells(printed, "spaces") == ["spaces", "3", "3", "-100.0"]
    stored = pairs.with_name("v.safetensors")
    LexiconVectors(torch.tensor([[1.0, 0], [1, 1], [0, 1], [-1, 1], [1, 2]]), [*"abcd", "<unk>"]).write(stored)
    assert main([str(stored), str(pairs)]) == 0
    assert cells(capsys.readouterr().out, "EN-TEST")[2] == "4", "what stands for unknown words is no vector"


def test_of_a_model(model_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["one", "two", "three", "four", "five"]
    pairs = [(first, second, len(first) + 3 * len(second)) for first in words for second in words if first < second]
    (tmp_path / "words.txt").write_text("".join(f"{a} {b} {score}\n" for a, b, score in pairs))
    assert main([str(model_path), str(tmp_path / "words.txt")]) == 0
    model = ElmoC.from_pretrained(model_path)
    expected = []
    for vectors in (
        {word: torch.from_numpy(model.word_vectors.lookup([word])[0]) for word in words},
        {word: model.embed([word])[0, 0] for word in words},
    ):
        cosines = [torch.cosine_similarity(vectors[a], vectors[b], dim=0).item() for a, b, _ in pairs]
        expected.append(f"{100 * plain_rho(cosines, [score for *_, score in pairs]):.1f}")
    printed = capsys.readouterr().out
    assert cells(printed, "words") == ["words", "10", "10", *expected]
    assert printed.splitlines()[2].endswith("|   vectors |   layer 0 |")


@pytest.mark.parametrize(
    "text",
    [
        "a,b,9,8,10\na,c,5,5,5\n",
        "# of 13 judges\nWord 1,Word 2,Human (mean),1,2\na,b,9,8,10\na,c,5,5,5\n",
        'word1;word2;similarity\n"a";"b";9.0\na;c;5\n',
        "a\tb\tV\t9\tSYNONYMS\na\tc\tV\t5\tNONE\n",
        "word1\tword2\tPOS\tscore\tassociation\na\tb\tN\t9\t.5\na\tc\tA\t5.0\t1\n",
        "a-v b-n 9\na-v c-j 5\n",
    ],
    ids=["judges", "WordSim", "RG", "SimVerb", "SimLex", "MEN"],
)
def test_files_are_read_as_they_are_handed_out(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text(text)
    assert read_pairs(path) == [("a", "b", 9), ("a", "c", 5)]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a b 1\na b\n", "line 2: "),
        ("a b 1\na b much\n", "line 2: "),
        ("a b 1\na b c 2\n", "line 2: "),
        ("t\ta\tb\t7\nt\tc\td\t8\n", "line 2: "),
        ("<html lang=en class=x>\n<p>Access denied</p>\n", "line 2: "),
    ],
)
def test_bad_files(files: tuple[Path, Path], text: str, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    vectors, pairs = files
    pairs.write_text(text)
    assert main([str(vectors), str(pairs)]) == 1
    assert f"{pairs}, {place}" in capsys.readouterr().err
