"""Command lines: the options and settings of every command, as JSON lists of their words."""

import io
import json
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from data_scripts import build_corpus, build_vectors, one_billion, tokenize, train_fasttext, write_text
from data_scripts.parts.download import download
from downstream.__main__ import TASKS
from downstream.__main__ import main as downstream
from elmoc.__main__ import main as elmoc
from elmoc.kernels import compiling, cpu
from pretrain import join, plot
from pretrain.__main__ import main as pretrain_main
from pretrain.__main__ import parse_duration
from pretrain.setup import TrainingSetup
from pretrain.speed.__main__ import main as speed
from pretrain.train import train
from tests.fuzz.mutations.arguments import WORDS
from tests.fuzz.readers.data_scripts import server
from tests.fuzz.readers.reader import Reader, consistent, run

MOST_UPDATES = 20
"""Of a run that is trained; a longer one is set up only."""
SUITE_OPTIONS = (*("--features", "features/layers.h5", "--data", "data"), *("--baseline", "suite/baseline"))
SUITE_OPTIONS += ("--corpus", "corpus")
COMMANDS = {
    "dump-features": """dump-features run text/tokenised.txt out/x.h5 --layers 0,2 --dtype float16 --batch-size 3
        --batch-words 50 --device cpu --vectors random:2:6 --allow-empty --format flat --precision float32 --resume""",
    "dump-features-several": """dump-features run text/tokenised.txt text/documents.jsonl --output-dir out/several --top
        --compress --carry-state --allow-empty --unknown error --format bilm""",
    "tokenize": "text/raw.txt out/x.txt --tokenised no --wrapped auto",
    "build_corpus": "text/tokenised.txt out/corpus --held-out text/raw.txt --min-count 2 --shard-tokens 120",
    "write_text": "corpus out/x.txt --sources prose=1.5",
    "build_vectors": "corpus vectors/small.vec --name x --dtype float16 --post-process remove-top=1",
    "train_fasttext": "corpus out/x.bin --dim 4 --epochs 1 --buckets 20 --min-count 1 --seed 0 --learning-rate 0.05",
    "one_billion": "archive/words.tar.gz out/corpus",
    "join": "run run/model out/model",
    "check": "check run corpus run/model",
    "import-elmo": "import-elmo elmo/options.json elmo/weights.hdf5 out/model",
    "import-elmo of a directory": "import-elmo languages out/model",
    "export-elmo": "export-elmo elmo/model out/options.json out/weights.hdf5",
    "neighbours": """neighbours run text/tokenised.txt --word w1 --in w1 --top 2 --most 5 --layer 1 --occurrence 1
        --ignore-case""",
    "plot word": "plot run text/tokenised.txt --word w1 -o out/w1.png --most 5 --layer top --clusters 2",
    "inspect": "inspect features/linked-flat.h5 --quick",
    "convert": """convert features/layers.h5 out/x.h5 --format flat --dtype float16 --compress --layers 2,0
        --documents features/documents.jsonl""",
    "plot": "run out/curve.png",
    "speed": "--streams 2 --contestants plain --updates 1 --warm-up 1 --directions 1 --device cpu --threads 1",
    "sentences": "sentences ner data/entities.conll --column -1",
    "layers": """layers --train data/entities.conll --dev data/entities.conll --label column:1 --features
        features/layers.h5 --vectors random:1:4 --most-words 40 --l2 1 --results out/layers.jsonl""",
    "mixes": "layers --mix probes/both.seed1",
    "suite": f"suite suite/suite.toml {' '.join(SUITE_OPTIONS)} --out out/suite --jobs 1",
    "table": "table probes/results.jsonl --encoder m=x --resamples 100 --text out/t.txt --json out/t.json",
    "pretrain": """data.corpus=corpus data.input_vectors=white data.target_vectors=plain data.tables_on_device=false
        encoder.kind=lstm encoder.projection_size=4 encoder.cell_size=5 encoder.layers=2 encoder.dropout=0.1
        train.streams=2 train.window=5 train.mix_shards=1 train.epochs=0.1 train.updates=2 train.seed=1
        train.directions=["forward"] train.device=cpu train.threads=1 train.precision=fp32 train.recompute=true
        output_layer.kind=contrastive output_layer.extra_candidates=2 output_layer.extra_power=0.5
        output_layer.temperature=0.1 output_layer.correction=true output_layer.ahead_weight=0.5
        optimiser.beta1=0.9 optimiser.epsilon=1e-6 optimiser.gradient_norm=1.0
        optimiser.weight_decay=0.1 optimiser.average=0.05 schedule.base=0.01
        evaluation.every_updates=1 evaluation.words=50 evaluation.candidates=10 train.recurrence=plain
        log.every_updates=1 log.keep=1 log.checkpoint_minutes=1.5 log.checkpoint_updates=1""",
    "max-time": "60m",
    "address": "http://127.0.0.1:PORT/response.http",
    "compiler": "c++",
}
TASK_FILES = {"snli": "pairs.tsv", "ner": "entities.conll", "sst5": "trees.txt", "srl": "documents.conll"}
TASK_FILES["coref"] = TASK_FILES["srl"]
SIZES = "--batch-size 2 --epochs 1 --patience 1 --learning-rate 0.01 --decay 0.9 --gradient-norm 1 --mix-l2 0.1"
COMMANDS |= {
    task: f"{task} --train data/{file} --dev data/{file} --vectors random:1:4 --seeds 1 --name x --small {SIZES} "
    "--hidden-size 4" + (" --layers 1" if task in ("ner", "srl", "coref") else "")
    for task, file in TASK_FILES.items()
}
assert TASK_FILES.keys() == TASKS.keys()


class Benchmarked(Exception):
    """Raised instead of a benchmark, which takes long."""


def measure(words: list[str]) -> None:
    with patch("pretrain.speed.benchmark.benchmark", side_effect=Benchmarked), suppress(Benchmarked):
        run(speed, *words)


def train_if_short(setup: TrainingSetup, *run: Any, **options: Any) -> bool:
    return setup.updates > MOST_UPDATES or train(setup, *run, **options)


def pretrain(settings: list[str]) -> None:
    """Set a run up, and train it where it is short."""
    with patch("pretrain.train.train", train_if_short):
        run(pretrain_main, "run.toml", "out/run", *(f"--set={setting}" for setting in settings))


def fetch(words: list[str]) -> None:
    """Download from a server on this machine; others are not asked."""
    listening, answer = server(os.getpid())
    answer["bytes"] = Path("text/response.http").read_bytes()
    look_up = socket.getaddrinfo

    def look_up_here(host: Any, *options: Any, **more: Any) -> Any:
        if host != "127.0.0.1":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *options, **more)

    with patch("socket.getaddrinfo", look_up_here):
        for word in words:
            if word.startswith(("http://", "https://")):
                download(word.replace("PORT", str(listening.getsockname()[1])), Path("out/file"))


def dump_features(words: list[str]) -> None:
    """Standard input has two sentences."""
    with patch("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"w1 w2\nw3\n"))):
        run(elmoc, *words)


def run_suite(words: list[str]) -> None:
    """Features are not dumped, nor are probes trained: what is not there is missing."""
    with (
        patch("downstream.suite.cli.run_jobs", return_value=[]),
        patch("downstream.suite.data.run_child", return_value=1),
    ):
        run(downstream, *words)


def compile_kernels(words: list[str]) -> None:
    """A compiler that cannot compile is no error of a command: the kernels are then the reference."""
    with (
        patch.dict(os.environ, XDG_CACHE_HOME="out"),
        patch.object(compiling, "build"),
        suppress(compiling.KernelBuildError),
    ):
        cpu.load.__wrapped__(" ".join(words), cpu.SOURCE)


def command_reader(name: str, read: Callable[[list[str]], Any], share: float = 0.2, writes: bool = False) -> Reader:
    def read_words(folder: Path) -> None:
        read(json.loads((folder / f"words/{name}.json").read_bytes()))

    return Reader(
        name=f"words of {name}",
        target=f"words/{name}.json",
        mutations=WORDS,
        read=read_words,
        right=consistent,
        names=(),
        is_file=False,
        share=share,
        writes=writes,
    )


def of(main: Callable[[list[str]], int], *fixed: str) -> Callable[[list[str]], None]:
    return lambda words: run(main, *words, *fixed)


def write_words(folder: Path) -> None:
    """The command lines, as a part of the sample."""
    (folder / "words").mkdir()
    for name, command in COMMANDS.items():
        (folder / f"words/{name}.json").write_text(json.dumps(command.split()))


ALONE = ("--workers", "1")
"""Not damaged: each of two billion processes would be started."""
READERS = (
    command_reader("dump-features", dump_features),
    command_reader("dump-features-several", dump_features, share=0.1),
    command_reader("tokenize", of(tokenize.main, *ALONE), share=0.5),
    command_reader("build_corpus", of(build_corpus.main, *ALONE), share=0.5),
    command_reader("write_text", of(write_text.main), share=0.5),
    command_reader("build_vectors", of(build_vectors.main, *ALONE), writes=True),
    command_reader("train_fasttext", of(train_fasttext.main, *ALONE)),
    command_reader("one_billion", of(one_billion.main, *ALONE), share=0.1),
    command_reader("join", of(join.main)),
    command_reader("check", of(elmoc)),
    command_reader("import-elmo", of(elmoc)),
    command_reader("import-elmo of a directory", of(elmoc), share=0.1),
    command_reader("export-elmo", of(elmoc)),
    command_reader("neighbours", of(elmoc), share=0.5),
    command_reader("plot word", of(elmoc), share=0.1),
    command_reader("inspect", of(elmoc)),
    command_reader("convert", of(elmoc)),
    command_reader("plot", of(plot.main), share=0.1),
    command_reader("speed", measure),
    command_reader("sentences", of(downstream)),
    command_reader("layers", of(downstream)),
    command_reader("mixes", of(downstream), share=0.1),
    command_reader("suite", run_suite, writes=True),
    command_reader("table", of(downstream)),
    command_reader("pretrain", pretrain, share=0.2),
    command_reader("max-time", lambda words: [parse_duration(word) for word in words]),
    command_reader("address", fetch),
    command_reader("compiler", compile_kernels),
    *(command_reader(task, of(downstream), share=0.2) for task in TASKS),
)
