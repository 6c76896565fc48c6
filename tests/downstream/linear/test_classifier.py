"""Linear classifiers: right where labels follow from the numbers, and else no better than the baselines."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax

from downstream.linear import classifier
from downstream.linear.classifier import classify, most_frequent_of_the_word


def plain_accuracy(x: np.ndarray, labels: np.ndarray, test: np.ndarray, test_labels: np.ndarray, l2: float) -> float:
    """By the loss as it is written, and its gradient, in float64."""
    inputs, others = (((one - x.mean(axis=0)) / x.std(axis=0)).astype(np.float64) for one in (x, test))
    names = sorted(set(labels.tolist()))
    gold = np.array(names)[:, None] == labels  # [K, N]
    shape = len(names), x.shape[1] + 1

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weight, bias = parameters.reshape(shape)[:, 1:], parameters.reshape(shape)[:, :1]
        logs = log_softmax(weight @ inputs.T + bias, axis=0)  # [K, N]
        error = np.exp(logs) - gold
        gradient = np.concatenate([error.sum(axis=1, keepdims=True), error @ inputs + l2 * weight], axis=1)
        return -logs[gold].sum() + l2 / 2 * (weight**2).sum(), gradient.ravel()

    best = minimize(loss, np.zeros(shape).ravel(), jac=True, method="BFGS").x.reshape(shape)
    predicted = (best[:, 1:] @ others.T + best[:, :1]).argmax(axis=0)
    return 100 * float(np.mean(np.array(names)[predicted] == test_labels))


def test_a_classifier_is_the_logistic_regression_that_it_says_it_is() -> None:
    generator = np.random.default_rng(0)
    true = generator.standard_normal((6, 4))
    x, test = (generator.standard_normal((rows, 6)).astype(np.float32) * 3 + 1 for rows in (400, 2_000))
    labels, others = (
        np.array(list("abcd"))[(one @ true + 2 * generator.gumbel(size=(len(one), 4))).argmax(axis=1)]
        for one in (x, test)
    )
    for l2 in (0.01, 30.0):
        expected = plain_accuracy(x, labels, test, others, l2)
        accuracy, converged = classify(x.copy(), labels, test=test.copy(), test_labels=others, l2=l2)
        assert accuracy == pytest.approx(expected, abs=0.3)
        assert converged


def test_scale_constants_and_labels_never_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([[1e-9, 5], [-1e-9, 5], [2e-9, 5], [-2e-9, 5]], dtype=np.float32)
    labels = np.array(["a", "b", "a", "b"])
    assert classify(x.copy(), labels, test=x.copy(), test_labels=np.array(["a", "b", "c", "b"]))[0] == 75
    monkeypatch.setattr(classifier, "MOST_ITERATIONS", 1)
    assert not classify(x.copy(), labels, test=x.copy(), test_labels=labels, l2=1e-6)[1]


def test_a_baseline_worked_by_hand() -> None:
    train_words, train = ["the", "dog", "the", "saw", "saw", "saw"], ["D", "N", "D", "V", "N", "V"]
    words, labels = ["the", "saw", "cat", "saw"], ["D", "V", "N", "N"]
    assert most_frequent_of_the_word(*map(np.array, (train_words, train, words, labels))) == 50
