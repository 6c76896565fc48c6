"""Speed of word vectors: how long a fastText file takes to open, in how much memory,
and how fast words are found.

    python -m experiments.vectors_speed [WORDS]

The file is made up, by default of the published size (2 million words and buckets, 7.2
GB on disk). The library is measured beside, each in a process of its own.
"""

import os
import struct
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

WORDS = 2_000_000
DIM = 300
SAMPLE = 20_000
ROUNDS = 5
# STEP has no factor 2 or 13, so that its multiples are all different words of six
# letters.
LETTERS = 26
DISTINCT = 26**6
STEP = 48271
BLOCK_BYTES = 1 << 24
FASTTEXT_MAGIC = 793712314
FASTTEXT_VERSION = 12


def made_up_words(first: int, count: int) -> list[bytes]:
    """Distinct words of 6 to 10 letters; words of other numbers are others."""
    numbers = np.arange(first, first + count, dtype=np.int64) * STEP % DISTINCT
    more = np.random.default_rng(first).integers(LETTERS, size=(count, 4))
    digits = numbers[:, None] // LETTERS ** np.arange(6) % LETTERS
    places = np.concatenate((digits, more), axis=1) + ord("a")
    letters = places.astype(np.uint8).tobytes()
    return [letters[10 * row : 10 * row + 6 + row % 5] for row in range(count)]


def write_fasttext_file(path: Path, words: int) -> None:
    """Write a fastText file of made-up words and as many buckets; the output matrix,
    which is not read, is a hole.
    """
    # Behind each word of the dictionary: its count, and its type.
    behind = b"\0" + struct.pack("<qb", 5, 0)
    size = 4 * DIM * 2 * words
    generator = np.random.default_rng(0)
    block = generator.standard_normal(BLOCK_BYTES // 4, dtype=np.float32).tobytes()
    with open(path, "wb") as file:
        numbers = (DIM, 5, 5, 5, 5, 1, 3, 2, words, 3, 6, 100, 1e-4)
        file.write(struct.pack("<2i12id", FASTTEXT_MAGIC, FASTTEXT_VERSION, *numbers))
        file.write(struct.pack("<3i2q", words, words, 0, 5 * words, -1))
        file.write(behind.join(made_up_words(0, words)) + behind)
        file.write(struct.pack("<B2q", 0, 2 * words, DIM))
        for start in range(0, size, BLOCK_BYTES):
            file.write(block[: size - start])
        file.write(struct.pack("<B2q", 0, words, DIM))
        file.truncate(file.tell() + 4 * DIM * words)


def measure(who: str, path: Path) -> dict[str, float]:
    """Seconds of an opening, resident GB after it, and words looked up a second of one
    core, known and unseen.
    """
    start = time.perf_counter()
    if who == "elmoc":
        from elmoc.word_vectors.fasttext import FastTextVectors

        look_up = FastTextVectors(path).lookup
    else:
        import fasttext

        model = fasttext.load_model(str(path))

        def look_up(words: list[str]) -> np.ndarray:
            return np.stack([model.get_word_vector(word) for word in words])

    seconds = time.perf_counter() - start
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    resident = pages * os.sysconf("SC_PAGE_SIZE") / 1e9
    figures = {"seconds": seconds, "resident GB": resident}
    for kind, first in (("known", 0), ("unseen", DISTINCT // 2)):
        words = [word.decode() for word in made_up_words(first, SAMPLE)]
        # The pages are mapped then, so that the disk is not measured.
        look_up(words)
        times = []
        for _ in range(ROUNDS):
            # The time of this process: others may share the core.
            start = time.process_time()
            look_up(words)
            times.append(time.process_time() - start)
        figures[f"{kind} words/s"] = SAMPLE / min(times)
    return figures


def main() -> None:
    """Make the file, and measure both in processes of their own."""
    os.environ["OMP_NUM_THREADS"] = "1"
    words = int(sys.argv[1]) if len(sys.argv) > 1 else WORDS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.bin"
        write_fasttext_file(path, words)
        print(f"{words:,} words and buckets, {path.stat().st_size / 1e9:.1f} GB")
        for who in ("elmoc", "fasttext"):
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                figures = pool.submit(measure, who, path).result()
            shown = [f"{value:,.2f} {name}" for name, value in figures.items()]
            print(f"{who:9}", ", ".join(shown))


if __name__ == "__main__":
    main()
