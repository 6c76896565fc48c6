"""Latency: milliseconds of one sentence, and words a second of many, by one thread of
our model and of Hugging Face models.

    python -m experiments.latency SENTENCES OURS [MODEL…]

SENTENCES has one tokenised sentence a line; OURS is a model directory, each MODEL a
folder with a Hugging Face model and its tokenizer. Each runs in float32, in bf16 where
the processor has it, and ours in int8. They take turns, each turn with up to 1,000
other sentences, spread over the file: all in batches of like length, then some one by
one, whose words have been met by then. Times are of this process alone; dividing words
and looking them up is counted.
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import torch

from elmoc.devices import CPU, has_bf16
from elmoc.model import ElmoC
from experiments.peers.pretrained import open_encoder

SENTENCES = 1_000
ROUNDS = 3
# Words of a sentence that is read alone, and how many are in a turn.
WORDS = 20
ALONE = 50
# What a model is used with: no README, no second form of the same.
NEEDED = ("config.json", "tokenizer.json", "*.safetensors")

# Reads tokenised sentences.
Read = Callable[[list[list[str]]], object]


def megabytes(folder: Path) -> float:
    """Of the files that using the model takes."""
    size = 0
    for pattern in NEEDED:
        size += sum(file.stat().st_size for file in folder.glob(pattern))
    return size / 1e6


def readers_of(ours: Path, others: list[Path]) -> dict[str, Read]:
    """What reads sentences, by the names of models and precisions."""
    precisions = ["float32", "bf16"] if has_bf16(CPU) else ["float32"]
    readers: dict[str, Read] = {}
    for precision in [*precisions, "int8"]:
        model = ElmoC.from_pretrained(ours, precision=precision)
        readers[f"{ours} {precision}"] = model.embed_batch
    for folder in others:
        for precision in precisions:
            encoder = open_encoder(folder, bf16=precision == "bf16")
            readers[f"{folder} {precision}"] = encoder.encode
    return readers


def main() -> None:
    """Measure all models of the command line."""
    torch.set_num_threads(1)
    [text, ours, *others] = [Path(argument) for argument in sys.argv[1:]]
    for path in [ours, *others]:
        print(f"{path}: {megabytes(path):.1f} MB")
    readers = readers_of(ours, others)
    lines = text.read_text(encoding="utf-8").splitlines()
    if not any(len(line.split()) >= WORDS for line in lines):
        sys.exit(f"{text}: no sentence has {WORDS} words")
    step = max(ROUNDS, len(lines) // SENTENCES)
    speeds: dict[str, list[float]] = {name: [] for name in readers}
    seconds: dict[str, list[float]] = {name: [] for name in readers}
    # In turns: what else the machine does meets all of them. Words are kept that were
    # met before: a turn needs new text.
    for turn in range(ROUNDS):
        sentences = [line.split() for line in lines[turn::step][:SENTENCES]]
        words = sum(map(len, sentences))
        alone = [each[:WORDS] for each in sentences if len(each) >= WORDS][:ALONE]
        for name, read in readers.items():
            started = time.process_time()
            read(sentences)
            speeds[name].append(words / (time.process_time() - started))
            for sentence in alone:
                started = time.process_time()
                read([sentence])
                seconds[name].append(time.process_time() - started)
    for name, taken in seconds.items():
        print(
            f"{name}: {1e3 * median(taken):.1f} ms a sentence of {WORDS} words (best "
            f"{1e3 * min(taken):.1f}), {max(speeds[name]):,.0f} words/s in batches"
        )


if __name__ == "__main__":
    main()
