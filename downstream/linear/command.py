"""The command `python -m downstream layers`: what does a linear classifier find in each layer, and what do mixes take?

python -m downstream layers --train F… --dev F… --label pos constituent --model RUN --vectors V
python -m downstream layers --mix PROBE…    the weights that trained probes give to the layers
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from downstream.inputs.sentence import Sentence
from downstream.inputs.settings import INPUT_KINDS, add_source_options, require_model
from downstream.inputs.sources import InputSources, open_sources
from downstream.linear.classifier import MOST_ITERATIONS, classify, most_frequent_of_the_word
from downstream.linear.labels import KINDS, Labels, check_labels, read_labelled
from downstream.probe.saved_probe import read_probe
from downstream.text_table import Column, Table, text_table
from elmoc.devices import checked_device
from elmoc.process import progress_bar
from elmoc.settings import counted

MOST_WORDS = 50_000
SEED = 13  # of the order in which sentences are taken where there are more words than are asked for
BATCH = 64  # sentences whose states are looked up together


@dataclass(frozen=True)
class WordSplit:
    """The sentences of a split, all their words [N], and for each kind of label those of all words."""

    sentences: list[Sentence]
    words: np.ndarray
    labels: dict[str, Labels]

    def labelled(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Which words have a label of the kind, as rows [n], and these labels, strings [n]."""
        found = {row: label for row, label in enumerate(self.labels[kind]) if label is not None}
        return np.array(list(found), dtype=np.int64), np.array(list(found.values()), dtype=np.str_)


def run_layers(arguments: Sequence[str]) -> None:
    """`python -m downstream layers …`."""
    options = _parse(arguments)
    if options.mix:
        print(text_table(mix_table(options.mix)))
        return
    checked_device(options.device)
    splits = []
    for name, paths in (("train", options.train), ("dev", options.dev)):
        split = read_words(paths, options.label, most_words=options.most_words)
        print(f"{name:6} {counted(len(split.sentences), 'sentence')}, {counted(len(split.words), 'word')}", flush=True)
        splits.append(split)
    train, dev = splits
    kinds = {INPUT_KINDS[name] for name in ("vectors", "features", "model") if getattr(options, name)}
    sources = open_sources(kinds, sentences=[*train.sentences, *dev.sentences], options=options)
    print(f"\n{text_table(accuracies(sources, train, dev, options.label))}\n")
    for kind in options.label:
        labels, dev_labels = train.labelled(kind)[1], dev.labelled(kind)[1]
        words = f"{len(labels):,} words of train, {len(dev_labels):,} of dev"
        print(f"{kind}: {len(set(labels.tolist()))} labels, {words}")


def read_words(paths: Sequence[Path], kinds: Sequence[str], *, most_words: int) -> WordSplit:
    """Read the files of a split; of more words than `most_words`, random whole sentences, the same in every run."""
    found = [labelled for path in paths for labelled in read_labelled(path, kinds)]
    lengths = np.array([len(sentence.words) for sentence, _ in found])
    if lengths.sum() > most_words:
        order = np.random.default_rng(SEED).permutation(len(found))
        count = max(1, int(np.searchsorted(lengths[order].cumsum(), most_words, side="right")))
        found = [found[row] for row in sorted(order[:count])]
    return WordSplit(
        sentences=[sentence for sentence, _ in found],
        words=np.array([word for sentence, _ in found for word in sentence.words]),
        labels={kind: [label for _, labels in found for label in labels[row]] for row, kind in enumerate(kinds)},
    )


def accuracies(sources: InputSources, train: WordSplit, dev: WordSplit, kinds: Sequence[str]) -> Table:
    """Train a classifier for every kind of label and every input, and score it on `dev`, beside two baselines."""
    names, sizes = ["most frequent label", "most frequent of the word"], ["", ""]
    columns: dict[str, list[str]] = {}
    for kind in kinds:
        (rows, labels), (dev_rows, dev_labels) = train.labelled(kind), dev.labelled(kind)
        frequent = Counter(labels.tolist()).most_common(1)[0][0]
        of_word = most_frequent_of_the_word(train.words[rows], labels, dev.words[dev_rows], dev_labels)
        columns[kind] = [f"{100 * float((dev_labels == frequent).mean()):.2f}", f"{of_word:.2f}"]
    inputs = zip(inputs_of(sources, train), inputs_of(sources, dev), strict=True)
    stopped = False
    with progress_bar(desc="classifiers", unit=" of them", leave=False, delay=2) as progress:
        for (name, vectors), (_, dev_vectors) in inputs:
            names.append(name)
            for kind in kinds:
                (rows, labels), (dev_rows, dev_labels) = train.labelled(kind), dev.labelled(kind)
                x, dev_x = vectors(rows), dev_vectors(dev_rows)
                accuracy, converged = classify(x, labels, test=dev_x, test_labels=dev_labels)
                columns[kind].append(f"{accuracy:.2f}{'' if converged else '*'}")
                stopped |= not converged
                progress.update()
            sizes.append(str(x.shape[1]))
    title = "Accuracy of linear classifiers, in percent"
    title += f" (*: stopped after {MOST_ITERATIONS} iterations)" if stopped else ""
    labels_columns = [Column(kind, cells, right=True) for kind, cells in columns.items()]
    return Table(title, [Column("input", names), Column("numbers", sizes, right=True), *labels_columns])


def inputs_of(sources: InputSources, split: WordSplit) -> Iterator[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
    """Yield what words can be classified by: word vectors, each layer, and all layers side by side.

    Each is a name and what gives the vectors of the words in rows [n]: float32 [n, D], a new array each time. A word
    without a vector has zeros.
    """
    if sources.words is not None:
        table = sources.words
        places = np.concatenate([table.rows([each], len(each.words))[0].numpy() for each in split.sentences])
        yield "vectors", lambda rows: table.vectors.numpy()[places[rows]]
    if sources.states is not None:
        source = sources.states
        states = np.empty((len(split.words), source.layers, source.width), dtype=np.float32)  # [N, L + 1, 2P]
        end = 0
        for first in range(0, len(split.sentences), BATCH):
            for found in source.lookup(split.sentences[first : first + BATCH]):
                begin, end = end, end + found.shape[1]
                states[begin:end] = found.transpose(0, 1).numpy()
        for layer, name in enumerate(source.names):
            yield f"layer {name}", lambda rows, layer=layer: states[rows, layer]  # type: ignore[misc]
        if len(source.names) > 1:
            yield "all layers", lambda rows: states[rows].reshape(len(rows), -1)


def mix_table(paths: Sequence[Path]) -> Table:
    """A row for each saved probe: the softmax weights of the layers, which sum to 1, and the scale of the mix, γ."""
    mixes = [read_probe(path).mix() for path in paths]
    layers = sorted({layer for weights, _ in mixes for layer in weights}, key=lambda name: (len(name), name))
    columns = [Column("probe", list(map(str, paths)))]
    for layer in layers:
        cells = [f"{weights[layer]:.3f}" if layer in weights else "–" for weights, _ in mixes]
        columns.append(Column(f"layer {layer}", cells, right=True))
    columns.append(Column("γ", [f"{scale:.3f}" for _, scale in mixes], right=True))
    return Table("Weights of the layers in the scalar mixes of probes", columns)


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
        help="what is to be found: pos or constituent (the lowest that holds the word and others) of CoNLL-2012 files, "
        "column:N of CoNLL columns (from 0, the word; -1 is the last), deprel, upos or xpos of CoNLL-U files",
    )
    group.add_argument(
        "--most-words",
        type=int,
        metavar="N",
        default=MOST_WORDS,
        help=f"at most so many words of each, in random sentences (default: {MOST_WORDS})",
    )
    add_source_options(parser.add_argument_group("inputs"))
    parser.add_argument("--device", default="cpu", help="where features of --model are computed (default: cpu)")
    parser.add_argument(
        "--mix", nargs="+", type=Path, metavar="PROBE", help="show the mixes of saved probes (DIR/KIND.seedN) instead"
    )
    options = parser.parse_args(arguments)
    if options.mix:
        return options
    if not (options.train and options.dev and options.label):
        parser.error(f"give --train FILES, --dev FILES and --label ({KINDS}); or --mix PROBES")
    options.label = list(dict.fromkeys(options.label))
    check_labels(options.label)
    require_model(options)
    if not (options.vectors or options.features or options.model):
        parser.error("there is nothing to read: give --model DIR or --features FILE.h5, --vectors V, or both")
    return options
