"""Product quantisation: how rows become codes of codebooks that are side by side, by
faiss in a process of its own.

faiss and PyTorch bring an OpenMP library each, and crash in one process on some
systems. In a process of its own, with one thread, faiss gives the same codes on every
run. Letters: n rows, D their width, M codebooks, K codewords of each.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# A code is a byte: K = 256.
_BITS = 8
ENTRIES = 1 << _BITS
SEED = 1
# Rows that a codeword is learned from, and how often codewords move: 150 codebooks take
# under a minute of a core.
_ROWS_OF_CODEWORD = 64
_ITERATIONS = 10


def require_faiss() -> None:
    """Raise `ModuleNotFoundError` where faiss, which the other process alone imports,
    is not installed.
    """
    if importlib.util.find_spec("faiss") is None:
        raise ModuleNotFoundError("No module named 'faiss'", name="faiss")


def quantise(
    rows: np.ndarray, draw: np.ndarray, codebooks: int
) -> tuple[np.ndarray, np.ndarray]:
    """Quantise rows by k-means in each of their parts.

    Args:
        rows: float32 [n, D], at least K.
        draw: [n], how likely each row is among those that codewords are learned from.
        codebooks: M, which divides D.

    Returns:
        Codes uint8 [n, M], and codebooks float16 [M, K, D / M].
    """
    drawn = np.random.Generator(np.random.Philox(key=SEED)).choice(
        len(rows),
        size=min(int(np.count_nonzero(draw)), ENTRIES * _ROWS_OF_CODEWORD),
        replace=False,
        p=draw / draw.sum(),
    )
    with tempfile.TemporaryDirectory(prefix="elmoc-") as folder:
        np.save(f"{folder}/rows.npy", rows)
        np.save(f"{folder}/drawn.npy", np.sort(drawn))
        # Without -P, Python would look for modules in this folder first: it has a
        # `fasttext`.
        subprocess.run(
            [sys.executable, "-P", __file__, folder, str(codebooks)],
            check=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        return np.load(f"{folder}/codes.npy"), np.load(f"{folder}/codebooks.npy")


def _main(folder: Path, codebooks: int) -> None:
    import faiss

    faiss.omp_set_num_threads(1)
    rows = np.load(folder / "rows.npy", mmap_mode="r")
    drawn = np.load(folder / "drawn.npy")
    quantiser = faiss.ProductQuantizer(rows.shape[1], codebooks, _BITS)
    quantiser.cp.seed = SEED
    quantiser.cp.niter = _ITERATIONS
    # Small tables have few rows for each codeword; faiss would warn.
    quantiser.cp.min_points_per_centroid = 1
    quantiser.train(np.ascontiguousarray(rows[drawn]))
    kept = faiss.vector_to_array(quantiser.centroids).astype(np.float16)
    # Codes are chosen among the codewords as they are kept.
    faiss.copy_array_to_vector(kept.astype(np.float32), quantiser.centroids)
    np.save(folder / "codebooks.npy", kept.reshape(codebooks, ENTRIES, -1))
    np.save(folder / "codes.npy", quantiser.compute_codes(np.ascontiguousarray(rows)))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
