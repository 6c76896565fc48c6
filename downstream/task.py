"""What does a task have to provide, so that the shared part can train and score it?"""

import argparse
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import torch
from torch import Tensor

from downstream.inputs import ProbeInputs, Sentence
from downstream.options import TrainingSettings

Example = TypeVar("Example")
Prediction = TypeVar("Prediction")


class Probe(torch.nn.Module, ABC, Generic[Example, Prediction]):
    """A task model on top of frozen inputs."""

    @abstractmethod
    def loss(self, examples: Sequence[Example]) -> Tensor:
        """The scalar [] to minimise for a batch, regularisation included."""

    @abstractmethod
    def predict(self, examples: Sequence[Example]) -> list[Prediction]:
        """One prediction for each example of a batch."""


@dataclass(frozen=True, kw_only=True)
class Task(ABC, Generic[Example, Prediction]):
    """A task: reader, model and metric. The hyper-parameters on the command line are the fields of `published`."""

    name: str
    metric: str
    published: TrainingSettings
    small: TrainingSettings

    def add_reader_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that `read` looks at."""

    @abstractmethod
    def read(self, path: Path, options: argparse.Namespace) -> list[Example]:
        """Read one file; raises `InputError` with file and line."""

    @abstractmethod
    def sentences(self, example: Example) -> list[Sentence]:
        """The sentences of an example, for which inputs are looked up."""

    @abstractmethod
    def describe(self, examples: Sequence[Example]) -> str:
        """One line about a split for people: counts, and whatever the reader had to change."""

    @abstractmethod
    def build(
        self, *, train: Sequence[Example], inputs: ProbeInputs, settings: TrainingSettings
    ) -> Probe[Example, Prediction]:
        """A new model with random weights; its label set is that of `train`."""

    @abstractmethod
    def score(self, examples: Sequence[Example], predictions: Sequence[Prediction]) -> float:
        """The metric in percent, as the task's official scorer defines it."""

    @abstractmethod
    def write_predictions(self, path: Path, examples: Sequence[Example], predictions: Sequence[Prediction]) -> None:
        """Write predictions beside the gold labels, in the format of the official scorer."""
