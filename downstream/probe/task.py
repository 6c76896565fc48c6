"""What does a task have to provide, so that the shared part can train and score it?"""

import argparse
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sentence import Sentence
from downstream.probe.settings import TrainingSettings

Example = TypeVar("Example")
Prediction = TypeVar("Prediction")


class Probe(torch.nn.Module, ABC, Generic[Example, Prediction]):
    """A task model on top of frozen inputs."""

    inputs: ProbeInputs

    @abstractmethod
    def loss(self, examples: Sequence[Example]) -> Tensor:
        """The scalar [] to minimise for a batch; the train loop adds the penalty on the scalar mix."""

    @abstractmethod
    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction for each example of a batch."""


@dataclass(frozen=True, kw_only=True)
class Task(ABC, Generic[Example, Prediction]):
    """A task: reader, model and metric.

    Scores are figures of *counts*: each example has a row of them, rows are summed over the examples, and `figures`
    are functions of the sum. That is how the official scorers of all our tasks are defined, and what a bootstrap over
    examples needs.
    """

    name: str
    metric: str
    """The name of the figure that is reported, e.g. "entity F1"; a key of what `figures` returns."""
    unit: str
    """What an example is in training, in the plural: "sentences", "pairs", "phrases"."""
    item: str
    """What an example is in scoring: an item of the bootstrap."""
    suffix: str
    """How the name of a file of predictions ends, e.g. ".conll"."""
    published: TrainingSettings
    """The published hyper-parameters: the defaults of the command line."""
    small: TrainingSettings
    """The preset for a CPU (`--small`)."""

    def add_reader_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that `read` looks at."""

    def reader_options(self, options: argparse.Namespace) -> dict[str, Any]:
        """The values of those options."""
        parser = argparse.ArgumentParser(add_help=False)
        self.add_reader_options(parser)
        return {name: getattr(options, name) for name in vars(parser.parse_args([]))}

    @abstractmethod
    def read(self, path: Path, options: argparse.Namespace, *, training: bool) -> list[Example]:
        """Read one file, for training or for scoring; raises `InputError` with file and line."""

    @abstractmethod
    def sentences(self, example: Example) -> list[Sentence]:
        """The sentences of an example, for which inputs are looked up."""

    @abstractmethod
    def describe(self, examples: Sequence[Example]) -> str:
        """One line about a split for people: counts, and whatever the reader had to change or leave out."""

    @abstractmethod
    def vocabulary(self, train: Sequence[Example]) -> dict[str, Any]:
        """What a model has to know of its training data (label sets), as JSON can hold it."""

    @abstractmethod
    def build(
        self, *, vocabulary: dict[str, Any], inputs: ProbeInputs, settings: TrainingSettings
    ) -> Probe[Example, Prediction]:
        """A new model with random weights."""

    @abstractmethod
    def count(self, example: Example, prediction: Prediction) -> np.ndarray:
        """float64 [K]: what the metric counts in one example."""

    @abstractmethod
    def figures(self, counts: np.ndarray) -> dict[str, np.ndarray]:
        """Figures in percent, [...] each, of summed counts [..., K]; one of them is named `metric`."""

    def details(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> str:
        """More lines about the reported split for people (scores of each label and the like); "" for none."""
        return ""

    @abstractmethod
    def write_predictions(self, path: Path, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
        """Write predictions in the format of the task's official scorer."""
