"""Same data: a run is resumed with the text and the vectors that it was started with, and with no others."""

from pathlib import Path
from typing import Any

import numpy as np
from elmoc.corpus import Corpus
from elmoc.word_vectors.sources import RandomVectors
from elmoc.word_vectors.table import write_vector_table
from elmoc.word_vectors.transform import VectorTransform, boundary_vectors
from tests.conftest import Fails
from tests.pretrain.conftest import TinyRuns
from tests.tiny import learnable_sentences, write_corpus


def add_centred_table(corpus: Corpus, mean: float) -> None:
    """A table `raw` whose transform takes off this mean."""
    vectors = RandomVectors(seed=5, size=8)
    transform = VectorTransform(boundary_vectors(vectors, mean_norm=2.0), mean=np.full(8, mean, dtype=np.float32))
    rows = transform.lookup(corpus.lexicon, vectors)
    write_vector_table(corpus, "raw", rows=rows, vectors=vectors, transform=transform, post_processing="centre")


TEXT = [learnable_sentences(150, 0), learnable_sentences(150, 1)]
# other data of the same lexicon and raw vectors: shards, held-out shards, a mean, and the settings that differ
SAME_LEXICON: dict[str, tuple[list[Any], list[Any], float, str]] = {
    "the shards in another order": (TEXT[::-1], [learnable_sentences(40, 3)], 0.5, "data.corpus"),
    "other held-out text": (TEXT, [learnable_sentences(40, 4)], 0.5, "data.corpus"),
    "another transform": (TEXT, [learnable_sentences(40, 3)], 0.75, "data.input_vectors, data.target_vectors"),
}


def test_resume_refuses_other_data_of_the_same_lexicon_and_vectors(
    runs: TinyRuns, tmp_path: Path, error_line: Fails
) -> None:
    paths = [tmp_path / "first", *(tmp_path / name for name in SAME_LEXICON)]
    first = (TEXT, [learnable_sentences(40, 3)], 0.5, "")
    for path, (train, held_out, mean, _) in zip(paths, [first, *SAME_LEXICON.values()], strict=True):
        add_centred_table(write_corpus(path, train, held_out), mean)
    lexicons = {Corpus(path).record.lexicon_fingerprint for path in paths}
    assert len(lexicons) == 1
    runs.run("run", data__corpus=str(paths[0]))
    for path, (*_, settings) in zip(paths[1:], SAME_LEXICON.values(), strict=True):
        error = error_line(runs.status("run", "--resume", data__corpus=str(path)))
        assert settings in error
    runs.run("run", "--resume", data__corpus=str(paths[0]))
