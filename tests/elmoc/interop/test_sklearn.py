"""scikit-learn: raw texts to vectors in its pipelines and searches."""

import pickle
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elmoc.errors import InputError
from elmoc.interop.sklearn import ElmocVectorizer
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.sources import RandomVectors
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from tests.tiny import tiny_model

from elmoc import ElmoC

TEXTS = [
    "a good film . It is good !",
    "a bad film",
    "",
    "Nice , a good one .",
    "no , bad",
    "It is bad !",
    "good",
    "bad",
]
LABELS = [1, 0, 1, 1, 0, 0, 1, 0]


@pytest.fixture
def vectorizer(session_model: Path) -> ElmocVectorizer:
    return ElmocVectorizer(session_model, precision="float32")


# Of scikit-learn's checks those run that need no numbers as input: it skips the others itself.
@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_scikit_learns_own_checks(vectorizer: ElmocVectorizer) -> None:
    assert [each["status"] for each in check_estimator(vectorizer)] == ["passed"]


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_vectors_are_those_of_embed_texts(vectorizer: ElmocVectorizer, session_model: Path, pooling: str) -> None:
    expected = ElmoC.from_pretrained(session_model, precision="float32").embed_texts(TEXTS, pooling=pooling)  # type: ignore[call-overload]
    vectorizer.set_params(pooling=pooling)
    np.testing.assert_array_equal(vectorizer.fit_transform(TEXTS), expected)
    np.testing.assert_array_equal(vectorizer.transform(np.array(TEXTS)), expected)
    assert list(vectorizer.get_feature_names_out()) == [f"elmocvectorizer{number}" for number in range(10)]


def test_sif_is_that_of_a_plain_loop(vectorizer: ElmocVectorizer, elmo: ElmoC) -> None:
    texts = elmo.embed_texts(TEXTS, pooling=None)
    counts = Counter(word for text in texts for word in text.words)
    means = np.zeros((len(TEXTS), 10))
    for mean, text in zip(means, texts, strict=True):
        for word, state in zip(text.words, text.states.mean(0).numpy().astype(float), strict=True):
            mean += state * 1e-3 / (1e-3 + counts[word] / sum(counts.values())) / len(text.words)
    # The direction of the largest eigenvalue of the vectors' second moments.
    common = np.linalg.eigh(means.T @ means)[1][:, -1]
    expected = means - np.outer(means @ common, common)
    np.testing.assert_allclose(vectorizer.set_params(pooling="sif").fit_transform(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(vectorizer)).transform(TEXTS), expected, atol=1e-5)
    [unseen] = elmo.embed_texts(["unseen"], pooling="mean")
    [vector] = vectorizer.transform(["unseen"])
    np.testing.assert_allclose(vector, unseen - (unseen @ common) * common, atol=1e-5)


def test_in_a_pipeline_and_a_search_of_two_processes(vectorizer: ElmocVectorizer) -> None:
    pipeline = make_pipeline(vectorizer, LogisticRegression())
    search = GridSearchCV(pipeline, {"elmocvectorizer__pooling": ["mean", "max", "sif"]}, cv=2, n_jobs=2)
    search.fit(TEXTS, LABELS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    alone = GridSearchCV(clone(pipeline), search.param_grid, cv=2).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


def test_a_table_of_pandas(vectorizer: ElmocVectorizer) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is in the environment of the integrations")
    table = pandas.DataFrame({"text": TEXTS}, index=range(5, 13))
    found = vectorizer.set_output(transform="pandas").fit_transform(table["text"])
    assert list(found.columns) == [f"elmocvectorizer{number}" for number in range(10)]
    assert list(found.index) == list(table.index)
    with pytest.raises(InputError, match=r"^texts are a list of strings, or one column of a table"):
        vectorizer.fit(table)


def test_another_model_is_refused_and_one_that_has_changed_is_read_anew(
    vectorizer: ElmocVectorizer, model_path: Path, tmp_path: Path
) -> None:
    vectorizer.set_params(model=model_path)
    before = vectorizer.fit_transform(TEXTS)
    # The same encoder on other word vectors.
    write_model_directory(tmp_path / "other", tiny_model(vectors=RandomVectors(seed=8, size=4)))
    for other in (tmp_path / "other", model_path):
        if other == model_path:
            shutil.rmtree(model_path)
            write_model_directory(model_path, tiny_model(vectors=RandomVectors(seed=8, size=4)))
        with pytest.raises(InputError, match=r"is not the model that this was fitted with$"):
            vectorizer.set_params(model=other).transform(TEXTS)
    assert np.abs(vectorizer.fit_transform(TEXTS) - before).max() > 1e-3


@pytest.mark.parametrize(
    ("texts", "settings", "said"),
    [
        ([1], {}, "text 1 is 1"),
        ("a text", {}, "texts are a list of strings, or one column"),
        (None, {}, "texts are a list of strings, or one column"),
        ({"a": "text"}, {}, "texts are a list of strings, or one column"),
        ([], {}, "there are no texts"),
        (["a"], {"pooling": None}, "pooling is mean, max, sif, not None"),
        (["a"], {"pooling": "sum"}, "pooling is mean, max, sif, not 'sum'"),
    ],
)
def test_errors(vectorizer: ElmocVectorizer, texts: Any, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=f"^{said}"):
        vectorizer.set_params(**settings).fit_transform(texts)


def test_it_is_fitted_first(vectorizer: ElmocVectorizer) -> None:
    with pytest.raises(NotFittedError):
        vectorizer.transform(TEXTS)
    with pytest.raises(NotFittedError):
        vectorizer.fit(TEXTS).set_params(pooling="sif").transform(TEXTS)
