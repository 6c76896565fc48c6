"""Linear classifier: how many labels of words does a multinomial logistic regression find by their vectors?"""

import warnings
from collections import Counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

MOST_ITERATIONS = 200
TOLERANCE = 1e-3  # of the gradient: closer to the optimum the accuracy moves by some hundredths of a point


def most_frequent_of_the_word(
    train_words: np.ndarray, train: np.ndarray, test_words: np.ndarray, test: np.ndarray
) -> float:
    """Accuracy in percent of the label that each word has most often in training; of new words, the most frequent."""
    counts: dict[str, Counter[str]] = {}
    for word, label in zip(train_words, train, strict=True):
        counts.setdefault(word, Counter())[label] += 1
    default = Counter(train).most_common(1)[0][0]
    found = [counts[word].most_common(1)[0][0] if word in counts else default for word in test_words]
    return 100 * float(np.mean(np.array(found) == test))


def classify(
    x: np.ndarray, labels: np.ndarray, *, test: np.ndarray, test_labels: np.ndarray, l2: float = 1.0
) -> tuple[float, bool]:
    """Accuracy in percent of a logistic regression on numbers that are standardised by those of training.

    Also whether it came to its optimum before `MOST_ITERATIONS` of L-BFGS.

    Args:
        x: float32 [N, D], which is overwritten.
        labels: strings [N], at least two distinct ones.
        test: float32 [M, D], which is overwritten.
        test_labels: strings [M]; those that are not in `labels` cannot be found.
        l2: the weight of half the sum of squares of the weights, beside the summed loss.
    """
    mean, deviation = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    deviation[deviation < 1e-12] = 1
    for numbers in (x, test):
        numbers -= mean.astype(np.float32)
        numbers /= deviation.astype(np.float32)
    model = LogisticRegression(C=1 / l2, max_iter=MOST_ITERATIONS, tol=TOLERANCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(x, labels)
    accuracy = 100 * float((model.predict(test) == test_labels).mean())
    return accuracy, int(model.n_iter_.max()) < MOST_ITERATIONS
