"""The interface of a task: reader, model and metric."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import TaskSentence
from downstream.settings import ReaderOptions, TrainingSettings
from elmoc.errors import InputError
from elmoc.files.text import open_text

Example = TypeVar("Example")
Prediction = TypeVar("Prediction")


class Probe(torch.nn.Module, ABC, Generic[Example, Prediction]):
    """A task model on top of frozen inputs."""

    inputs: ProbeInputs

    @abstractmethod
    def loss(self, examples: Sequence[Example]) -> Tensor:
        """The scalar [] to minimise for a batch; the train loop adds the penalty on the
        scalar mix.
        """

    @abstractmethod
    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction for each example of a batch."""


def require_numbers(scores: Tensor) -> Tensor:
    """The scores that predictions are made of, which may be −∞.

    Raises:
        InputError: one of them is NaN or +∞.
    """
    if not bool((scores < torch.inf).all()):
        raise InputError(
            "the scores of the probe are no numbers: check the features, or lower "
            "--learning-rate"
        )
    return scores


@dataclass(frozen=True, kw_only=True)
class Task(ABC, Generic[Example, Prediction]):
    """A task: reader, model and metric.

    Metrics are functions of *counts*: each example has a row of them, and the rows are
    summed over the examples. The official scorers of all the tasks are defined in this
    way, and a bootstrap over examples needs it.

    name: of the command and the folder.
    metric: the name of the metric that is reported, e.g. "entity F1"; a key of the
        result of `metrics`.
    unit: the plural of a training example: "sentences", "pairs", "phrases".
    item: the plural of a scored example, which is an item of the bootstrap.
    suffix: the end of the name of a file of predictions, e.g. ".conll".
    reader: the default options of `read`.
    model: its arguments are `inputs`, `settings` (of the class of `published`) and the
        result of `vocabulary`.
    published: the published hyper-parameters: the defaults of the command line.
    small: the preset for a CPU (`--small`).
    """

    name: str
    metric: str
    unit: str
    item: str
    suffix: str
    reader: ReaderOptions = field(default_factory=ReaderOptions)
    model: type[Probe[Example, Prediction]]
    published: TrainingSettings
    small: TrainingSettings

    @abstractmethod
    def read(self, path: Path, options: Any, *, training: bool) -> list[Example]:
        """Read one file, for training or for scoring.

        Args:
            path: of the file.
            options: of the class of `reader`.
            training: whether the examples are trained on.

        Raises:
            InputError: names file and line of the first damaged one.
        """

    def sentences(self, example: Any) -> list[TaskSentence]:
        """The sentences of an example, for which inputs are looked up; by default its
        `sentence` alone.
        """
        return [example.sentence]

    def training_examples(self, examples: list[Any], options: Any) -> list[Any]:
        """The examples to train on, of those read for training; by default all."""
        return examples

    def labels(self, example: Any) -> Sequence[str]:
        """The labels of an example, by which the parts of the data, and a saved probe
        and new data, are compared; by default none.
        """
        return ()

    def vocabulary(self, train: Sequence[Example]) -> dict[str, Any]:
        """Facts of the training data that the model needs (label sets), as JSON can
        hold them: arguments of `model`.
        """
        return {}

    @abstractmethod
    def count(self, example: Example, prediction: Prediction) -> np.ndarray:
        """float64 [K]: the counts of one example, of which the metric is made."""

    @abstractmethod
    def metrics(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Metrics in percent, [...] each, of summed counts [..., K]; one of them is
        named `metric`.
        """

    @abstractmethod
    def format_prediction(self, example: Example, prediction: Prediction) -> str:
        """The lines of one example in the format of the task's official scorer."""

    def write_predictions(
        self, path: Path, examples: Sequence[Example], predictions: Sequence[Prediction]
    ) -> None:
        """Write the lines of all examples to a file."""
        with open_text(path) as file:
            for example, prediction in zip(examples, predictions, strict=True):
                file.write(self.format_prediction(example, prediction))
