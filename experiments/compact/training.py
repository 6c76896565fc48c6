"""Training on compact vectors: held-out retrieval after a short training on tables of
coded vectors, beside whole ones.

    python -m experiments.compact.training OUT --vectors FILE --words LEXICON --data DIR
"""

from pathlib import Path

import numpy as np

from elmoc.corpus import Corpus
from elmoc.packing import code_rows
from elmoc.word_vectors.compact import CompactVectors
from elmoc.word_vectors.opening import open_word_vectors
from experiments.compact.common import Options, row, run_table, train
from pretrain import CONFIGS
from pretrain.run.directory import read_metrics

# Of 1,280 words each.
UPDATES = 200
WARM_UP = 50
# Codebooks of coded tables, a byte and a part of a norm each; 0 is the whole table.
BOOKS = (0, 15, 30, 60, 100)


def training(options: Options) -> None:
    """Print the table."""
    out = options.out
    path = out / "podcasts"
    text = options.data / "lm/podcast_transcripts-00.txt.gz"
    command = ["data_scripts.build_corpus", text, path, "--workers", 1]
    row(out, "podcasts_corpus", command)
    corpus = Corpus(path)
    words = corpus.lexicon
    rows = open_word_vectors(options.vectors, only=words).lookup(words)
    weights = np.sqrt(corpus.counts * rows.any(axis=1))
    for books in BOOKS:
        name = f"coded{books}"
        source = out / f"{name}.safetensors" if books else Path(options.vectors)
        if not source.exists():
            coded = code_rows(rows, weights, np.eye(rows.shape[1]), books)
            CompactVectors.of_words(words, coded).write(source)
        sets = [f"data.corpus={path}", f"train.updates={UPDATES}"]
        sets.append("evaluation.every_updates=1000000")
        sets.append(f"schedule.linear_warmup_updates={WARM_UP}")
        for table, how in (("input", "none"), ("target", "whiten")):
            build = ["data_scripts.build_vectors", path, source, "--workers", 1]
            build += ["--name", f"{name}_{table}", "--post-process", how]
            row(out, f"{name}_{table}", build)
            sets.append(f"data.{table}_vectors={name}_{table}")
        train(out, name, CONFIGS / "fast.toml", sets)
        rank = read_metrics(out / name, "evaluation")[-1]["reciprocal_rank"]
        # Beside its codes a row has a norm of two bytes.
        size = books + 2 if books else 4 * rows.shape[1]
        print(f"{size:5} bytes a word, reciprocal rank {rank:.4f}", flush=True)


if __name__ == "__main__":
    run_table(training, "Training on tables of coded vectors.")
