"""Damaged files: a reader gives what was written, or one error that names the file; never a crash, a hang or gigabytes.
`elmoc check` finds every flipped byte of what we write.

FUZZ_EXAMPLES sets the number of damaged files a reader (25); `FUZZ_EXAMPLES=1000 pytest tests/fuzz` tries 20,000.
"""

import gzip
import io
import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_scripts.train_fasttext import FastTextOptions, train_fasttext
from downstream.__main__ import main as downstream
from downstream.results.records import append_result
from downstream.tasks.coref.task import TASK as COREF
from downstream.tasks.ner.task import TASK as NER
from downstream.tasks.snli.task import TASK as SNLI
from downstream.tasks.srl.task import TASK as SRL
from downstream.tasks.sst5.task import TASK as SST5
from elmoc.commands.check import read_files
from elmoc.corpus import Corpus
from elmoc.errors import InputError
from elmoc.features.reader import FeatureFile
from elmoc.files.records import read_json
from elmoc.interop.many_langs import read_many_langs
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.model import ElmoC
from elmoc.text.documents import read_documents
from elmoc.word_vectors.alone import AloneVectors
from elmoc.word_vectors.character_cnn import CharacterCnnVectors
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.opening import open_word_vectors
from elmoc.word_vectors.stored import LexiconVectors
from elmoc.word_vectors.subwords import SubwordVectors
from elmoc.word_vectors.table import VectorTable
from experiments.similarity import read_pairs
from hypothesis import HealthCheck, example, given, settings
from pretrain.config import config_from_dict, config_to_dict, load_config
from pretrain.run.directory import RunDirectory, read_checkpoint, read_metrics

from tests.downstream.readers.test_labelled_rows import write as write_rows
from tests.downstream.results.result_lines import BETTER, WORSE, ner_line
from tests.downstream.tasks.coref.test_json_documents import DOCUMENT as CHAINS
from tests.elmoc.interop.conftest import DATA, write_original
from tests.elmoc.text.test_documents import FORMS, fifty_documents
from tests.elmoc.word_vectors import test_contract
from tests.elmoc.word_vectors.fasttext_files import fasttext_bytes
from tests.elmoc.word_vectors.test_compact import WORDS as WORDS_WITH_ROWS
from tests.elmoc.word_vectors.test_compact import coded, compact
from tests.fuzz.damage import EDITS, bounded, damaged
from tests.pretrain.conftest import TinyRuns

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", 25))
SLOWEST = 10  # seconds of a reader
FUZZ = settings(max_examples=EXAMPLES, deadline=1000 * SLOWEST, suppress_health_check=list(HealthCheck), database=None)

ENTITIES = "Ada\tB-PER\nLovelace\tI-PER\nmet\tO\nLondon\tB-LOC\n\nStop\tO\n\nJack\tB-PER\nleft\tO\nOakland\tB-LOC\n"
TREES = "(3 (2 This) (3 (3 works) (2 .)))\n(1 (1 (2 It) (0 fails)) (2 .))\n\n(2 Fine)\n"
PAIRS = [("entailment", "A man sleeps .", "Someone rests ."), ("-", "A dog", "A cat"), ("neutral", "It rains", "No")]
DOCUMENTS = """\
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
WORDS = ["w1", "Zürich", "unseen", "word7"]


@dataclass(frozen=True)
class Reader:
    """A file that is damaged, and what reads it from the sample's folder.

    exact: what is read equals what was written, since the file has checksums; else only what `read` asserts itself.
    """

    file: str
    read: Callable[[Path], Any]
    exact: bool = False


def vectors(file: str) -> Callable[[Path], np.ndarray]:
    def read(folder: Path) -> np.ndarray:
        found = open_word_vectors(str(folder / file)).lookup(WORDS)
        assert found.dtype == np.float32
        assert len(found) == len(WORDS)
        assert np.isfinite(found).all()
        return found

    return read


def features(layout: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        with FeatureFile(folder / f"{layout}.h5") as file:
            for index in range(min(9, len(file))):
                states = file[index]
                assert states.ndim == 3
                assert states.shape[::2] == (file.layers, file.width)

    return read


def task(task: Any, file: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        for each in task.read(folder / file, task.reader, training=True):
            for sentence in task.sentences(each):
                assert sentence.words
                assert all(word.split() == [word] for word in sentence.words)

    return read


def corpus(folder: Path) -> Any:
    found = Corpus(folder / "corpus")
    shards = [found.read_shard(shard).tolist() for shard in (*found.train, *found.held_out)]
    return found.lexicon, found.counts.tolist(), shards, VectorTable(found, "raw").rows.tolist()


def embed(folder: Path) -> Any:
    return ElmoC.from_pretrained(folder / "model").embed(["w1"]).tolist()


def weights_of(model: Any) -> None:
    for tensor in model.encoder.weights().values():
        assert tensor.isfinite().all()


def similar(folder: Path) -> None:
    assert np.isfinite([score for *_, score in read_pairs(folder / "similar.txt")]).all()


def config(folder: Path) -> None:
    config_to_dict(load_config(folder / "run.toml"))


def checkpoint(folder: Path) -> Any:
    found = read_checkpoint(max((folder / "run/checkpoints").glob("*.pt")))
    return {name: tensor.tolist() for name, tensor in sorted(found["encoder"].items())}


def results(folder: Path) -> None:
    """Show the table of results."""
    run("table", folder / "results.jsonl", "--merit", "--json", folder / "table.json")


def texts(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        return [list(each.sentences()) for each in read_documents(folder / "texts" / name)]

    return read


def probe(folder: Path) -> None:
    """Score a saved probe."""
    saved = folder / "probe/vectors.seed1"
    run("ner", "--evaluate-only", saved, "--test", folder / "entities.conll", "--vectors", "random:1:6")


def run(*arguments: object) -> None:
    """Run a `downstream` command, as a user does."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        status = downstream(list(map(str, arguments)))
    if status:
        line = said.getvalue().rstrip("\n").rpartition("\n")[2]
        assert line.startswith("error: ")
        assert not line.startswith("error: unexpected")
        raise InputError(line)


READERS = [
    Reader("small.bin", vectors("small.bin")),
    Reader("small.vec", vectors("small.vec")),
    Reader("small.vec.gz", vectors("small.vec.gz")),
    *(Reader(f"{kind}/{CompactVectors.file_name}", vectors(kind)) for kind in ("concatenated", "summed")),
    Reader("corpus/corpus.json", corpus),
    Reader("corpus/lexicon.txt", corpus, exact=True),
    Reader("corpus/shards/train-0.bin", corpus, exact=True),
    Reader("corpus/vectors/raw.npy", corpus, exact=True),
    Reader("corpus/vectors/raw.json", corpus),
    *(Reader(each.file_name, vectors(each.file_name)) for each in (LexiconVectors, CharacterCnnVectors, AloneVectors)),
    Reader(
        SubwordVectors.file_name, lambda folder: open_word_vectors(folder / SubwordVectors.file_name).lookup(["<s>"])
    ),
    Reader("model/config.json", embed),
    Reader("model/model.safetensors", embed, exact=True),
    *(Reader(f"{layout}.h5", features(layout)) for layout in ("allennlp", "bilm", "e2e-coref", "flat")),
    Reader("elmo.json", lambda folder: weights_of(read_original_elmo(folder / "elmo.json", folder / "elmo.hdf5"))),
    Reader("elmo.hdf5", lambda folder: weights_of(read_original_elmo(folder / "elmo.json", folder / "elmo.hdf5"))),
    Reader("languages/encoder.pkl", lambda folder: weights_of(read_many_langs(folder / "languages"))),
    Reader("languages/word.dic", lambda folder: weights_of(read_many_langs(folder / "languages"))),
    Reader("run.toml", config),
    Reader("run/checkpoints/*.pt", checkpoint, exact=True),
    Reader("run/start.json", lambda folder: RunDirectory(folder / "run").started_from()),
    Reader("run/config.json", lambda folder: config_from_dict(read_json(folder / "run/config.json"), str(folder))),
    Reader("run/metrics.jsonl", lambda folder: read_metrics(folder / "run", "train")),
    Reader("results.jsonl", results),
    Reader("probe/vectors.seed1/probe.json", probe),
    Reader("probe/vectors.seed1/probe.safetensors", probe),
    Reader("entities.conll", task(NER, "entities.conll")),
    *(Reader(name, task(NER, name)) for name in ("entities.json", "entities.parquet")),
    Reader("roles.props", task(SRL, "roles.props")),
    Reader("trees.txt", task(SST5, "trees.txt")),
    Reader("pairs.jsonl", task(SNLI, "pairs.jsonl")),
    *(Reader(name, task(SST5, name)) for name in ("films.csv", "films.tsv", "films.parquet")),
    Reader("chains.jsonlines", task(COREF, "chains.jsonlines")),
    Reader("documents.conll", task(COREF, "documents.conll")),
    Reader("documents.conll", task(SRL, "documents.conll")),
    Reader("similar.txt", similar),
    *(Reader(f"texts/{name}", texts(name)) for name in FORMS),
]
WRITTEN = ["corpus", "model", "run", "probe", "trained.bin", "results.jsonl"]
WRITTEN += ["allennlp.h5", "bilm.h5", "e2e-coref.h5", "flat.h5"]


@pytest.fixture(scope="module")
def sample(tiny_corpus: Corpus, session_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small whole file for every reader."""
    from elmoc.__main__ import main as elmoc

    folder = tmp_path_factory.mktemp("sample")
    (folder / "small.bin").write_bytes(fasttext_bytes())
    text = "3 4\n" + "".join(f"{word} 0.5 -1 2 {row}\n" for row, word in enumerate(["w1", "w2", "the"]))
    (folder / "small.vec").write_text(text)
    (folder / "small.vec.gz").write_bytes(gzip.compress(text.encode()))
    summed = CompactVectors.of_words(WORDS_WITH_ROWS, coded("summed", len(WORDS_WITH_ROWS)))
    for kind, each in {"summed": summed, "concatenated": compact()}.items():
        (folder / kind).mkdir()
        each.write(folder / kind / CompactVectors.file_name)
    shutil.copytree(tiny_corpus.path, folder / "corpus")
    shutil.copytree(session_model, folder / "model")
    write_original(folder / "elmo.json", folder / "elmo.hdf5")
    shutil.copytree(DATA / "many_langs/words_and_characters", folder / "languages")
    TinyRuns(folder, tiny_corpus.path).run("run", train__updates=2)
    (folder / "run.toml").write_text(
        "[train]\nstreams = 2\nwindow = 5\n[encoder]\ncell_size = 5\n[schedule]\nbase = 0.01\n"
    )
    for name, content in {"entities.conll": ENTITIES, "trees.txt": TREES, "documents.conll": DOCUMENTS}.items():
        (folder / name).write_text(content)
    names = ("gold_label", "sentence1", "sentence2")
    (folder / "pairs.jsonl").write_text(
        "".join(json.dumps(dict(zip(names, pair, strict=True))) + "\n" for pair in PAIRS)
    )
    films = [{"label": label, "text": f"It {'is, ' * label}."} for label in range(5)]
    for name in ("films.csv", "films.tsv", "films.parquet"):
        write_rows(folder / name, films)
    for name in ("entities.json", "entities.parquet"):
        write_rows(folder / name, [{"tokens": ["Ana", "left"], "ner_tags": ["B-PER", "O"]}])
    (folder / "roles.props").write_text("Ana NNP - (A0*)\nleft VBD leave (V*)\n")
    write_rows(folder / "chains.jsonlines", [CHAINS, CHAINS | {"doc_key": "b"}])
    lines = [ner_line("features", WORSE), ner_line("vectors", BETTER), ner_line("vectors", {3: BETTER[1]})]
    for line in lines:
        append_result(folder / "results.jsonl", line)
    files = ["--train", folder / "entities.conll", "--dev", folder / "entities.conll", "--save", folder / "probe"]
    run("ner", *files, "--vectors", "random:1:6", "--seeds", 1, "--hidden-size", 4, "--layers", 1, "--epochs", 1)
    for name in ("lexicon", "subwords", "character CNN of bytes", "ALONE"):
        stored: Any = test_contract.SOURCES[name].make(folder)
        stored.write(folder / stored.file_name)
    (folder / "texts").mkdir()
    for name, form in FORMS.items():
        (folder / "texts" / name).write_bytes(form(fifty_documents()))
    (folder / "similar.txt").write_text("cat dog 7.5\nman rain 1\nit works 3\n")
    (folder / "lines.txt").write_text("w1 w2\nStop\nw3 w1 w2\n")
    (folder / "lines.jsonl").write_text('{"doc_key": "a/b", "sentences": [["w1"], ["w2", "w3"]]}\n')
    for layout in ("allennlp", "bilm", "e2e-coref", "flat"):
        source = folder / ("lines.jsonl" if layout == "e2e-coref" else "lines.txt")
        command = ["dump-features", session_model, source, folder / f"{layout}.h5", "--format", layout]
        assert elmoc(list(map(str, command))) == 0
    sizes = {"dim": 4, "epochs": 1, "buckets": 20, "min_count": 1, "workers": 1}
    train_fasttext(FastTextOptions(corpus=tiny_corpus.path, output=folder / "trained.bin", **sizes))
    return folder


def assert_told(error: Exception, folder: Path) -> None:
    """The error names the file, in one line."""
    said = str(getattr(error, "filename", "") or error)
    assert str(folder) in said
    assert len(said.splitlines()) == 1


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.file)
def test_a_damaged_file_is_read_right_or_told(reader: Reader, sample: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(sample, tmp_path / "copy")
    path = max(folder.glob(reader.file))
    whole = path.read_bytes()
    expected = reader.read(folder)

    @settings(FUZZ, derandomize=path.suffix == ".h5")  # HDF5 reads some damaged files for ever: the same each time
    @given(edits=EDITS)
    @example(edits=[lambda content: b""])
    def read_damaged(edits: list[Callable[[bytes], bytes]]) -> None:
        path.unlink()  # a file that is mapped keeps its content
        path.write_bytes(damaged(whole, edits))
        try:
            with bounded():
                found = reader.read(folder)
        except (InputError, OSError) as error:
            assert_told(error, folder)
        else:
            assert not reader.exact or found == expected

    read_damaged()


@pytest.mark.parametrize("flips", [10, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WRITTEN)
def test_every_flipped_byte_is_found(name: str, flips: int, sample: Path, tmp_path: Path) -> None:
    path = shutil.copytree(sample, tmp_path / "copy") / name
    files = sorted(each for each in path.rglob("*") if each.is_file()) or [path, path.with_name(f"{name}.xxh3")]
    assert read_files(str(path), None) == ([], [])
    choose = random.Random(name)
    for file in choose.choices(files, k=flips):
        whole = file.read_bytes()
        content = bytearray(whole)
        content[choose.randrange(len(content))] ^= choose.randrange(1, 256)
        file.unlink()  # a file that is mapped keeps its content
        file.write_bytes(content)
        damage, _ = read_files(str(path), None)
        found = any(str(file).removesuffix(".xxh3") in sentence for sentence in damage)
        assert found != (file.name == "README.md"), "a model's card is its user's to change"
        file.write_bytes(whole)
