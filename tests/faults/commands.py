"""Commands: every command that writes, as a tiny run of it, with what it makes and what has to be there before."""

import json
from dataclasses import dataclass

from tests.faults import outputs
from tests.faults.outputs import Output
from tests.pretrain.conftest import TINY


@dataclass(frozen=True)
class Command:
    """A tiny run of a command.

    In a command line `{inputs}` is the folder of inputs, `{address}` a server of it, `{folder}` that of the outputs.

    line: the command line, the module first.
    second: that of another process which makes the same outputs of other inputs, where there is such a thing.
    again: that which goes on after an interruption, where it is not the same; where it says that there is nothing to
        go on with, the first is run again. One that says that there is something is run with `--resume`.
    before: command lines that are run first, to make what stands in the folder already.
    interrupted: how much of the last of them is done, where it is killed.
    copies: inputs that are copied into the folder.
    adds: two writers at once each add their part.
    replaces: it replaces what is there; of two writers the last one wins.
    keeps: files which stay after a fault, so that the next run can go on with them.
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
    replaces: bool = False
    keeps: tuple[str, ...] = ()
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
NAMED_CORPUS = CORPUS.replace("{inputs}", "prose={inputs}") + " --leave-out {inputs}/raw.txt"
VECTORS = "data_scripts.build_vectors {folder}/corpus random:{source}:300 --name new --workers 1"
VECTORS += " --post-process remove-top=1"
SUBWORDS = "data_scripts.build_subwords {inputs}/{source} {folder}/corpus --units 300 --workers 1"
TEXT = "data_scripts.write_text {inputs}/{source} {folder}/out.txt"
FASTTEXT = "data_scripts.train_fasttext {inputs}/{source} {folder}/out.bin --dim 4 --epochs 1 --buckets 20 --workers 1"
ONE_BILLION = "data_scripts.one_billion {inputs}/{source}.tar.gz {folder}/corpus --workers 1"
DUMP = "elmoc.__main__ dump-features {inputs}/model {inputs}/{source}.txt {folder}/out.h5"
IMPORT = "elmoc.__main__ import-elmo {inputs}/{source}/options.json {inputs}/{source}/weights.hdf5 {folder}/model"
EXPORT = "elmoc.__main__ export-elmo {inputs}/{source}/model {folder}/options.json {folder}/weights.hdf5"
FLAT = " --format flat --top"
RESUMED = f"{FLAT} --resume"
CONVERT = "elmoc.__main__ convert {inputs}/features.h5 {folder}/out.h5 --format flat"
JOIN = "pretrain.join {inputs}/forward {inputs}/backward {folder}/model"
PROBE = (
    "downstream.__main__ ner --train {inputs}/ten.conll --dev {inputs}/ten.conll --vectors random:1:6 "
    "--features {inputs}/features.h5 --seeds 2 --hidden-size 6 --layers 1 --dropout 0 --batch-size 5 --epochs 1 "
    "--results {folder}/results.jsonl --save {folder}/probes --predictions {folder}/predictions"
)
LAYERS = (
    "downstream.__main__ layers --train {inputs}/ten.conll --dev {inputs}/ten.conll --label column:1 "
    "--features {inputs}/features.h5 --results {folder}/layers.jsonl"
)
TABLE = (
    "downstream.__main__ table {inputs}/results.jsonl --resamples 100 --text {folder}/table.txt "
    "--markdown {folder}/table.md --json {folder}/table.json --plot {folder}/gains.png"
)
SUITE = (
    "downstream.__main__ suite {inputs}/suite.toml --inputs vectors --baseline {inputs}/baseline --jobs 1 "
    "--out {folder}/out"
)
"""A suite of which everything has been run: what a run writes is tested with the command of a probe."""
DUMP_PEER = "downstream.peers.many_langs dump {inputs}/peer {inputs}/{source}.txt {folder}/out.h5 --threads 1"
PLOT_WORD = "elmoc.__main__ plot {inputs}/model {inputs}/{source}.txt --word w1 -o {folder}/w1.png"
PLOT = "pretrain.plot {inputs}/run {folder}/curve.png"
PRETRAIN = pretrain_line()
OF_UNITS = pretrain_line(
    data__corpus="{inputs}/units",
    input_layer__kind="subwords",
    encoder__input_layer="identity",
    output_layer__kind="softmax",
).replace("{folder}/run", "{inputs}/units_run")
"""A run that reads subwords."""
WORD_ACCURACY = "pretrain.word_accuracy.__main__ {folder}/units_run --corpus {inputs}/corpus --words 20"

A_TABLE = Output("corpus/vectors", outputs.read_table, in_steps=True)
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
SUITES = (Output("out/results.jsonl", outputs.read_result_lines), Output("out/suite.json"))
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
        "build_corpus NAME=PATH --leave-out --workers 2",
        two_workers(with_source(NAMED_CORPUS, "text")),
        (Output("corpus", outputs.read_corpus),),
        two_workers(with_source(NAMED_CORPUS, "other_text")),
        workers=True,
    ),
    Command("write_text", with_source(TEXT, "corpus"), (Output("out.txt"),), with_source(TEXT, "other_corpus")),
    Command(
        "build_subwords --workers 2",
        two_workers(with_source(SUBWORDS, "corpus")),
        (Output("corpus", outputs.read_corpus),),
        two_workers(with_source(SUBWORDS, "other_corpus")),
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
        replaces=True,
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
    Command(
        "one_billion http",
        ONE_BILLION.replace("{inputs}/{source}", "{address}/archive"),
        (Output("corpus", outputs.read_corpus), Output("archive.tar.gz")),
        keeps=("archive.tar.gz.partial",),
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
    Command("pretrain.plot", PLOT, (Output("curve.png"),), PLOT, before=(PLOT,), replaces=True),
    Command(
        "pretrain.word_accuracy",
        WORD_ACCURACY,
        (Output("units_run/word_accuracy.json"),),
        WORD_ACCURACY,
        before=(WORD_ACCURACY,),
        replaces=True,
        copies=("units_run",),
    ),
    Command(
        "elmoc dump-features",
        with_source(DUMP, "sentences"),
        (Output("out.h5", outputs.read_features),),
        with_source(DUMP, "other_sentences"),
    ),
    Command(
        "elmoc import-elmo",
        with_source(IMPORT, "elmo"),
        (Output("model", outputs.read_model),),
        with_source(IMPORT, "other_elmo"),
    ),
    Command(
        "elmoc export-elmo",
        with_source(EXPORT, "elmo"),
        (Output("options.json"), Output("weights.hdf5")),
        with_source(EXPORT, "other_elmo"),
    ),
    Command(
        "elmoc dump-features --resume",
        with_source(DUMP, "sentences") + RESUMED,
        (Output("out.h5", outputs.read_features),),
        with_source(DUMP, "other_sentences") + RESUMED,
        before=(with_source(DUMP, "sentences") + FLAT,),
        interrupted=0.6,
    ),
    Command(
        "elmoc plot",
        with_source(PLOT_WORD, "text"),
        (Output("w1.png"),),
        with_source(PLOT_WORD, "other_text"),
        before=(with_source(PLOT_WORD, "text"),),
        replaces=True,
    ),
    Command(
        "elmoc convert", CONVERT, (Output("out.h5", outputs.read_features),), f"{CONVERT} --dtype float16 --compress"
    ),
    Command("downstream ner", PROBE, PROBES, PROBE, adds=True),
    Command("downstream layers", LAYERS, (Output("layers.jsonl", outputs.read_json_lines),), LAYERS, adds=True),
    Command("downstream suite", SUITE, SUITES, SUITE, before=(SUITE,), replaces=True),
    Command(
        "downstream.peers.many_langs dump",
        with_source(DUMP_PEER, "sentences"),
        (Output("out.h5", outputs.read_features),),
        with_source(DUMP_PEER, "other_sentences"),
    ),
    Command("downstream table", TABLE, TABLES, TABLE, before=(TABLE,), replaces=True),
)
