"""The command `python -m downstream layers`: what a linear classifier finds in each layer, and what mixes take.

python -m downstream layers --train F… --dev F… --label pos constituent --model RUN --vectors V
python -m downstream layers --mix PROBE…    the weights that trained probes give to the layers
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from downstream.inputs.kinds import INPUT_KINDS
from downstream.inputs.probe_inputs import InputSources, open_sources
from downstream.inputs.source_options import MODEL_OPTIONS, add_source_options, check_source_options
from downstream.linear.accuracies import accuracy_table, explanation, find_labels
from downstream.linear.classifier import Accuracy
from downstream.linear.labels import KINDS, check_labels
from downstream.linear.mixes import mix_table
from downstream.linear.words import WordSplit, read_words
from downstream.results.records import append_result, open_results
from elmoc.devices import checked_device, free_memory
from elmoc.errors import InputError, shortened
from elmoc.files.writing import human_bytes
from elmoc.settings import counted
from elmoc.version import VERSION

MOST_WORDS = 50_000
MOST_LABELS = 500
"""More are words, not labels, and weights for each of them."""


def run_layers(arguments: Sequence[str]) -> None:
    """`python -m downstream layers …`."""
    options = _parse(arguments)
    if options.mix:
        print(mix_table(options.mix).text())
        return
    checked_device(options.device)
    splits = {
        name: read_words(name, paths, options.label, most_words=options.most_words)
        for name, paths in (("train", options.train), ("dev", options.dev))
    }
    train, dev = splits.values()
    for name, split in splits.items():
        counts = f"{counted(len(split.sentences), 'sentence')}, {counted(len(split.words), 'word')}"
        print(f"{name:6} {counts}", flush=True)
    for kind in options.label:
        _check_label(kind, train, dev)
    kinds = {INPUT_KINDS[name] for name in ("vectors", "features", "model") if getattr(options, name)}
    sources = open_sources(kinds, sentences=[*train.sentences, *dev.sentences], options=options)
    _require_memory(sources, len(train.words) + len(dev.words), free_memory(torch.device("cpu")))
    if options.results:
        open_results(options.results)  # where it cannot be, that is found before training
    found = find_labels(sources, train=train, dev=dev, kinds=options.label, l2=options.l2)
    print(f"\n{accuracy_table(found).text()}\n\n{explanation(found, train=train, dev=dev)}")
    if options.results:
        for kind, accuracies in found.items():
            append_result(options.results, _record(kind, accuracies, splits, sources, options))


def _record(
    kind: str,
    accuracies: Mapping[str, Accuracy],
    splits: Mapping[str, WordSplit],
    sources: InputSources,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """A line of results about one kind of label."""
    return {
        "command": "layers",
        "label": kind,
        "accuracies": {name: asdict(accuracy) for name, accuracy in accuracies.items()},
        "labels": len(set(splits["train"].labelled(kind)[1])),
        "words": {name: len(split.labelled(kind)[0]) for name, split in splits.items()},
        "data": {name: split.files for name, split in splits.items()},
        "fingerprints": {name: split.fingerprints for name, split in splits.items()},
        "most_words": options.most_words,
        "l2": options.l2,
        **sources.describe(),
        "elmoc": VERSION,
    }


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m downstream layers",
        description="Train a linear classifier (multinomial logistic regression) of words on each layer of an encoder, "
        "on all layers side by side and on word vectors, and report its accuracy on other words. Or show how the mixes "
        "of saved probes weigh the layers.",
    )
    group = parser.add_argument_group("data", "plain files or .gz")
    group.add_argument("--train", nargs="+", type=Path, metavar="FILE", help="what the classifiers are trained on")
    group.add_argument("--dev", nargs="+", type=Path, metavar="FILE", help="what their accuracy is of")
    group.add_argument(
        "--label",
        nargs="+",
        metavar="LABEL",
        help="what is to be found: pos (part of speech), constituent (the label of the lowest constituent that holds "
        "the word and others) or constituent:K (the K-th above the word) of CoNLL-2012 files, column:N of CoNLL "
        "columns (from 0, the word; -1 is the last), deprel (dependency relation), upos or xpos of CoNLL-U files",
    )
    group.add_argument(
        "--most-words",
        type=int,
        metavar="N",
        default=MOST_WORDS,
        help=f"at most so many words of each, in random sentences (default: {MOST_WORDS})",
    )
    add_source_options(parser.add_argument_group("inputs"))
    parser.add_argument("--l2", type=float, default=1.0, metavar="X", help="L2 penalty on the weights (default: 1)")
    parser.add_argument("--device", default="cpu", help="where features of --model are computed (default: cpu)")
    parser.add_argument("--results", type=Path, metavar="FILE.jsonl", help="append a line for each label")
    parser.add_argument(
        "--mix", nargs="+", type=Path, metavar="PROBE", help="show the mixes of saved probes (DIR/KIND.seedN) instead"
    )
    options = parser.parse_args(arguments)
    if options.mix:
        others = ("train", "dev", "label", "vectors", "features", "model", *MODEL_OPTIONS, "memory_limit", "results")
        if any(getattr(options, name) is not None for name in others):
            parser.error("--mix PROBE… stands alone")
        return options
    if not (options.train and options.dev and options.label):
        parser.error(f"give --train FILES, --dev FILES and --label ({KINDS}); or --mix PROBES")
    options.label = list(dict.fromkeys(options.label))
    check_labels(options.label)
    check_source_options(options)
    if not (options.vectors or options.features or options.model):
        raise InputError("there is nothing to read: give --model DIR or --features FILE.h5, --vectors V, or both")
    if not 1 <= options.most_words <= 100_000_000:
        raise InputError(f"--most-words {options.most_words} is not possible: give 1 to 100,000,000")
    if not 1e-6 <= options.l2 <= 1e6:  # nan, too
        raise InputError(f"--l2 {options.l2:g} is not possible: give a number from 0.000001 to 1,000,000")
    return options


def _check_label(kind: str, train: WordSplit, dev: WordSplit) -> None:
    """Raise an `InputError` unless there is something to learn, and something to try it on."""
    labels = set(train.labels[kind]) - {None}
    if not labels or all(label is None for label in dev.labels[kind]):
        empty = "dev" if labels else "train"
        raise InputError(f"--label {kind}: no word of --{empty} has such a label: give other files or another label")
    if len(labels) == 1:
        raise InputError(
            f"--label {kind}: every word of --train has the label {shortened(str(labels.pop()))}, as where the files "
            "do not annotate it: give other files or another label"
        )
    if len(labels) > MOST_LABELS:
        raise InputError(
            f"--label {kind}: --train has {len(labels):,} labels, more than {MOST_LABELS}: choose another label"
        )


def _require_memory(sources: InputSources, words: int, free: int) -> None:
    """Raise an `InputError` unless the layer states of all words, and a copy of them, have room."""
    if sources.states is not None:
        needed = 2 * 4 * words * sources.states.layers * sources.states.width
        if needed > free:
            raise InputError(
                f"the layer states of {words:,} words need {human_bytes(needed)}, and {human_bytes(free)} are free: "
                "lower --most-words"
            )
