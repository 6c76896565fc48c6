"""Linear classifier: how many labels of words a multinomial logistic regression finds by their vectors."""

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

MOST_ITERATIONS = 200
TOLERANCE = 1e-3
"""Of the gradient: closer to the optimum the accuracy moves by some hundredths of a point."""


@dataclass(frozen=True)
class Accuracy:
    """The share of right labels in percent, and how the classifier was trained.

    iterations  of L-BFGS; 0 where nothing was trained
    converged   whether it came to its end before `MOST_ITERATIONS`
    """

    accuracy: float
    size: int
    iterations: int
    converged: bool
    seconds: float


def most_frequent(train: Sequence[str], test: Sequence[str]) -> Accuracy:
    """Of the label that is the most frequent in training, for every word."""
    label = Counter(train).most_common(1)[0][0]
    return _untrained(np.array([one == label for one in test]))


def most_frequent_of_the_word(
    train_words: Sequence[str], train: Sequence[str], test_words: Sequence[str], test: Sequence[str]
) -> Accuracy:
    """Of the label that each word has most often in training; of words that are not there, the most frequent of all."""
    counts: dict[str, Counter[str]] = {}
    for word, label in zip(train_words, train, strict=True):
        counts.setdefault(word, Counter())[label] += 1
    best = {word: count.most_common(1)[0][0] for word, count in counts.items()}
    default = Counter(train).most_common(1)[0][0]
    right = [best.get(word, default) == label for word, label in zip(test_words, test, strict=True)]
    return _untrained(np.array(right))


def classify(x: np.ndarray, labels: np.ndarray, *, test: np.ndarray, test_labels: np.ndarray, l2: float) -> Accuracy:
    """Of a logistic regression, on numbers that are standardised by those of training.

    Args:
        x: float32 [N, D], which is overwritten.
        labels: strings [N], at least two distinct ones.
        test: float32 [M, D], which is overwritten.
        test_labels: strings [M]; those that are not in `labels` cannot be found.
        l2: the weight of half the sum of squares of the weights, beside the summed loss.
    """
    begin = time.perf_counter()
    mean, deviation = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    deviation[deviation < 1e-12] = 1
    for numbers in (x, test):
        numbers -= mean.astype(np.float32)
        numbers /= deviation.astype(np.float32)
    model = LogisticRegression(C=1 / l2, max_iter=MOST_ITERATIONS, tol=TOLERANCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, labels)
    right = model.predict(test) == test_labels
    iterations = int(model.n_iter_.max())
    return Accuracy(
        accuracy=100 * float(right.mean()),
        size=x.shape[1],
        iterations=iterations,
        converged=iterations < MOST_ITERATIONS,
        seconds=time.perf_counter() - begin,
    )


def _untrained(right: np.ndarray) -> Accuracy:
    return Accuracy(accuracy=100 * float(right.mean()), size=0, iterations=0, converged=True, seconds=0.0)
