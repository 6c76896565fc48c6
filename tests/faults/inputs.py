"""Inputs: the small files that the commands read, in a folder or from a web server."""

import contextlib
import functools
import io
import shutil
import tarfile
import threading
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest.mock import patch

from downstream.__main__ import main as downstream
from downstream.peers.many_langs import imported
from downstream.peers.record import PeerDirectory, PeerRecord
from downstream.suite import cli as suite_cli
from elmoc.encoders import DIRECTIONS
from elmoc.interop.many_langs import read_many_langs
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.sources import RandomVectors
from tests.downstream.conftest import columns, words_of, write_random_features
from tests.downstream.suite.in_process import run_jobs_here
from tests.elmoc.interop.conftest import DATA, write_original
from tests.faults.commands import OF_UNITS, PRETRAIN, PROBE, SUBWORDS, with_source
from tests.tiny import add_table, learnable_sentences, tiny_model, write_corpus

SUITE = """
vectors = "random:1:6"
seeds = 1
[[probe]]
task = "ner"
name = "ten"
train = "ten.conll"
dev = "ten.conll"
options = { epochs = 1, hidden_size = 4, layers = 1 }"""


def write_inputs(folder: Path, run: Callable[[str], None]) -> None:
    """Make the inputs of all commands; `run` runs a command line that is needed for it."""
    for seed, name in enumerate(("", "other_")):
        sentences = learnable_sentences(40, seed)
        raw = "\n\n".join(f"{' '.join(words).capitalize()}, he said. So it is." for words in sentences)
        write_text(folder / f"{name}raw.txt", raw)
        write_text(folder / f"{name}text.txt", "\n".join(" ".join(words) for words in sentences))
        write_text(folder / f"{name}sentences.txt", "\n".join(" ".join(words) for words in sentences[:5]))
        corpus = write_corpus(folder / f"{name}corpus", [sentences, sentences[20:]], [sentences[:20]])
        add_table(corpus, "raw", RandomVectors(seed=5, size=8))
        write_archive(folder / f"{name}archive.tar.gz", sentences)
        files = folder / f"{name}elmo/options.json", folder / f"{name}elmo/weights.hdf5"
        files[0].parent.mkdir()
        write_original(*files, seed=seed)
        read_original_elmo(*files).write(folder / f"{name}elmo/model")
    write_text(folder / "empty.toml", "")
    write_model_directory(folder / "model", tiny_model())
    for direction in DIRECTIONS:
        write_model_directory(folder / direction, tiny_model(directions=(direction,)))
    write_peer(folder / "peer")
    write_text(folder / "ten.conll", columns())
    write_random_features(folder / "features.h5", words_of())
    write_text(folder / "suite.toml", SUITE)
    with patch.object(suite_cli, "run_jobs", run_jobs_here):
        options = ["--inputs", "vectors", "--out", str(folder / "suite")]
        assert downstream(["suite", str(folder / "suite.toml"), *options]) == 0
    run(PROBE.replace("{folder}", "{inputs}"))
    run(PRETRAIN.replace("{folder}", "{inputs}"))
    run(with_source(SUBWORDS, "corpus").replace("{folder}/corpus", "{inputs}/units"))
    run(OF_UNITS)


def write_peer(folder: Path) -> None:
    """A trained ELMoForManyLangs."""
    directory = PeerDirectory(folder)
    shutil.copytree(DATA / "many_langs/words_and_characters", directory.model)
    read_many_langs(directory.model).write(imported(directory.model))
    settings = {"projection_size": 6}
    how = {"seed": 1, "threads": 1, "max_seconds": 60.0, "seconds": 60.0, "words": 1000}
    directory.finish(PeerRecord(peer="many_langs", settings=settings, texts=["text.txt"], **how))


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


class FileServer:
    """Serves the files of a folder over HTTP, at `address`."""

    def __init__(self, folder: Path) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=str(folder)))
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()


class QuietHandler(SimpleHTTPRequestHandler):
    """Logs nothing, also when a killed client breaks the connection off."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def copyfile(self, source: object, target: object) -> None:
        """Send a file, as far as the client wants it."""
        with contextlib.suppress(ConnectionError):
            super().copyfile(source, target)
