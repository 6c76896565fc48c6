"""States in context as targets: an encoder goes on by learning what a frozen
Transformer says of the word that it reads.

    python -m experiments.teacher_states MODEL TEACHER TEXT… OUT --max-time 30m
    [--layers 3 4 5] [--rate 1e-3] [--seed 1] [--threads 2]

MODEL is a model of this project, TEACHER a folder of Hugging Face, TEXT has one
tokenised sentence a line. A head a direction maps the top layer to the teacher's states
of the same word: the mean of its layers and of the word's subwords, every number
standardised. The loss is 1 − cosine, over all words of both directions. Each sentence
is read from zero state, as in dumps. OUT is a model directory; its probes tell what it
gained.
"""

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity
from torch.nn.utils.rnn import pad_sequence

from elmoc import ElmoC
from elmoc.command_line import run_main
from elmoc.devices import CPU, autocast, choose_precision
from elmoc.modules import LayerStates
from elmoc.settings import Meta
from experiments.peers.common import Clock, TextBlocks
from experiments.peers.pretrained import Encoder, open_encoder

# Sentences of an update: some 1,300 words.
BATCH = 64
# Longer sentences are cut off.
MOST_WORDS = 60
# Sentences whose states tell mean and deviation of each number.
MEASURED = 2000
# Largest norm of the gradient, as in training.
NORM = 1.0


@dataclass(frozen=True)
class Options:
    """Who teaches whom, on what, and how long."""

    model: Annotated[Path, Meta(description="model to go on from")]
    teacher: Annotated[Path, Meta(description="folder of a Hugging Face model")]
    texts: Annotated[
        tuple[Path, ...],
        Meta(description="one tokenised sentence a line", extra={"metavar": "TEXT"}),
    ]
    out: Annotated[Path, Meta(description="model directory to write")]
    max_time: Annotated[
        str,
        Meta(
            description="of training, e.g. 30m",
            extra={"option": "--max-time", "metavar": "TIME"},
        ),
    ]
    layers: Annotated[
        tuple[int, ...], Meta(description="of the teacher", extra={"metavar": "N"})
    ] = (3, 4, 5)
    rate: Annotated[float, Meta(gt=0, description="largest learning rate")] = 1e-3
    seed: Annotated[int, Meta(description="of heads and order of text")] = 1
    threads: Annotated[int, Meta(ge=1, description="threads that compute")] = 2


class Targets:
    """The states of a teacher, standardised by a sample of sentences."""

    def __init__(
        self, teacher: Encoder, layers: Sequence[int], sample: list[list[str]]
    ) -> None:
        self._teacher = teacher
        self._layers = list(layers)
        measured = np.concatenate(self._raw(sample))
        self._mean = measured.mean(axis=0)
        self._deviation = measured.std(axis=0)
        self.size = len(self._mean)

    def _raw(self, sentences: list[list[str]]) -> list[np.ndarray]:
        states = self._teacher.encode(sentences)
        return [each[self._layers].mean(axis=0) for each in states]

    def __call__(self, sentences: list[list[str]]) -> Tensor:
        """float32 [B, T, size]; zeros where there is padding."""
        made = [(each - self._mean) / self._deviation for each in self._raw(sentences)]
        tensors = [torch.from_numpy(each).float() for each in made]
        return pad_sequence(tensors, batch_first=True)


class Student(nn.Module):
    """An encoder that is trained, and a head for each direction."""

    def __init__(self, elmo: ElmoC, size: int) -> None:
        super().__init__()
        self.states = LayerStates(elmo, requires_grad=True)
        self.directions = len(elmo.encoder.directions)
        width = elmo.width // self.directions
        self.heads = nn.ModuleList(
            nn.Linear(width, size) for _ in range(self.directions)
        )

    def loss(self, sentences: list[list[str]], targets: Tensor) -> Tensor:
        """1 − cosine, the mean over words and directions.

        Args:
            sentences: B lists of words, the longest of T.
            targets: [B, T, size].
        """
        states, mask = self.states(sentences)
        # Without the boundaries.
        top = states[:, -1, 1:-1].chunk(self.directions, dim=-1)
        words = mask[:, 2:]
        losses = []
        for head, direction in zip(self.heads, top, strict=True):
            cosine = cosine_similarity(head(direction).float(), targets, dim=-1)
            losses.append((1 - cosine)[words].mean())
        return torch.stack(losses).mean()


def teach(options: Options) -> None:
    """Train until the time is over, and write the model."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    elmo = ElmoC.from_pretrained(options.model)
    text = TextBlocks(options.texts, seed=options.seed).mixed()
    first = next(text)
    targets = Targets(open_encoder(options.teacher), options.layers, first[:MEASURED])
    student = Student(elmo, targets.size).train()
    optimiser = torch.optim.Adam(student.parameters(), lr=options.rate)
    precision = choose_precision("auto", CPU)
    clock = Clock(options.max_time)
    for mixed in text:
        # Batches of like length, in random order.
        ordered = sorted(mixed, key=len)
        starts = list(range(0, len(ordered), BATCH))
        random.shuffle(starts)
        for start in starts:
            batch = ordered[start : start + BATCH]
            sentences = [words[:MOST_WORDS] for words in batch]
            wanted = targets(sentences)
            clock.start()
            for group in optimiser.param_groups:
                group["lr"] = options.rate * max(clock.factor, 1e-4)
            with autocast(CPU, precision):
                loss = student.loss(sentences, wanted)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(student.parameters(), NORM)
            optimiser.step()
            clock.step(sum(map(len, sentences)), loss.item())
            if clock.is_over:
                student.states.elmo.save_pretrained(options.out)
                return


if __name__ == "__main__":
    sys.exit(
        run_main(
            Options,
            teach,
            None,
            prog="python -m experiments.teacher_states",
            description="Teach an encoder a Transformer's states in context.",
        )
    )
