"""Speed of peers: words a second of one thread, and megabytes on disk, of ours and of
Hugging Face models.

    python -m experiments.peers.speed SENTENCES OURS MODEL…

SENTENCES has one tokenised sentence a line; OURS is a model directory, each MODEL a
folder with a Hugging Face model and its tokenizer. All read batches of like length, in
float32 and bf16, and take turns; a turn has up to 1,000 other sentences, spread over
the file. Figures are of the best turn, in the time of this process alone; dividing
words and looking them up is counted.
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
    # Words are kept that were met before: a turn needs new text.
    step = max(ROUNDS, len(lines) // SENTENCES)
    turns = []
    for turn in range(ROUNDS):
        turns.append([line.split() for line in lines[turn::step][:SENTENCES]])
    readers: dict[str, Callable[[list[list[str]]], object]] = {}
    for path in paths[1:]:
        print(f"{path}: {megabytes(path):.1f} MB")
        for precision in ("float32", "bf16"):
            name = f"{path} {precision}"
            if path == paths[1]:
                ours = ElmoC.from_pretrained(path, precision=precision)
                readers[name] = ours.embed_batch
            else:
                readers[name] = open_encoder(path, bf16=precision == "bf16").encode
    speeds: dict[str, list[float]] = {name: [] for name in readers}
    # In turns: what else the machine does meets all of them.
    for sentences in turns:
        words = sum(map(len, sentences))
        print(f"{len(sentences):,} sentences, {words:,} words")
        for name, read in readers.items():
            # Others may share the core.
            start = time.process_time()
            read(sentences)
            speeds[name].append(words / (time.process_time() - start))
    for name, found in speeds.items():
        print(f"{name}: {max(found):,.0f} words/s")


if __name__ == "__main__":
    main()
