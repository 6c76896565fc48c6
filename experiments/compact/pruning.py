"""Iterative pruning (Han et al. 2015), with which Shu and Nakayama (2018, Table 3)
compare their codes: word vectors are trained with the LSTM that reads reviews; their
smallest numbers become zero, and the others are trained on, again and again.

    python -m experiments.compact.pruning OUT --vectors FILE --words LEXICON --data DIR

OUT is that of `experiments.compact.imdb`, whose division of the reviews is read. Every
word has a vector here, whether LEXICON has it or not.
"""

from dataclasses import replace
from itertools import chain

import numpy as np
import torch
from torch import nn
from torch.nn.utils import prune

from downstream.inputs.options import INPUT_KINDS, InputOptions
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import open_sources
from downstream.probe.splits import read_splits
from downstream.probe.training import evaluate, train_probe
from downstream.settings import with_changes
from downstream.tasks.imdb.task import TASK
from experiments.compact.common import Options, run_table
from experiments.compact.imdb import EPOCHS, READ

# The share of zeros in each round, and the paper's accuracy.
ROUNDS = {0.0: 87.18, 0.5: None, 0.8: 86.25, 0.9: 84.96}


def pruning(options: Options) -> None:
    """Print a line a round."""
    files = {name: [options.out / f"{name}.jsonl"] for name in ("train", "dev", "test")}
    reader = with_changes(TASK.reader, {"words": READ})
    train, dev, test = read_splits(TASK, files, reader)
    settings = replace(TASK.small, epochs=EPOCHS)
    sources = open_sources(
        [INPUT_KINDS["vectors"]],
        InputOptions(vectors=[options.vectors]),
        sentences=list(chain(train.sentences, dev.sentences, test.sentences)),
    )
    torch.manual_seed(1)
    inputs = ProbeInputs(sources)
    inputs.standardise_words(train.sentences)
    # In the other rows word vectors are frozen.
    table = inputs.table
    del inputs.table
    inputs.register_parameter("table", nn.Parameter(table))
    probe = TASK.model(inputs=inputs, settings=settings)
    before = 0.0
    for share, paper in ROUNDS.items():
        if share:
            # Of the numbers that are left.
            prune.l1_unstructured(inputs, "table", (share - before) / (1 - before))
        before = share
        train_probe(
            TASK,
            probe,
            train=train,
            dev=dev,
            settings=settings,
            generator=np.random.default_rng(1),
            title=f"{share:.0%} of zeros",
        )
        _, _, metrics = evaluate(TASK, probe, test, settings.batch_size)
        zeros = float((inputs.table == 0).float().mean())
        print(
            f"{zeros:.0%} of zeros: {metrics[TASK.metric]:.2f}, paper {paper}",
            flush=True,
        )


if __name__ == "__main__":
    run_table(pruning, "Accuracy of reviews with vectors that are pruned and trained.")
