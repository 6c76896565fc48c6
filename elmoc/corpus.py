"""Corpus directory: its format, how it is read, and how it is finished.

corpus.json       version, counts, the shards of both splits, sources; written last, so that a directory without
                  it is not a corpus yet
lexicon.txt       one word type a line, most frequent first; id = row
counts.npy        int64 [V], occurrences in the training shards
shards/NAME.bin   little-endian uint32 ids, `<s> … </s>` around every sentence
shards/NAME.documents.npy   int64, for each document of the shard the position of its first `<s>`
vectors/NAME.npy  vector tables (see `elmoc/word_vectors/table.py`)
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.errors import InputError
from elmoc.files.arrays import load_array, save_array
from elmoc.files.checksums import fingerprint
from elmoc.files.records import read_versioned, write_json
from elmoc.files.text import read_lines
from elmoc.files.writing import atomic_path

FORMAT = "elmoc-corpus"
VERSION = 1
BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"
ID_DTYPE = np.dtype("<u4")


@dataclass(frozen=True)
class Shard:
    """One token shard: `tokens` counts every id, sentence boundaries included."""

    file: str
    tokens: int
    sentences: int
    documents: int


class Corpus:
    """A corpus directory opened for reading.

    Raises `InputError` when the directory is missing, unfinished, of another version, or has a shard whose size is
    not what `corpus.json` says.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        if not (self.path / "corpus.json").exists():
            raise InputError(
                f"{self.path} is not a finished corpus directory (no corpus.json): build it with "
                "`python -m data_scripts.build_corpus`"
            )
        info = read_versioned(
            self.path / "corpus.json", format=FORMAT, version=VERSION, advice="build the corpus again"
        )
        self.info: dict[str, Any] = info
        self.types: int = info["types"]
        self.begin_id: int = info["begin_id"]
        self.end_id: int = info["end_id"]
        self.train = [Shard(**shard) for shard in info["train"]]
        self.held_out = [Shard(**shard) for shard in info["held_out"]]
        self.lexicon_fingerprint: str = info["lexicon_fingerprint"]
        for shard in self.train + self.held_out:
            file = self.path / shard.file
            size = file.stat().st_size if file.exists() else -1
            if size != shard.tokens * ID_DTYPE.itemsize:
                raise InputError(
                    f"{file} is {'missing' if size < 0 else 'truncated or changed'} ({max(size, 0):,} bytes where "
                    f"{shard.tokens * ID_DTYPE.itemsize:,} are expected): build the corpus again"
                )

    @property
    def train_tokens(self) -> int:
        """Tokens of the training shards, sentence boundaries included."""
        return sum(shard.tokens for shard in self.train)

    @cached_property
    def lexicon(self) -> list[str]:
        """The word types, most frequent first; id = position."""
        words = list(read_lines(self.path / "lexicon.txt"))
        if len(words) != self.types or lexicon_fingerprint(words) != self.lexicon_fingerprint:
            raise InputError(
                f"{self.path / 'lexicon.txt'} is not the lexicon of this corpus ({len(words):,} lines where "
                f"{self.types:,} types are expected, or other words): build the corpus again"
            )
        return words

    @cached_property
    def counts(self) -> np.ndarray:
        """int64 [V]: occurrences of each type in the training shards."""
        path = self.path / "counts.npy"
        return load_array(path, shape=(self.types,), dtype=np.int64, advice="build the corpus again")

    @cached_property
    def ids(self) -> dict[str, int]:
        """Word type → id."""
        return {word: row for row, word in enumerate(self.lexicon)}

    def read_shard(self, shard: Shard) -> np.ndarray:
        """uint32 [tokens], memory-mapped read-only."""
        return np.memmap(self.path / shard.file, dtype=ID_DTYPE, mode="r")

    def read_documents(self, shard: Shard) -> np.ndarray:
        """int64 [documents]: the position in the shard of each document's first token."""
        path = (self.path / shard.file).with_suffix(".documents.npy")
        return load_array(path, shape=(shard.documents,), dtype=np.int64, advice="build the corpus again")


def finish_corpus(
    path: Path | str,
    *,
    lexicon: Sequence[str],
    counts: np.ndarray,
    train: Sequence[Shard],
    held_out: Sequence[Shard],
    sources: Sequence[str],
    settings: dict[str, Any],
) -> None:
    """Write `lexicon.txt`, `counts.npy` and, last, `corpus.json`, once all the shards are in place."""
    path = Path(path)
    with atomic_path(path / "lexicon.txt") as partial, open(partial, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\n" for word in lexicon)
    save_array(path / "counts.npy", np.asarray(counts, dtype=np.int64))
    positions = {word: row for row, word in enumerate(lexicon) if word in (BEGIN, END, UNKNOWN)}

    def total(shards: Sequence[Shard], field: str) -> int:
        return sum(getattr(shard, field) for shard in shards)

    write_json(
        path / "corpus.json",
        {
            "format": FORMAT,
            "version": VERSION,
            "types": len(lexicon),
            "lexicon_fingerprint": lexicon_fingerprint(lexicon),
            "begin_id": positions[BEGIN],
            "end_id": positions[END],
            "unknown_id": positions.get(UNKNOWN),
            **{
                f"{split}_{field}": total(shards, field)
                for split, shards in (("train", train), ("held_out", held_out))
                for field in ("tokens", "sentences", "documents")
            },
            "settings": settings,
            "sources": list(sources),
            "train": [asdict(shard) for shard in train],
            "held_out": [asdict(shard) for shard in held_out],
        },
    )


def lexicon_fingerprint(words: Sequence[str]) -> str:
    """The content hash by which vector tables name the lexicon they belong to."""
    return fingerprint("\n".join(words).encode("utf-8"))
