"""Readers of `downstream`: the data of the tasks, saved probes and results."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from downstream.__main__ import TASKS, main
from downstream.linear.labels import read_labelled
from downstream.linear.mixes import mix_table
from downstream.peers.record import PeerDirectory
from downstream.peers.text import TextBlocks
from downstream.probe.cli import run_probes
from downstream.similarity import read_pairs
from downstream.tasks.coref.task import TASK as COREF
from downstream.tasks.ner.task import TASK as NER
from downstream.tasks.snli.task import TASK as SNLI
from downstream.tasks.srl.task import TASK as SRL
from downstream.tasks.sst5.task import TASK as SST5
from tests.fuzz.mutations.arrays import SAFETENSORS
from tests.fuzz.mutations.json_tree import JSON, JSON_LINES
from tests.fuzz.mutations.raw import RAW, Mutation
from tests.fuzz.mutations.text import TEXT
from tests.fuzz.readers.elmoc import text_lines
from tests.fuzz.readers.reader import Reader, consistent, run

assert {task.name for task in (COREF, NER, SNLI, SRL, SST5)} == set(TASKS)


def data_reader(name: str, task: Any, file: str, mutations: tuple[Mutation, ...] = TEXT) -> Reader:
    """A reader of a task's data: every sentence has words, and no word has white space."""

    def read(folder: Path) -> None:
        examples = task.read(folder / "data" / file, task.reader, training=True)
        task.describe(examples)
        for example in examples:
            for sentence in task.sentences(example):
                assert sentence.words
                assert all(word.split() == [word] for word in sentence.words)

    return Reader(name=name, target=f"data/{file}", mutations=mutations, read=read, right=consistent)


def score_probe(path: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        data = ["--test", folder / "data/entities.conll", "--evaluate-only", folder / path]
        inputs = ["--features", folder / "features/layers.h5", "--vectors", "random:1:4"]
        run_probes(NER, [str(word) for word in (*data, *inputs, "--results", folder / "out/results.jsonl")])
        main_table(folder / "out/results.jsonl")

    return read


def read_labels(*kinds: str) -> Callable[[Path], None]:
    """A reader of labels: every word has one of each kind, or None."""

    def read(folder: Path) -> None:
        files = {"column:1": "entities.conll", "deprel": "trees.conllu"}
        file = files.get(kinds[0], "documents.conll")
        for one in read_labelled(folder / "data" / file, kinds):
            for labels in one.labels:
                assert len(labels) == len(one.sentence.words)
                assert all(label is None or label for label in labels)

    return read


def read_mix(folder: Path) -> None:
    mix_table([folder / "probes/both.seed1"])


def read_similarity(folder: Path) -> None:
    file = read_pairs(folder / "data/similar_words.txt")
    assert len(file.pairs) == len(file.scores) >= 3
    assert np.isfinite(file.scores).all()
    assert all(first and second for first, second in file.pairs)
    run(main, "similarity", "random:1:4", folder / "data/similar_words.txt")


def read_results(folder: Path) -> None:
    main_table(folder / "probes/results.jsonl")


def main_table(path: Path) -> None:
    run(main, "table", path, "--resamples", 100, "--figures", "--json", path.parent.parent / "out/table.json")


def run_suite(folder: Path) -> None:
    """The whole suite, of which all is done."""
    with patch("downstream.suite.cli.run_jobs", return_value=[]):
        options: list[object] = [
            folder / "suite/suite.toml",
            "--data",
            folder / "data",
            "--baseline",
            folder / "suite/baseline",
        ]
        options += ["--corpus", folder / "corpus"]
        run(main, "suite", *options, "--features", folder / "features/layers.h5", "--out", folder / "out/suite")


def read_peer(folder: Path) -> None:
    record = PeerDirectory(folder / "peer").trained("many_langs")
    assert (folder / "peer/model/encoder.pkl").stat().st_size == record.model["encoder.pkl"].bytes


def read_blocks(folder: Path) -> None:
    """A pass has the sentences of the text, in an order of its own."""
    text = folder / "text/tokenised.txt"
    blocks = TextBlocks([text], seed=1)
    found = [words for _, block in islice(blocks.blocks(), len(blocks)) for words in block]
    lines = [line.removeprefix("\ufeff").split() for line in text_lines(text)]
    assert sorted(found) == sorted(filter(None, lines))


READERS = (
    Reader(
        name="suite file",
        target="suite/suite.toml",
        mutations=TEXT,
        read=run_suite,
        right=consistent,
        names=("suite.toml", "random:", "entities.conll", "sample/data", "--train", "--dev"),
        share=0.5,
    ),
    Reader(
        name="suite result",
        target="suite/baseline/ner*.json",
        mutations=JSON,
        read=run_suite,
        right=consistent,
        share=0.5,
    ),
    Reader(
        name="suite overlap",
        target="suite/baseline/overlap*.json",
        mutations=JSON,
        read=run_suite,
        right=consistent,
        share=0.2,
    ),
    *(
        Reader(
            name=f"peer {file}",
            target=f"peer/{file}",
            mutations=mutations,
            read=read_peer,
            right=consistent,
            names=(f"sample/peer/{file}", "sample/peer is"),
            share=0.5,
        )
        for file, mutations in (("peer.json", JSON), ("model/encoder.pkl", RAW))
    ),
    Reader(name="blocks of text", target="text/tokenised.txt", mutations=TEXT, read=read_blocks, right=consistent),
    data_reader("entities", NER, "entities.conll"),
    data_reader("pairs jsonl", SNLI, "pairs.jsonl", JSON_LINES),
    data_reader("pairs tsv", SNLI, "pairs.tsv"),
    data_reader("pairs without header", SNLI, "pairs.txt"),
    Reader(
        name="pairs of words", target="data/similar_words.txt", mutations=TEXT, read=read_similarity, right=consistent
    ),
    data_reader("propositions", SRL, "documents.conll"),
    data_reader("coreference", COREF, "documents.conll"),
    data_reader("trees", SST5, "trees.txt"),
    *(
        Reader(
            name=f"{prefix}{file}",
            target=f"{prefix}probes/both.seed1/{file}",
            mutations=mutations,
            read=score_probe(f"{prefix}probes/both.seed1"),
            right=consistent,
            names=(f"sample/{prefix}probes/both.seed1", "train the probe again"),
            share=0.5,
        )
        for prefix in ("", "old/")
        for file, mutations in (("probe.json", JSON), ("probe.safetensors", SAFETENSORS))
    ),
    Reader(
        name="labels of documents",
        target="data/documents.conll",
        mutations=TEXT,
        read=read_labels("pos", "constituent", "constituent:2"),
        right=consistent,
    ),
    Reader(
        name="labels of columns",
        target="data/entities.conll",
        mutations=TEXT,
        read=read_labels("column:1"),
        right=consistent,
    ),
    Reader(
        name="labels of dependency trees",
        target="data/trees.conllu",
        mutations=TEXT,
        read=read_labels("deprel", "upos", "xpos"),
        right=consistent,
    ),
    *(
        Reader(
            name=f"mix of {file}",
            target=f"probes/both.seed1/{file}",
            mutations=mutations,
            read=read_mix,
            right=consistent,
            names=("sample/probes/both.seed1", "train the probe again"),
            share=0.5,
        )
        for file, mutations in (("probe.json", JSON), ("probe.safetensors", SAFETENSORS))
    ),
    Reader(name="results", target="probes/results.jsonl", mutations=JSON_LINES, read=read_results, right=consistent),
)
