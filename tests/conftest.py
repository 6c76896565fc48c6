"""Fixtures that tests of several rooms share."""

import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for tensors as small as these, threads only wait for each other
os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as commands have it: where a test has threads, they do not spin

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # tests ask no network

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # the GPU's kernels are run on the CPU; read when Triton is imported

from data_scripts.build_subwords import SubwordOptions, build_subwords
from elmoc.corpus import Corpus
from elmoc.model import ElmoC
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.sources import RandomVectors

from tests.elmoc.kernels.kinds import avx2_kernels
from tests.tiny import add_table, learnable_sentences, tiny_model, write_corpus

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell that starts the tests in the background ignores it
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores this one

Fails = Callable[[int], str]
"""What `error_line` gives."""


@pytest.fixture(autouse=True)
def restore_threads() -> Iterator[None]:
    """A number of threads that a test sets, by `train.threads` of a run, say, is not that of all tests behind it."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_subwords(tiny_corpus: Corpus) -> Corpus:
    """The tiny corpus written in subwords, two or three a word; never written to by a test."""
    path = tiny_corpus.path.with_name("subwords")
    build_subwords(SubwordOptions(words=tiny_corpus.path, corpus=path, units=262, workers=1))
    return Corpus(path)


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """22 word types, three training shards and one held-out shard; never written to by a test.

    Tables: `raw` (E = 8), `half` (the same in float16), `gaps` (`raw` without w3 and w4), `swapped` (other vectors of
    that width), `other` (E = 6).
    """
    corpus = write_corpus(
        tmp_path_factory.mktemp("tiny") / "corpus",
        [learnable_sentences(count, seed) for seed, count in enumerate((150, 40, 90))],
        [learnable_sentences(40, 3)],
    )
    vectors = RandomVectors(seed=5, size=8)
    add_table(corpus, "raw", vectors)
    add_table(corpus, "half", vectors, dtype="float16")
    add_table(corpus, "swapped", RandomVectors(seed=7, size=8))
    add_table(corpus, "other", RandomVectors(seed=6, size=6))
    add_table(corpus, "gaps", vectors, zero=["w3", "w4"])
    return corpus


@pytest.fixture(scope="session")
def session_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model directory with random weights, of two directions; never written to by a test."""
    path = tmp_path_factory.mktemp("session_model") / "model"
    write_model_directory(path, tiny_model())
    return path


@pytest.fixture
def model_path(session_model: Path, tmp_path: Path) -> Path:
    """A copy of the model directory, which a test may write to."""
    return shutil.copytree(session_model, tmp_path / "model")


@pytest.fixture
def elmo(session_model: Path) -> ElmoC:
    """That model, opened."""
    return ElmoC.from_pretrained(session_model, precision="float32")


@pytest.fixture
def files_of_at_most() -> Iterator[Callable[[int], None]]:
    """Given a number of bytes: no file grows beyond it, which every writer meets as it does a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.fixture(params=["processor", "AVX2"])
def registers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test runs twice: with this processor's kernels of inference, and with those it would have by AVX2 alone."""
    if request.param == "AVX2":
        if avx2_kernels(torch.float32) is None:
            pytest.skip("the processor has no AVX2, or they are not compiled")
        monkeypatch.setattr("elmoc.encoders.lstm.inference_kernels", avx2_kernels)


@pytest.fixture
def error_line(capsys: pytest.CaptureFixture[str]) -> Fails:
    """Given the exit status of a command that has to fail: the one line that it has printed as its error."""

    def read(status: int) -> str:
        lines = [line for line in capsys.readouterr().err.splitlines() if "it/s" not in line and "words/s" not in line]
        errors = [line for line in lines if line.startswith("error: ")]
        assert status == 1
        assert len(errors) == 1, lines
        assert not any("Traceback" in line for line in lines), lines
        return errors[0]

    return read
