"""Label sets: the classes of a task, and how files spell them: by names, by
numbers from 0, or by scores.
"""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

NUMBER = re.compile(r"\d+(\.\d+)?(e-\d+)?")


@dataclass(frozen=True)
class LabelSet:
    """The labels of a task whose files are labelled rows.

    wanted: what the task reads, as errors say it.
    columns: the names that the column of labels may have, and those of the column of
        each text; the first that is there is read.
    names: of the classes, in the order of their numbers.
    spellings: other names of the classes; of closed sets in any case.
    is_open: whether a file may have other labels instead.
    has_scores: whether fractions are scores from 0 to 1, of which each class has an
        equal part.
    """

    wanted: str
    columns: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    spellings: Mapping[str, str] = field(default_factory=dict)
    is_open: bool = False
    has_scores: bool = False

    def classes(self, found: Collection[str]) -> dict[str, str]:
        """The class of each label of a file that names one.

        Args:
            found: all labels of the file.
        """
        if all(map(NUMBER.fullmatch, found)):
            places = self._places({label: float(label) for label in found})
            return {label: self.names[place] for label, place in places.items()}
        known = {**{name: name for name in self.names}, **self.spellings}
        plain = {
            # `Very_Negative`
            each: each if self.is_open else re.sub(r"[\s_-]+", " ", each.lower())
            for each in found
        }
        return {label: known[each] for label, each in plain.items() if each in known}

    def _places(self, numbers: Mapping[str, float]) -> dict[str, int]:
        """The number of the class, from 0, of each label that is a number."""
        found = set(numbers.values())
        classes = set(range(len(self.names)))
        # Two other labels, such as `entailment` and all else, are 0 and 1, too.
        if found == classes or (found < classes and not self.is_open):
            return {label: int(number) for label, number in numbers.items()}
        if self.has_scores and max(found) <= 1:
            # A score between two classes is of the lower one; it may be a float32.
            ends = {
                label: round(number * len(classes), 5)
                for label, number in numbers.items()
            }
            return {label: max(0, math.ceil(end) - 1) for label, end in ends.items()}
        return {}


NLI = LabelSet(
    wanted="snli reads gold_label (or label), sentence1 (premise) and sentence2 "
    "(hypothesis) in JSON lines, or columns that the first line names so",
    columns=(
        ("gold_label", "label_text", "label", "labels"),
        ("sentence1", "premise", "text1"),
        ("sentence2", "hypothesis", "text2"),
    ),
    names=("entailment", "neutral", "contradiction"),
    # In the training part of XNLI alone.
    spellings={"contradictory": "contradiction"},
    is_open=True,
)
FIVE_CLASSES = LabelSet(
    wanted="sst5 reads trees like (3 (2 This) (3 works)), or text and label in JSON "
    "lines or in columns; labels are 0 to 4, very negative to very positive, or scores "
    "from 0 to 1",
    columns=(
        ("label", "labels", "sentiment", "label_text"),
        ("text", "sentence", "review"),
    ),
    names=("0", "1", "2", "3", "4"),
    spellings={
        "very negative": "0",
        "negative": "1",
        "neutral": "2",
        "positive": "3",
        "very positive": "4",
    },
    has_scores=True,
)
TWO_CLASSES = LabelSet(
    wanted="imdb reads text and label in JSON lines or in columns; labels are neg and "
    "pos, negative and positive, or 0 and 1",
    columns=(
        ("label_text", "label", "labels", "sentiment"),
        ("text", "sentence", "review"),
    ),
    names=("neg", "pos"),
    spellings={"negative": "neg", "positive": "pos"},
)
