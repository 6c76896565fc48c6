"""Speed of word vectors: how long a fastText file takes to open, in how much memory,
and how fast words are found.

    python -m experiments.vectors_speed FILE.bin

The library is measured beside, each in a process of its own. Known words are the most
frequent of the file, unseen ones the same twice over.
"""

import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import fasttext
import numpy as np

from elmoc.word_vectors.fasttext import FastTextVectors

SAMPLE = 20_000
ROUNDS = 5


def resident() -> float:
    """GB of this process."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e9


def most_frequent(path: str) -> list[str]:
    """Words of the file."""
    return fasttext.load_model(path).words[:SAMPLE]


def measure(who: str, path: str, words: list[str]) -> dict[str, float]:
    """Seconds of an opening, resident GB that it adds, and words looked up a second of
    one core, known and unseen.
    """
    before = resident()
    start = time.perf_counter()
    if who == "elmoc":
        look_up = FastTextVectors(path).lookup
    else:
        model = fasttext.load_model(path)

        def look_up(words: list[str]) -> np.ndarray:
            return np.stack([model.get_word_vector(word) for word in words])

    seconds = time.perf_counter() - start
    figures = {"seconds": seconds, "resident GB": resident() - before}
    for kind, some in (("known", words), ("unseen", [2 * word for word in words])):
        # The pages are mapped then, so that the disk is not measured.
        look_up(some)
        times = []
        for _ in range(ROUNDS):
            # The time of this process: others may share the core.
            start = time.process_time()
            look_up(some)
            times.append(time.process_time() - start)
        figures[f"{kind} words/s"] = len(some) / min(times)
    return figures


def main() -> None:
    """Measure both in processes of their own."""
    os.environ["OMP_NUM_THREADS"] = "1"
    path = sys.argv[1]
    own_process = partial(ProcessPoolExecutor, 1, get_context("spawn"))
    with own_process() as pool:
        words = pool.submit(most_frequent, path).result()
    for who in ("elmoc", "fasttext"):
        with own_process() as pool:
            figures = pool.submit(measure, who, path, words).result()
        shown = [f"{value:,.2f} {name}" for name, value in figures.items()]
        print(f"{who:9}", ", ".join(shown))


if __name__ == "__main__":
    main()
