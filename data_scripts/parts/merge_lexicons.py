"""Merging of lexicons: the word types of all pieces become the lexicon of a corpus, and their ids are mapped to it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, count, groupby
from pathlib import Path

import numpy as np

from data_scripts.parts.local_shards import documents_within, local_counts, local_documents, local_ids, local_lexicon
from elmoc.corpus import BEGIN, END, ID_DTYPE, UNKNOWN, Shard
from elmoc.files.arrays import load_array, save_array
from elmoc.files.writing import atomic_path, reserve_space

_GATHER_TOKENS = 1 << 22


@dataclass(frozen=True)
class LocalShardSource:
    """Where a `shard` of the corpus comes from: shard `number` of the piece in `folder`.

    part: the positions of that shard's tokens that it has, or None, which is all of them.
    """

    folder: Path
    number: int
    held_out: bool
    shard: Shard
    part: slice | None = None

    def counts(self) -> np.ndarray:
        """uint32 [2, n]: its types by their ids in the piece, and how often each occurs in it."""
        if self.part is None:
            return local_counts(self.folder, self.number)
        counts = np.bincount(local_ids(self.folder, self.number)[self.part])
        types = np.flatnonzero(counts)
        return np.stack([types, counts[types]]).astype(ID_DTYPE)


@dataclass(frozen=True)
class Lexicon:
    """The merged lexicon: words by frequency, and how often each stands in the training shards (int64 [V])."""

    words: list[str]
    counts: np.ndarray


def merge_lexicons(sources: Sequence[LocalShardSource], work: Path, min_count: int) -> Lexicon:
    """Merge the lexicons of all pieces; leaves in `work` and the folders of the pieces what `write_shard` needs.

    The shards of a piece follow each other in `sources`. Words are ordered by their count in the training shards, equal
    ones by code point. With `min_count` above 1 the words that are rarer become `<unk>`, but never `<s>` and `</s>`.
    """
    rows: defaultdict[str, int] = defaultdict(count().__next__)
    counts = np.zeros(1 << 20, dtype=np.int64)
    for folder, of_folder in groupby(sources, key=lambda source: source.folder):
        own = [(source.held_out, *source.counts()) for source in of_folder]
        words = local_lexicon(folder)
        occurs = np.zeros(len(words), dtype=bool)  # a word of sentences that were left out may not
        for _, types, _ in own:
            occurs[types] = True
        local_rows = np.zeros(len(words), dtype=ID_DTYPE)
        found = compress(words, occurs.tolist())
        local_rows[occurs] = np.fromiter(map(rows.__getitem__, found), dtype=ID_DTYPE, count=int(occurs.sum()))
        if len(rows) > len(counts):
            counts = np.concatenate([counts, np.zeros(max(len(counts), len(rows)), dtype=np.int64)])
        for held_out, types, shard_counts in own:
            if not held_out:
                counts[local_rows[types]] += shard_counts
        save_array(folder / "rows.npy", local_rows)
    words = list(rows)
    counts = counts[: len(words)]
    kept = np.ones(len(words), dtype=bool)
    if min_count > 1:
        kept = counts >= min_count
        kept[[rows[BEGIN], rows[END]]] = True
        if UNKNOWN not in rows:
            rows[UNKNOWN]
            words.append(UNKNOWN)
            counts, kept = np.append(counts, 0), np.append(kept, True)
        kept[rows[UNKNOWN]] = True
        counts[rows[UNKNOWN]] += counts[~kept].sum()
    kept_rows = np.flatnonzero(kept)
    by_code_point = sorted(kept_rows.tolist(), key=words.__getitem__)
    order = np.array(by_code_point, dtype=np.int64)
    order = order[np.argsort(-counts[order], kind="stable")]
    final_ids = np.zeros(len(words), dtype=ID_DTYPE)
    final_ids[order] = np.arange(len(order), dtype=ID_DTYPE)
    if min_count > 1:
        final_ids[~kept] = final_ids[rows[UNKNOWN]]
    save_array(work / "final_ids.npy", final_ids)
    return Lexicon([words[row] for row in order.tolist()], counts[order])


def write_shard(source: LocalShardSource, corpus: Path) -> None:
    """Write one shard of the corpus: its ids through the merged lexicon, and its document positions."""
    target = corpus / source.shard.file
    final_ids = load_array(source.folder.parent / "final_ids.npy", shape=(None,), dtype=ID_DTYPE, mmap=True)
    table = final_ids[load_array(source.folder / "rows.npy", shape=(None,), dtype=ID_DTYPE)]
    part = source.part or slice(0, source.shard.tokens)
    ids = local_ids(source.folder, source.number)[part]
    with atomic_path(target) as partial:
        reserve_space(partial, ids.nbytes)
        with open(partial, "r+b") as file:
            for start in range(0, len(ids), _GATHER_TOKENS):
                file.write(table[ids[start : start + _GATHER_TOKENS]].data)
    documents = documents_within(local_documents(source.folder, source.number), part)
    save_array(target.with_suffix(".documents.npy"), documents)
