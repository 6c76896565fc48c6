"""The sample: a tiny valid file for every reader, made by the project's own commands and writers."""

import gzip
import io
import json
import os
import shutil
import tarfile
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from data_scripts import build_corpus, build_subwords, build_vectors, one_billion, train_fasttext
from downstream.__main__ import main as downstream
from downstream.peers.record import PeerDirectory, PeerRecord
from downstream.probe.cli import run_probes
from downstream.suite import cli as suite_cli
from downstream.tasks.ner.task import TASK as NER
from elmoc.corpus import Corpus
from elmoc.features.converting.convert import convert_features
from elmoc.features.join import join_features
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.linked import parts_folder
from elmoc.features.writer import write_features
from elmoc.files.records import write_json
from elmoc.kernels import cpu
from elmoc.kernels.compiling import default_compiler
from elmoc.word_vectors.fasttext import index as fasttext_index
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.subwords import StoredSubwords, Subwords
from pretrain.config import load_config
from pretrain.recipe.begun import begun
from pretrain.run.directory import RunDirectory, Start
from pretrain.setup import set_up
from pretrain.train import train
from tests.downstream.readers.test_conllu import TREES as DEPENDENCIES
from tests.downstream.suite.in_process import run_jobs_here
from tests.elmoc.word_vectors.fasttext.files import KINDS
from tests.fuzz.readers.command_lines import SUITE_OPTIONS, write_words
from tests.fuzz.readers.interop import write_elmo
from tests.fuzz.readers.unfinished_features import write_unfinished
from tests.tiny import learnable_sentences

RUN = """\
[data]
corpus = "corpus"
input_vectors = "white"
target_vectors = "plain"
[encoder]
projection_size = 4
cell_size = 5
layers = 2
[train]
streams = 2
window = 5
mix_shards = 1
updates = 2
device = "cpu"
[schedule]
base = 0.01
[evaluation]
every_updates = 1
words = 50
candidates = 10
[log]
every_updates = 1
"""
SUITE = """\
vectors = "random:1:4"
seeds = 1
[[probe]]
task = "ner"
name = "three"
train = "entities.conll"
dev = ["entities.conll"]
options = { epochs = 1, hidden_size = 4, layers = 1, column = -1, standardise = false }
both = { dropout = 0.1 }
[probe.quick]
train_fraction = 0.5
"""
NER_LINES = (
    "Ada/B-PER Lovelace/I-PER met/O London/B-LOC ./O",
    "Stop/O",
    "Jack/B-PER London/I-PER left/O Oakland/B-LOC",
)
TREES = "(3 (2 This) (3 (3 works) (2 .)))\n(1 (1 (2 It) (0 fails)) (2 .))\n\n(2 Fine)\n"
PAIRS = (("entailment", "A man sleeps .", "Someone rests ."), ("-", "A dog", "A cat"), ("neutral", "It rains", "No"))
DOCUMENT = """\
#begin document (nw/wsj/00); part 000
nw/wsj/00 0 0 Ada NNP (S(NP*) - - - Ada * (ARG0*) * (1)
nw/wsj/00 0 1 gave VBD (VP* give 01 - Ada * (V*) * -
nw/wsj/00 0 2 the DT (NP* - - - Ada * (ARG1* * (2
nw/wsj/00 0 3 cat NN * - - - Ada * * * 2)
nw/wsj/00 0 4 sleeping VBG *))) sleep 01 - Ada * *) (V*) -

nw/wsj/00 0 0 She PRP * - - - - * (1)
nw/wsj/00 0 1 it PRP * - - - - * (2)

#end document
"""
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: text/plain\r\nContent-Length: 26\r\n\r\n"
    + b"abcdefghijklmnopqrstuvwxyz"
)
COMPILER = """\
for word in "$@"; do [ "$before" = -o ] && cp good.so "$word"; before=$word; done
echo version 1
"""
"""A compiler, as a shell script, that has compiled before."""


def make_sample(folder: Path) -> None:
    """Write everything; the working directory has to be `folder`, so that no path in a file is of this machine."""
    write_text(folder)
    write_corpora(folder)
    write_subwords()
    write_task_data(folder)
    write_run(folder)
    write_probe(folder)
    write_suite(folder)
    write_old(folder)
    write_kernels(folder)
    write_elmo(folder)
    write_words(folder)
    write_peer(folder)


def write_peer(folder: Path) -> None:
    """A trained peer, with one file of its model."""
    directory = PeerDirectory(folder / "peer")
    directory.model.mkdir(parents=True)
    (directory.model / "encoder.pkl").write_bytes(bytes(range(256)) * 10)
    how = {"seed": 1, "threads": 2, "max_seconds": 60.0, "seconds": 61.5, "words": 1000}
    directory.finish(PeerRecord(peer="many_langs", settings={"layers": 2}, texts=["text/tokenised.txt"], **how))


def write_text(folder: Path) -> None:
    documents = [learnable_sentences(count, seed) for seed, count in enumerate((20, 8, 12))]
    text = "\n".join("".join(" ".join(words) + "\n" for words in document) for document in documents)
    (folder / "text").mkdir()
    (folder / "text/tokenised.txt").write_text(text)
    (folder / "text/tokenised.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    # pieces of an interrupted build are known by the path of the text: this one is the same in every copy
    documents = ({"doc_key": f"a/{key}", "sentences": [["w1", "w2"], ["w3"]], "clusters": []} for key in range(4))
    (folder / "text/documents.jsonl").write_text("\n".join(map(json.dumps, documents)) + "\n")
    (folder / "text/known.txt").symlink_to(folder / "text/tokenised.txt")
    raw = 'It rained. "Why?" asked Dr. Ada; see https://a.b/c?d=1 or x@y.org… Well, no!\n\nA 2nd text (of 3.5 lines).\n'
    (folder / "text/raw.txt").write_text(raw)
    (folder / "text/raw.txt.gz").write_bytes(gzip.compress(raw.encode(), mtime=0))
    (folder / "text/response.http").write_bytes(RESPONSE)


def write_corpora(folder: Path) -> None:
    """A corpus with tables, one whose building was interrupted, word vectors of other formats, and an archive."""
    text = [Path("text/tokenised.txt")]
    build_corpus.build_corpus(text, Path("corpus"), source_of={text[0]: "prose"}, shard_tokens=120)
    corpus = Corpus("corpus")
    build_vectors.build_vectors(corpus, "random:1:6", name="plain", dtype="float32")
    build_vectors.build_vectors(corpus, "random:2:6", name="white", transform="whiten")
    with suppress(KeyboardInterrupt), patch.object(build_corpus, "merge_lexicons", side_effect=KeyboardInterrupt):
        build_corpus.build_corpus([folder / "text/known.txt"], Path("unfinished"), shard_tokens=120)
    settings = train_fasttext.FastTextSettings(seed=0, dim=4, epochs=1, buckets=20, min_count=1, workers=1)
    (folder / "vectors").mkdir()
    train_fasttext.train_fasttext(corpus, Path("vectors/small.bin"), settings)
    (folder / "vectors/quantised.bin").write_bytes(KINDS["quantised whole"])
    with patch.object(fasttext_index, "KEPT_BYTES", 0):
        open_word_vectors("vectors/small.bin")
    words = corpus.lexicon[:8]
    rows = zip(words, RandomVectors(seed=1, size=4).lookup(words), strict=True)
    lines = [f"{len(words)} 4", *(f"{word} {' '.join(map(str, row))}" for word, row in rows)]
    (folder / "vectors/small.vec").write_text("\n".join(lines) + "\n")
    (folder / "vectors/small.vec.gz").write_bytes(gzip.compress("\n".join(lines[1:]).encode(), mtime=0))
    (folder / "archive").mkdir()
    with tarfile.open(folder / "archive/words.tar.gz", "w:gz", compresslevel=1) as archive:
        for number in range(1, 100):
            name = f"b/training-monolingual.tokenized.shuffled/news.en-{number:05}-of-00100"
            data, member = f"sentence c{number} .\n".encode(), tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    one_billion.unpack(Path("archive/words.tar.gz"), Path("archive/.corpus.unpacked"))


def write_subwords() -> None:
    """The corpus in subwords, and vectors of these."""
    build_subwords.build_subwords(Path("corpus"), Path("subwords"), units=262)
    subwords = Subwords.of_corpus(Corpus("subwords"))
    vectors = torch.from_numpy(RandomVectors(seed=1, size=4).lookup(subwords.units))
    StoredSubwords(vectors, subwords.units, subwords.merges).write("vectors/subwords.safetensors")


def write_task_data(folder: Path) -> None:
    (folder / "data").mkdir()
    words = [[pair.split("/") for pair in line.split(" ")] for line in NER_LINES]
    columns = "".join("".join(f"{word}\t{tag}\n" for word, tag in line) + "\n" for line in words)
    pairs = [dict(zip(("gold_label", "sentence1", "sentence2"), pair, strict=True)) for pair in PAIRS]
    contents = {
        "entities.conll": columns,
        "pairs.jsonl": "".join(json.dumps(pair) + "\n" for pair in pairs),
        "pairs.tsv": "gold_label\tsentence1\tsentence2\n" + "".join("\t".join(pair) + "\n" for pair in PAIRS),
        "similar_words.txt": "tree\tforest\t7.5\ntree\triver\t2\nriver\tforest\t3.25\nthe\tof\t1\n",
        "pairs.txt": "".join("\t".join(pair) + "\n" for pair in PAIRS if pair[0] != "-"),
        "documents.conll": DOCUMENT,
        "trees.txt": TREES,
        "trees.conllu": DEPENDENCIES,
    }
    for name, content in contents.items():
        (folder / "data" / name).write_text(content)
    generator = np.random.default_rng(0)
    (folder / "features").mkdir()
    for name in ("features/layers.h5", "features/other.h5"):
        shape = FeatureShape(layers=3, width=8, dtype="float32", single=False)
        attributes = {"model": "m", "word_vectors": "v", "layers": ["0", "1", "2"]}
        with write_features(name, attributes, shape=shape) as writer:
            for line in words:
                states = generator.standard_normal(shape.of(len(line))).astype(np.float32)
                writer.add(Sentence([word for word, _ in line]), states)
    for layout in ("bilm", "e2e-coref", "flat"):
        convert_features(
            "features/layers.h5",
            f"features/{layout}.h5",
            layout=layout,
            documents=write_documents(folder, [[word for word, _ in line] for line in words]),
        )
    for layout in ("allennlp", "flat"):
        whole = folder / f"features/linked-{layout}.h5"
        parts = [parts_folder(whole) / f"{number}.h5" for number in (1, 2)]
        for part in parts:
            convert_features("features/layers.h5", part, layout=layout)
        join_features(parts, whole, merge=False)
    write_unfinished(Path("features/left.h5"), stop_after=3)


def write_documents(folder: Path, sentences: list[list[str]]) -> Path:
    """A document of the first sentence, and one of the others."""
    path = folder / "features/documents.jsonl"
    documents = ({"doc_key": "a", "sentences": sentences[:1]}, {"doc_key": "b", "sentences": sentences[1:]})
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    return path


def write_run(folder: Path) -> None:
    (folder / "run.toml").write_text(RUN)
    config = load_config("run.toml")
    setup, run = set_up(config), RunDirectory("run")
    run.start(config, Start(None, "x"), parameters=setup.parameters)
    train(setup, run, resumed=None, max_seconds=None)
    measured = {"updates": 2, "words": config.evaluation.words, "candidates": config.evaluation.candidates}
    write_json(run.path / "word_accuracy.json", measured | {"accuracy_at_1": 0.25, "accuracy_at_10": 0.5})
    (folder / "recipe").mkdir()
    with begun(folder / "recipe", "x", {"texts": ["a.txt"], "share": 0.3}):
        (folder / "recipe/made.txt").write_text("Something that was made with these options.\n")


def write_probe(folder: Path) -> None:
    data = ["--train", "data/entities.conll", "--dev", "data/entities.conll", "--seeds", "1", "--epochs", "1"]
    inputs = ["--features", "features/layers.h5", "--vectors", "random:1:4", "--inputs", "vectors,both"]
    small = ["--hidden-size", "4", "--layers", "1", "--save", "probes", "--results", "probes/results.jsonl"]
    run_probes(NER, [*data, *inputs, *small])


def write_suite(folder: Path) -> None:
    """A suite of which everything has been run."""
    (folder / "suite").mkdir()
    (folder / "suite/suite.toml").write_text(SUITE)
    with patch.object(suite_cli, "run_jobs", run_jobs_here):
        assert downstream(["suite", "suite/suite.toml", *SUITE_OPTIONS, "--out", "made/out"]) == 0
    shutil.copy("made/out/suite.json", "suite/report.json")
    shutil.rmtree("made")


def write_old(folder: Path) -> None:
    """Corpus, tables, model and probe as they were written before there were checksums."""
    for name in ("corpus", "run/model", "probes"):
        shutil.copytree(folder / name, folder / "old" / name)
    versions = {"elmoc-model": 1, "elmoc-probe": 2}
    for path in (folder / "old").rglob("*.json"):
        content = json.loads(path.read_bytes())
        content["version"] = versions.get(content["format"], 1)
        for added in ("checksums", "weights"):
            content.pop(added, None)
        if content["format"] == "elmoc-model":
            content["targets"] = {name: each for name, each in content.pop("output_layer").items() if name != "kind"}
        path.write_text(json.dumps(content))


def write_kernels(folder: Path) -> None:
    """The cache of compiled kernels, as the compiler `sh compiler` has filled it."""
    loaded, _ = cpu.load(default_compiler(), cpu.SOURCE)
    (folder / "good.so").write_bytes(Path(loaded._name).read_bytes())
    (folder / "compiler").write_text(COMPILER)
    with patch.dict(os.environ, XDG_CACHE_HOME=str(folder / "cache")):
        cpu.load.__wrapped__("sh compiler", cpu.SOURCE)
