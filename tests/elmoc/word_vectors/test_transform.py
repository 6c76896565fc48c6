"""Transforms: centring, whitening and boundary vectors, beside plain computations."""

from pathlib import Path

import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.word_vectors.joined import JoinedVectors
from elmoc.word_vectors.sources import RandomVectors, TextVectors
from elmoc.word_vectors.transform import VectorTransform, WordRows, boundary_vectors, fit_transform


def test_transforms_in_plain_words() -> None:
    generator = np.random.default_rng(0)
    raw = (generator.standard_normal((200, 5)) * [1, 2, 3, 4, 5] + 1).astype(np.float32)
    raw[7] = 0
    counts = generator.integers(0, 9, 200)
    repeated = np.repeat(raw, counts * raw.any(axis=1), axis=0).astype(np.float64)  # each word as often as it occurs
    words = [f"w{row}" for row in range(200)]
    boundary = np.ones((2, 5), dtype=np.float32)

    def fit(text: str) -> VectorTransform:
        return fit_transform(text, raw, counts, boundary)

    transform = fit("centre")
    assert transform.boundary is boundary
    assert transform.mean == pytest.approx(repeated.mean(axis=0), abs=1e-5)
    assert not transform.apply(words, raw)[7].any()
    whitened = (repeated - repeated.mean(axis=0)) @ fit("whiten").matrix
    assert whitened.T @ whitened / len(whitened) == pytest.approx(np.eye(5), abs=1e-4)
    raw[:, 0] *= 1e-4  # less than rounding: such a direction stays short
    assert np.linalg.norm(fit_transform("whiten", raw, counts, boundary).matrix, 2) < 400 / raw.std(axis=0).max()
    assert (fit("none").mean, fit("none").matrix) == (None, None)
    assert fit("centre").mean is not None
    assert fit("centre").matrix is None
    with pytest.raises(InputError, match="centre"):
        fit_transform("centre", 0 * raw, counts, boundary)


@pytest.mark.filterwarnings("error")
def test_vectors_that_are_all_the_same_cannot_be_whitened() -> None:
    raw = np.zeros((4, 3), dtype=np.float32)
    for known in (1, 3):  # words that have a vector
        raw[:known] = [0.1, -0.7, 3.3]
        with pytest.raises(InputError, match="whiten"):
            fit_transform("whiten", raw, np.array([3, 7, 11, 2]), np.ones((2, 3), dtype=np.float32))


def test_boundary_vectors(tmp_path: Path) -> None:
    (tmp_path / "v.vec").write_text("</s> 3 4 0 0\nthe 1 2 3 4\n")
    vectors = TextVectors(tmp_path / "v.vec")
    begin, end = boundary_vectors(vectors, mean_norm=7.0)
    assert end.tolist() == [3, 4, 0, 0]
    assert np.linalg.norm(begin) == pytest.approx(7.0)
    assert np.array_equal(boundary_vectors(vectors, mean_norm=7.0)[0], begin)
    other = RandomVectors(seed=1, size=3)
    joined = boundary_vectors(JoinedVectors([vectors, other], [1.0, 2.0]), [7.0, 1.0])
    np.testing.assert_array_equal(joined, np.hstack([[begin, end], 2 * other.lookup(["<s>", "</s>"])]))
    transform = VectorTransform(boundary=np.stack([begin, end]))
    assert np.array_equal(transform.lookup(["<s>", "the", "</s>"], vectors), [begin, [1, 2, 3, 4], end])


def test_words_in_another_normal_form_are_told_once(capsys) -> None:
    rows = WordRows(VectorTransform(np.zeros((2, 4), np.float32)), RandomVectors(seed=1, size=4))
    rows.look_up([["Zürich", "क\u093c", *map(str, range(150))], ["Gene\u0300ve"]])
    assert not capsys.readouterr().err
    rows.look_up([["Bru\u0308hl", "bei", "Ko\u0308ln"]])
    rows.look_up([["Du\u0308ren"]])
    assert capsys.readouterr().err.count("normal form NFC") == 1
