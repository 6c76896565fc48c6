"""Fine-tuned: a BERT trained whole on three of the probes' tasks, as in Devlin et al.
2019.

    python -m experiments.peers.fine_tuned MODEL OUT --data DIR [--threads 1]

MODEL is a folder with a BERT and its tokenizer, DIR the data of beside.toml. Each
model, task, rate and seed makes a line of OUT/results.jsonl, unless it is there, with
the score of the best epoch of the development part. Training reads no phrases of SST-5,
but whole sentences.
"""

import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    get_linear_schedule_with_warmup,
)

from downstream.probe.splits import read_splits
from downstream.results.records import append_result
from downstream.suite.plan import SuiteProbe, read_suite
from downstream.tasks.ner.tags import to_bio
from elmoc.command_line import run_main
from elmoc.devices import CPU, has_bf16
from elmoc.process import progress_bar
from elmoc.settings import Meta
from experiments.peers.common import batches
from experiments.peers.pretrained import POSITIONS, division, padded

PLAN = Path(__file__).parent / "beside.toml"
TASKS = ("WNUT-17", "SST-5", "SNLI, 20k pairs")
SEEDS = (1, 2)
# The highest rate of Devlin et al., and a higher one: small models move slowly.
RATES = (5e-5, 2e-4)
EPOCHS = 4
BATCH = 16
# Share of the updates in which the learning rate rises; then it falls to zero.
WARM_UP = 0.1
WEIGHT_DECAY = 0.01
GRADIENT_NORM = 1.0
# Of a subword without a label: the losses of transformers leave it out.
UNLABELLED = -100


@dataclass(frozen=True)
class Options:
    """The model, and the data."""

    model: Annotated[Path, Meta(description="folder of a BERT and its tokenizer")]
    out: Annotated[Path, Meta(description="folder of results")]
    data: Annotated[
        Path,
        Meta(
            description="folder where the paths of beside.toml begin",
            extra={"option": "--data", "metavar": "DIR"},
        ),
    ]
    threads: Annotated[int, Meta(ge=1, description="threads that compute")] = 1


@dataclass(frozen=True)
class Line:
    """An example as the model reads it.

    ids: its subwords, special ones included.
    types: 1 for subwords of a second sentence.
    firsts: the places of the words' first subwords, of those that are read.
    labels: of the subwords, or of the whole.
    """

    ids: list[int]
    types: list[int]
    firsts: list[int]
    labels: list[int] | int


class Reader:
    """Makes lines of a task's examples, and predictions of a model's scores.

    names: the labels that training has, by their numbers.
    tags: whether each word has a label, or the whole example.
    """

    def __init__(self, probe: SuiteProbe, train: Sequence[Any], tokenizer: Any) -> None:
        self._task = probe.task
        self._divide = division(tokenizer)
        self._begin = [tokenizer.cls_token_id]
        self._end = [tokenizer.sep_token_id]
        self.tags = probe.task.name == "ner"
        if self.tags:
            found = set(chain.from_iterable(example.tags for example in train))
        else:
            found = {example.label for example in train}
        # In an order that does not depend on that of the data.
        self.names = sorted(found)

    def line(self, example: Any) -> Line:
        """The line of an example, which is cut where it is too long."""
        ids = list(self._begin)
        types = [0]
        firsts = []
        for kind, sentence in enumerate(self._task.sentences(example)):
            for word in sentence.words:
                firsts.append(len(ids))
                ids += self._divide(word)
            ids += self._end
            types += [kind] * (len(ids) - len(types))
        read = [first for first in firsts if first < POSITIONS]
        labels: list[int] | int = self._number(example, read, min(len(ids), POSITIONS))
        return Line(ids[:POSITIONS], types[:POSITIONS], read, labels)

    def _number(self, example: Any, firsts: list[int], size: int) -> list[int] | int:
        # A label that training lacks cannot be learned; scores count it as wrong.
        numbers = {name: number for number, name in enumerate(self.names)}
        if not self.tags:
            return numbers.get(example.label, UNLABELLED)
        labels = [UNLABELLED] * size
        for first, tag in zip(firsts, example.tags, strict=False):
            labels[first] = numbers.get(tag, UNLABELLED)
        return labels

    def prediction(self, example: Any, line: Line, scores: Tensor) -> Any:
        """What the task counts, of scores [T, labels] or [labels]."""
        if not self.tags:
            return dict(zip(self.names, scores.softmax(0).tolist(), strict=True))
        best = scores[line.firsts].argmax(dim=1).tolist()
        tags = [self.names[number] for number in best]
        # Words that are not read are outside of entities.
        tags += ["O"] * (len(example.tags) - len(tags))
        return to_bio(tags)


def lengths_of(lines: Sequence[Line]) -> list[int]:
    """The subwords of each line."""
    return [len(line.ids) for line in lines]


def tensors(lines: Sequence[Line], pad: int) -> dict[str, Tensor]:
    """A batch as models of transformers take it."""
    ids, mask = padded([line.ids for line in lines], pad)
    # Nothing is read where the mask is zero: any type will do.
    types, _ = padded([line.types for line in lines], 0)
    if isinstance(lines[0].labels, int):
        labels = torch.tensor([line.labels for line in lines])
    else:
        labels, _ = padded([line.labels for line in lines], UNLABELLED)
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": types,
        "labels": labels,
    }


class Tuning:
    """The fine-tuning of a model on a task."""

    def __init__(
        self, folder: Path, probe: SuiteProbe, train: Sequence[Any], rate: float
    ) -> None:
        self._task = probe.task
        tokenizer = AutoTokenizer.from_pretrained(folder)
        self._pad = tokenizer.pad_token_id
        self._reader = Reader(probe, train, tokenizer)
        of_words = AutoModelForTokenClassification
        kind = of_words if self._reader.tags else AutoModelForSequenceClassification
        self._model = kind.from_pretrained(folder, num_labels=len(self._reader.names))
        self._lines = [self._reader.line(example) for example in train]
        # As in the recipe, biases and the weights of norms do not decay.
        weights = list(self._model.parameters())
        decayed = {"params": [each for each in weights if each.ndim > 1]}
        others = {"params": [each for each in weights if each.ndim < 2]}
        self._optimizer = torch.optim.AdamW(
            [decayed | {"weight_decay": WEIGHT_DECAY}, others | {"weight_decay": 0.0}],
            lr=rate,
        )
        # The last batch of an epoch may be smaller.
        updates = EPOCHS * -(-len(self._lines) // BATCH)
        self._schedule = get_linear_schedule_with_warmup(
            self._optimizer, round(WARM_UP * updates), updates
        )
        self._bar = progress_bar(total=updates, unit=" updates", desc=probe.name)

    def _output(self, lines: Sequence[Line]) -> Any:
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bf16(CPU)):
            return self._model(**tensors(lines, self._pad))

    def epoch(self, generator: random.Random) -> None:
        """Train on all examples once."""
        self._model.train()
        for batch in batches(lengths_of(self._lines), BATCH, generator):
            loss = self._output([self._lines[place] for place in batch]).loss
            self._optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), GRADIENT_NORM)
            self._optimizer.step()
            self._schedule.step()
            self._bar.update()

    @torch.inference_mode()
    def count(self, examples: Sequence[Any]) -> np.ndarray:
        """float64 [N, K]: what the task's metric counts of each example."""
        self._model.eval()
        lines = [self._reader.line(example) for example in examples]
        counts: dict[int, np.ndarray] = {}
        for batch in batches(lengths_of(lines), BATCH, random.Random(0)):
            chosen = [lines[place] for place in batch]
            scores = self._output(chosen).logits.float()
            for row, place in enumerate(batch):
                example = examples[place]
                found = self._reader.prediction(example, lines[place], scores[row])
                counts[place] = self._task.count(example, found)
        return np.stack([counts[place] for place in range(len(lines))])


def inputs_name(model: Path, rate: float) -> str:
    """What results call the inputs of a fine-tuning."""
    return f"{model} fine-tuned at {rate:g}"


def fine_tune(
    folder: Path, probe: SuiteProbe, rate: float, seed: int
) -> dict[str, Any]:
    """The record of a fine-tuning, in the words of a line of results."""
    torch.manual_seed(seed)
    generator = random.Random(seed)
    reader: Any = probe.reader
    # As usual in fine-tuning; phrases would take ten times as long.
    if probe.task.name == "sst5":
        reader = replace(reader, subtrees="none")
    train, dev = read_splits(probe.task, probe.files, reader)
    tuning = Tuning(folder, probe, train.examples, rate)
    scores = []
    counts = []
    for _ in range(EPOCHS):
        tuning.epoch(generator)
        counts.append(tuning.count(dev.examples))
        metrics = probe.task.metrics(counts[-1].sum(axis=0))
        scores.append(float(metrics[probe.task.metric]))
    # Probes choose their epoch alike.
    best = int(np.argmax(scores))
    return {
        "task": probe.task.name,
        "dataset": probe.name,
        "inputs": inputs_name(folder, rate),
        "seeds": [seed],
        "scores": [scores[best]],
        "best_epochs": [best + 1],
        "curves": [scores],
        "counts": [counts[best].tolist()],
    }


def tune(options: Options) -> None:
    """Fine-tune at each rate with each seed, unless that is done."""
    torch.set_num_threads(options.threads)
    probes = {probe.name: probe for probe in read_suite(PLAN, data=options.data).probes}
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "results.jsonl"
    done = set()
    if results.exists():
        for text in results.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            done.add((line["dataset"], line["inputs"], line["seeds"][0]))
    for name, rate, seed in product(TASKS, RATES, SEEDS):
        if (name, inputs_name(options.model, rate), seed) in done:
            continue
        record = fine_tune(options.model, probes[name], rate, seed)
        append_result(results, record)
        print(name, rate, seed, record["curves"], flush=True)


if __name__ == "__main__":
    sys.exit(
        run_main(
            Options,
            tune,
            None,
            prog="python -m experiments.peers.fine_tuned",
            description="Fine-tune a BERT on three tasks, at each rate with each seed.",
        )
    )
