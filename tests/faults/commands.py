"""Commands: every command that writes, as a tiny run of it, with what it makes and what has to be there before."""

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elmoc.encoders import DIRECTIONS
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.sources import RandomVectors
from tests.downstream.conftest import columns, words_of, write_random_features
from tests.faults import outputs
from tests.faults.outputs import Output
from tests.pretrain.conftest import TINY
from tests.tiny import add_table, learnable_sentences, tiny_model, write_corpus

Run = Callable[[str], None]
"""Runs a command line, which has to succeed."""


@dataclass(frozen=True)
class Command:
    """A tiny run of a command; `{inputs}` in a command line is the folder of inputs, `{folder}` that of the outputs.

    line: the command line, the module first.
    second: that of another process which makes the same outputs of other inputs, where there is such a thing.
    again: that which goes on after an interruption, where it is not the same; where it says that there is nothing to
        go on with, the first is run again.
    before: command lines that are run first, to make what stands in the folder already.
    interrupted: how much of the last of them is done, where it is killed.
    copies: inputs that are copied into the folder.
    adds: two writers at once each add their part.
    workers: other processes write for it.
    """

    name: str
    line: str
    outputs: tuple[Output, ...]
    second: str = ""
    again: str = ""
    before: tuple[str, ...] = ()
    interrupted: float | None = None
    copies: tuple[str, ...] = ()
    adds: bool = False
    workers: bool = False


def with_source(line: str, source: str) -> str:
    """The command line with `{source}` filled in."""
    return line.replace("{source}", source)


def two_workers(line: str) -> str:
    """The command line with two processes."""
    return line.replace("--workers 1", "--workers 2")


def pretrain_line(**settings: object) -> str:
    """The command line of a tiny pretraining run."""
    values = TINY | {"data.corpus": "{inputs}/corpus", "evaluation.every_updates": 6, "log.checkpoint_updates": 3}
    values |= {"train.recurrence": "plain", "log.keep": 2, "log.every_updates": 2, "evaluation.words": 40}
    values |= {name.replace("__", "."): value for name, value in settings.items()}
    sets = " ".join(f"--set={name}={json.dumps(value)}" for name, value in values.items())
    return f"pretrain.__main__ {{inputs}}/empty.toml {{folder}}/run {sets}"


TOKENIZE = "data_scripts.tokenize {inputs}/{source}.txt {folder}/out.txt --workers 1"
CORPUS = "data_scripts.build_corpus {inputs}/{source}.txt {folder}/corpus --workers 1 --shard-tokens 60"
VECTORS = "data_scripts.build_vectors {folder}/corpus random:{source}:300 --name new --workers 1"
VECTORS += " --post-process remove-top=1"
FASTTEXT = "data_scripts.train_fasttext {inputs}/{source} {folder}/out.bin --dim 4 --epochs 1 --buckets 20 --workers 1"
ONE_BILLION = "data_scripts.one_billion {inputs}/{source}.tar.gz {folder}/corpus --workers 1"
DUMP = "elmoc.__main__ dump-features {inputs}/model {inputs}/{source}.txt {folder}/out.h5"
JOIN = "pretrain.join {inputs}/forward {inputs}/backward {folder}/model"
PROBE = (
    "downstream.__main__ ner --train {inputs}/ten.conll --dev {inputs}/ten.conll --vectors random:1:6 "
    "--features {inputs}/features.h5 --seeds 2 --hidden-size 6 --layers 1 --dropout 0 --batch-size 5 --epochs 1 "
    "--results {folder}/results.jsonl --save {folder}/probes --predictions {folder}/predictions"
)
TABLE = (
    "downstream.__main__ table {inputs}/results.jsonl --resamples 100 --text {folder}/table.txt "
    "--markdown {folder}/table.md --json {folder}/table.json --plot {folder}/gains.png"
)
PLOT = "pretrain.plot {inputs}/run {folder}/curve.png"
PRETRAIN = pretrain_line()

A_TABLE = Output("corpus/vectors", outputs.read_table)
A_RUN = (
    Output("run", outputs.read_checkpoints, in_steps=True),
    Output("run/model", outputs.read_model, in_steps=True),
    Output("run/metrics.jsonl", outputs.read_log, in_steps=True),
)
PROBES = (
    Output("results.jsonl", outputs.read_result_lines),
    Output("probes", outputs.read_probes, in_steps=True),
    Output("predictions", in_steps=True),
)
TABLES = tuple(map(Output, ("table.txt", "table.md", "table.json", "gains.png")))

COMMANDS = (
    Command("tokenize", with_source(TOKENIZE, "raw"), (Output("out.txt"),), with_source(TOKENIZE, "other_raw")),
    Command(
        "build_corpus",
        with_source(CORPUS, "text"),
        (Output("corpus", outputs.read_corpus),),
        with_source(CORPUS, "other_text"),
    ),
    Command(
        "build_corpus --workers 2",
        two_workers(with_source(CORPUS, "text")),
        (Output("corpus", outputs.read_corpus),),
        two_workers(with_source(CORPUS, "other_text")),
        workers=True,
    ),
    Command(
        "build_vectors --workers 2",
        two_workers(with_source(VECTORS, "1")),
        (A_TABLE,),
        two_workers(with_source(VECTORS, "2")),
        copies=("corpus",),
    ),
    Command("build_vectors", with_source(VECTORS, "1"), (A_TABLE,), with_source(VECTORS, "2"), copies=("corpus",)),
    Command(
        "build_vectors --replace",
        with_source(VECTORS, "1") + " --replace",
        (A_TABLE,),
        with_source(VECTORS, "2") + " --replace",
        before=(with_source(VECTORS, "3"),),
        copies=("corpus",),
    ),
    Command(
        "train_fasttext",
        with_source(FASTTEXT, "corpus"),
        (Output("out.bin"),),
        with_source(FASTTEXT, "other_corpus"),
        workers=True,
    ),
    Command(
        "one_billion",
        with_source(ONE_BILLION, "archive"),
        (Output("corpus", outputs.read_corpus),),
        with_source(ONE_BILLION, "other_archive"),
    ),
    Command("pretrain", PRETRAIN, A_RUN, pretrain_line(train__seed=2), again=f"{PRETRAIN} --resume"),
    Command(
        "pretrain --resume",
        f"{PRETRAIN} --resume",
        A_RUN,
        f"{PRETRAIN} --resume",
        before=(PRETRAIN,),
        interrupted=0.6,
    ),
    Command("pretrain.join", JOIN, (Output("model", outputs.read_model),), JOIN),
    Command("pretrain.plot", PLOT, (Output("curve.png"),)),
    Command(
        "elmoc dump-features",
        with_source(DUMP, "sentences"),
        (Output("out.h5", outputs.read_features),),
        with_source(DUMP, "other_sentences"),
    ),
    Command("downstream ner", PROBE, PROBES, PROBE, adds=True),
    Command("downstream table", TABLE, TABLES),
)


def write_inputs(folder: Path, run: Run) -> None:
    """Make the inputs of all commands; `run` runs one that is needed for it."""
    for seed, name in enumerate(("", "other_")):
        sentences = learnable_sentences(40, seed)
        raw = "\n\n".join(f"{' '.join(words).capitalize()}, he said. So it is." for words in sentences)
        write_text(folder / f"{name}raw.txt", raw)
        write_text(folder / f"{name}text.txt", "\n".join(" ".join(words) for words in sentences))
        write_text(folder / f"{name}sentences.txt", "\n".join(" ".join(words) for words in sentences[:5]))
        corpus = write_corpus(folder / f"{name}corpus", [sentences, sentences[20:]], [sentences[:20]])
        add_table(corpus, "raw", RandomVectors(seed=5, size=8))
        write_archive(folder / f"{name}archive.tar.gz", sentences)
    write_text(folder / "empty.toml", "")
    write_model_directory(folder / "model", tiny_model())
    for direction in DIRECTIONS:
        write_model_directory(folder / direction, tiny_model(directions=(direction,)))
    write_text(folder / "ten.conll", columns())
    write_random_features(folder / "features.h5", words_of())
    run(PROBE.replace("{folder}", "{inputs}"))
    run(PRETRAIN.replace("{folder}", "{inputs}"))


def write_text(path: Path, text: str) -> None:
    path.write_text(text + "\n", encoding="utf-8")


def write_archive(path: Path, sentences: list[list[str]]) -> None:
    """An archive in the layout of the One Billion Word benchmark, of a sentence a chunk."""
    with tarfile.open(path, "w:gz") as archive:
        for number in range(1, 100):
            name = f"benchmark/training-monolingual.tokenized.shuffled/news.en-{number:05}-of-00100"
            data, member = f"{' '.join(sentences[number % len(sentences)])}\n".encode(), tarfile.TarInfo(name)
            member.size, member.mtime = len(data), 1_300_000_000
            archive.addfile(member, io.BytesIO(data))
