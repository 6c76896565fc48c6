"""Accuracies of linear classifiers: for each kind of label, of two baselines and of each input."""

from collections.abc import Mapping

from downstream.inputs.probe_inputs import InputSources
from downstream.linear.classifier import MOST_ITERATIONS, Accuracy, classify, most_frequent, most_frequent_of_the_word
from downstream.linear.words import WordSplit, inputs_of
from downstream.results.text_table import Column, TextTable
from elmoc.progress import progress_bar

MAJORITY, WORD_MAJORITY = "most frequent label", "most frequent of the word"
"""The baselines, which read no vectors."""

Found = Mapping[str, Mapping[str, Accuracy]]
"""Kind of label → input or baseline → its accuracy."""


def find_labels(sources: InputSources, *, train: WordSplit, dev: WordSplit, kinds: list[str], l2: float) -> Found:
    """Train a classifier for every kind of label and every input, and score it on `dev`."""
    found: dict[str, dict[str, Accuracy]] = {kind: _baselines(train, dev, kind) for kind in kinds}
    inputs = zip(inputs_of(sources, train), inputs_of(sources, dev), strict=True)
    with progress_bar(desc="classifiers", unit=" of them", leave=False, delay=2) as progress:
        for (name, vectors), (_, dev_vectors) in inputs:
            for kind in kinds:
                rows, labels = train.labelled(kind)
                dev_rows, dev_labels = dev.labelled(kind)
                x, dev_x = vectors(rows), dev_vectors(dev_rows)
                found[kind][name] = classify(x, labels, test=dev_x, test_labels=dev_labels, l2=l2)
                progress.update()
    return found


def _baselines(train: WordSplit, dev: WordSplit, kind: str) -> dict[str, Accuracy]:
    rows, labels = train.labelled(kind)
    dev_rows, dev_labels = dev.labelled(kind)
    words, dev_words = ([split.words[row] for row in of] for split, of in ((train, rows), (dev, dev_rows)))
    return {
        MAJORITY: most_frequent(labels.tolist(), dev_labels.tolist()),
        WORD_MAJORITY: most_frequent_of_the_word(words, labels.tolist(), dev_words, dev_labels.tolist()),
    }


def accuracy_table(found: Found) -> TextTable:
    """A row for each baseline and input, a column for each kind of label."""
    names = list(next(iter(found.values())))
    sizes = [str(next(iter(found.values()))[name].size or "") for name in names]
    columns = [Column("input", names), Column("numbers", sizes, right=True)]
    for kind, accuracies in found.items():
        columns.append(Column(kind, [f"{accuracies[name].accuracy:.2f}" for name in names], right=True))
    return TextTable("Accuracy of linear classifiers, in percent", columns)


def explanation(found: Found, *, train: WordSplit, dev: WordSplit) -> str:
    """What a reader has to know of the numbers."""
    lines = []
    for kind in found:
        labels = train.labelled(kind)[1]
        words = f"{len(labels):,} words of train, {len(dev.labelled(kind)[0]):,} of dev"
        lines.append(f"{kind}: {len(set(labels.tolist()))} labels, {words}")
    seconds = sum(accuracy.seconds for of_kind in found.values() for accuracy in of_kind.values())
    lines.append(f"training and scoring the classifiers took {seconds:.0f} s")
    stopped = [f"{kind} by {name}" for kind, of in found.items() for name, one in of.items() if not one.converged]
    if stopped:
        lines.append(f"stopped after {MOST_ITERATIONS} iterations, before the optimum: {', '.join(stopped)}")
    return "\n".join(lines)
