"""Inputs: the small files that the documentation's commands and Python examples read."""

import gzip
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from elmoc.features.dumping.dump import dump_features
from elmoc.interop.original_elmo import read_original_elmo
from elmoc.model import ElmoC
from elmoc.model_directory import write_model_directory
from elmoc.word_vectors.sources import RandomVectors
from tests.docs.pages import ROOT
from tests.elmoc.word_vectors.fasttext.files import fasttext_bytes
from tests.tiny import add_table, learnable_sentences, tiny_model, write_corpus

ARCHIVE = "1-billion-word-language-modeling-benchmark-r13output"


def environment(folder: Path) -> dict[str, str]:
    """The environment of a command in `folder`: this interpreter's programs, and the code of that folder."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": path, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1"}


def copy_checkout(folder: Path) -> None:
    """Copy the files of the checkout as they are now, but for those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((ROOT / name).read_bytes())


def write_models(folder: Path, *names: str) -> None:
    """Run directories that hold a model with random weights, and nothing else."""
    for name in names:
        (folder / name).mkdir(parents=True)
        write_model_directory(folder / name / "model", tiny_model())


def write_python_inputs(folder: Path) -> None:
    """What the Python examples read: two runs, an imported ELMo, features, a corpus and the configs."""
    write_models(folder, "runs/quickstart/run", "runs/mine")
    reference = ROOT / "tests/elmoc/interop/data/allennlp"
    read_original_elmo(reference / "options.json", reference / "lm_weights.hdf5").write(folder / "runs/elmo")
    (folder / "sentences.txt").write_text("The cat sat .\nIt rained all day .\n")
    dump_features(ElmoC.from_pretrained(folder / "runs/mine"), folder / "sentences.txt", folder / "features.h5")
    (folder / "vectors.bin").write_bytes(fasttext_bytes())
    corpus = write_corpus(
        folder / "corpora/mine", [learnable_sentences(500, seed=1)], [learnable_sentences(50, seed=2)]
    )
    for name in ("input", "target"):
        add_table(corpus, name, RandomVectors(seed=3, size=6))
    (folder / "pretrain").mkdir()
    (folder / "pretrain/configs").symlink_to(ROOT / "pretrain/configs")


def write_command_inputs(folder: Path) -> None:
    """What a reader has: the quickstart's run, an archive of the benchmark's form, and published word vectors."""
    write_models(folder, "runs/quickstart/run")
    with gzip.open(folder / "quickstart/data/novels.txt.gz", "rt", encoding="utf-8") as file:
        lines = [line for line in (next(file) for _ in range(400)) if line.strip()]
    with tarfile.open(folder / f"{ARCHIVE}.tar.gz", "w:gz") as archive:
        for number in range(1, 100):
            name = f"{ARCHIVE}/training-monolingual.tokenized.shuffled/news.en-{number:05}-of-00100"
            data, member = "".join(lines[number % len(lines)]).encode(), tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    (folder / "published.txt").write_text("".join(lines), encoding="utf-8")
    for command in (
        ["data_scripts.build_corpus", "published.txt", "published"],
        ["data_scripts.train_fasttext", "published", "crawl-300d-2M-subword.bin", "--dim", "16", "--buckets", "1000"],
    ):
        subprocess.run(
            [sys.executable, "-m", *command], cwd=folder, env=environment(folder), check=True, capture_output=True
        )
