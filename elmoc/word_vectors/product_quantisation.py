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

ENTRIES = 256  # K: codes of a byte
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
    """Codes uint8 [n, M] of float32 rows [n, D], and their codebooks float16 [M, K, D /
    M]: k-means in each part.

    Args:
        rows: at least K.
        draw: [n], how likely each row is among those that codewords are learned from.
        codebooks: M, which divides D.
    """
    generator = np.random.Generator(np.random.Philox(key=SEED))
    most = min(int(np.count_nonzero(draw)), ENTRIES * _ROWS_OF_CODEWORD)
    drawn = generator.choice(len(rows), size=most, replace=False, p=draw / draw.sum())
    with tempfile.TemporaryDirectory(prefix="elmoc-") as folder:
        np.save(f"{folder}/rows.npy", rows)
        np.save(f"{folder}/drawn.npy", np.sort(drawn))
        command = [sys.executable, "-P", __file__, folder, str(codebooks)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
        return np.load(f"{folder}/codes.npy"), np.load(f"{folder}/codebooks.npy")


def _main(folder: Path, codebooks: int) -> None:
    import faiss

    faiss.omp_set_num_threads(1)
    rows = np.load(folder / "rows.npy", mmap_mode="r")
    quantiser = faiss.ProductQuantizer(
        rows.shape[1], codebooks, (ENTRIES - 1).bit_length()
    )
    quantiser.cp.seed = SEED
    quantiser.cp.niter = _ITERATIONS
    quantiser.cp.min_points_per_centroid = 1
    quantiser.train(np.ascontiguousarray(rows[np.load(folder / "drawn.npy")]))
    learned = (
        faiss.vector_to_array(quantiser.centroids)
        .reshape(codebooks, ENTRIES, -1)
        .astype(np.float16)
    )
    faiss.copy_array_to_vector(
        learned.astype(np.float32).reshape(-1), quantiser.centroids
    )  # codes for what is kept
    np.save(folder / "codebooks.npy", learned)
    np.save(folder / "codes.npy", quantiser.compute_codes(np.ascontiguousarray(rows)))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))
