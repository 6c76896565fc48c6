"""Speed of peers: words a second of one thread, and megabytes on disk, of ours and of
Hugging Face models.

    python -m experiments.peers.speed SENTENCES OURS MODEL…

SENTENCES has one tokenised sentence a line, of which 1,000 spread over the file are
read; OURS is a model directory, each MODEL a folder with a Hugging Face model and its
tokenizer. All read them in batches of like length, in float32 and bf16, and take turns;
figures are of the best turn, in the time of this process alone. Tokenising is counted.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

from elmoc.model import ElmoC
from experiments.peers.pretrained import open_encoder

SENTENCES = 1_000
ROUNDS = 3
# What a model is used with: no README, no second form of the same.
NEEDED = ("config.json", "tokenizer.json", "*.safetensors")


def megabytes(folder: Path) -> float:
    """Of the files that using the model takes."""
    size = 0
    for pattern in NEEDED:
        size += sum(file.stat().st_size for file in folder.glob(pattern))
    return size / 1e6


def main() -> None:
    """Measure all models of the command line."""
    torch.set_num_threads(1)
    paths = [Path(argument) for argument in sys.argv[1:]]
    lines = paths[0].read_text(encoding="utf-8").splitlines()
    step = max(1, len(lines) // SENTENCES)
    sentences = [line.split() for line in lines[::step][:SENTENCES]]
    words = sum(map(len, sentences))
    print(f"{len(sentences):,} sentences, {words:,} words")
    readers: dict[str, Callable[[], object]] = {}

    def add(name: str, read: Callable[[list[list[str]]], object]) -> None:
        # A function of its own, so that each keeps its own model.
        readers[name] = lambda: read(sentences)

    for path in paths[1:]:
        print(f"{path}: {megabytes(path):.1f} MB")
        for precision in ("float32", "bf16"):
            name = f"{path} {precision}"
            if path == paths[1]:
                ours = ElmoC.from_pretrained(path, precision=precision)
                add(name, ours.embed_batch)
            else:
                add(name, open_encoder(path, bf16=precision == "bf16").encode)
    times: dict[str, list[float]] = {name: [] for name in readers}
    # In turns: what else the machine does meets all of them.
    for _ in range(ROUNDS):
        for name, read in readers.items():
            # Others may share the core.
            start = time.process_time()
            read()
            times[name].append(time.process_time() - start)
    for name, seconds in times.items():
        print(f"{name}: {words / min(seconds):,.0f} words/s")


if __name__ == "__main__":
    main()
