"""Shards: which parts of numbered pieces become the shards of a corpus, which are held
out, and how they are written.
"""

import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, compress, count, groupby, repeat
from pathlib import Path

import numpy as np

from data_scripts.parts.pieces import NumberedPiece, PlannedShard
from elmoc.corpus import BEGIN, END, ID_DTYPE, UNKNOWN, Shard
from elmoc.errors import InputError, say
from elmoc.files.arrays import save_array
from elmoc.files.writing import atomic_path
from elmoc.process import progress_bar

# Tokens of a shard at most: some seconds of a worker.
LARGEST_SHARD = 10_000_000
# A source has this many shards, unless it is too large or too small for it.
SHARDS_OF_A_SOURCE = 20
# Tokens that can still be evaluated on: a source that is too small for shards of this
# size has `FEW_SHARDS`.
SMALL_SHARD = 200
FEW_SHARDS = 4
# Tokens of the end of a shard that is held out, at least: shorter ones would hold
# hardly a document.
SHORTEST_END = 1_000


def default_shard_tokens(tokens: int) -> int:
    """Tokens of a shard of a source that has about `tokens`; each source has its own
    size, so that a small source cuts no other.
    """
    wanted = max(tokens // SHARDS_OF_A_SOURCE, min(SMALL_SHARD, tokens // FEW_SHARDS))
    return max(1, min(LARGEST_SHARD, wanted))


def plan_shards(numbered: Sequence[NumberedPiece]) -> list[PlannedShard]:
    """The shards of the corpus in their order.

    Where a source has no held-out files, as much as a shard of it is held out.

    Raises:
        InputError: a source has no sentence, or nothing to hold out.
    """
    shards: defaultdict[tuple[str, bool], list[PlannedShard]] = defaultdict(list)
    for piece in numbered:
        shards[piece.text.source, piece.text.held_out] += piece.shards
    planned: list[PlannedShard] = []
    for (source, is_held_out), own in shards.items():
        needs_ends = (source, True) not in shards
        if len(own) < 1 + needs_ends:
            text = f"{'held-out' if is_held_out else 'training'} text {source}".rstrip()
            raise InputError(
                f"the {text} has no sentence (that is not left out), or "
                "is one shard, and none is left to hold out: give more text, with a "
                "sentence on each line, or held-out files"
            )
        ends = held_out_ends(own) if needs_ends else {}
        planned += chain.from_iterable(ends.get(shard, [shard]) for shard in own)
    return planned


def held_out_ends(
    shards: Sequence[PlannedShard],
) -> dict[PlannedShard, list[PlannedShard]]:
    """What to hold out of several shards of a source: shard → its part left for
    training, if there is one, and its part held out.

    It is as much as one shard, in ends of `SHORTEST_END` or more from everywhere in the
    text: from each shard if they are large enough, else from some in equal distances.
    Where there is not enough for two ends, or no shard can be split, it is the last
    shard.
    """
    tokens = sum(shard.end - shard.start for shard in shards) // len(shards)
    places = min(len(shards), tokens // SHORTEST_END)
    ends: dict[PlannedShard, list[PlannedShard]] = {}
    for place in range(places if places > 1 else 0):
        shard = shards[(2 * place + 1) * len(shards) // (2 * places)]
        parts = shard.split(min(tokens // places, (shard.end - shard.start) // 2))
        if parts:
            ends[shard] = list(parts)
    return ends or {shards[-1]: [replace(shards[-1], held_out=True)]}


class MergedLexicon:
    """The word types of all pieces.

    Args:
        planned: the shards.
        min_count: above 1, rarer words become `<unk>`, but the marks do not.

    words: the most frequent in training first, equal ones by code point.
    counts: int64 [V], how often each stands in the training shards.
    """

    def __init__(self, planned: Sequence[PlannedShard], min_count: int) -> None:
        # A word gets the next row where it is first met.
        row_of: defaultdict[str, int] = defaultdict(count().__next__)
        counts = np.zeros(0, dtype=np.int64)
        for piece, shards in groupby(planned, key=lambda each: each.piece):
            words = piece.lexicon
            occurs = np.zeros(len(words), dtype=bool)
            in_training = np.zeros(len(words), dtype=np.int64)
            for shard in shards:
                counts_of_shard = np.bincount(shard.ids, minlength=len(words))
                occurs |= counts_of_shard > 0
                in_training += 0 if shard.held_out else counts_of_shard
            # A word of sentences that were left out may occur nowhere: it gets no row.
            found = compress(words, occurs.tolist())
            rows = np.fromiter(map(row_of.__getitem__, found), np.int64)
            # Behind the others there are zeros then.
            counts.resize(len(row_of), refcheck=False)
            counts[rows] += in_training[occurs]
        marks = [row_of[BEGIN], row_of[END]]
        if min_count > 1:
            marks.append(row_of[UNKNOWN])
        counts.resize(len(row_of), refcheck=False)
        # Words of the held-out text alone are kept, too, unless rare words are not.
        kept = counts >= (min_count if min_count > 1 else 0)
        kept[marks] = True
        counts[marks[-1]] += counts[~kept].sum()
        by_code_point = sorted(compress(row_of, kept.tolist()))
        rows = np.fromiter(map(row_of.__getitem__, by_code_point), np.int64)
        order = np.argsort(-counts[rows], kind="stable")
        rows = rows[order]
        self.words: list[str] = np.array(by_code_point, dtype=object)[order].tolist()
        self.counts = counts[rows]
        self._row_of = row_of
        self._id_of_row = np.zeros(len(row_of), dtype=ID_DTYPE)
        self._id_of_row[rows] = np.arange(len(rows), dtype=ID_DTYPE)
        self._id_of_row[~kept] = self._id_of_row[marks[-1]]

    def ids_of(self, words: Sequence[str]) -> np.ndarray:
        """uint32 [words]: the ids of words; any id for a word that occurs nowhere."""
        rows = np.fromiter(map(self._row_of.get, words, repeat(0)), np.int64)
        return self._id_of_row[rows]


def write_shards(
    planned: Sequence[PlannedShard], lexicon: MergedLexicon, corpus: Path
) -> tuple[list[Shard], list[Shard]]:
    """Write the shards of a corpus.

    Args:
        planned: the shards.
        lexicon: of all pieces.
        corpus: the corpus directory.

    Returns:
        The training shards and the held-out ones.
    """
    shutil.rmtree(corpus / "shards", ignore_errors=True)
    train: list[Shard] = []
    held_out: list[Shard] = []
    bar = progress_bar(iterable=planned, desc="writing", unit=" shards")
    for piece, plans in groupby(bar, key=lambda each: each.piece):
        ids = lexicon.ids_of(piece.lexicon)
        for plan in plans:
            split = held_out if plan.held_out else train
            name = "held-out" if plan.held_out else "train"
            documents = plan.documents
            shard = Shard(
                file=f"shards/{name}-{len(split):05}.bin",
                tokens=plan.end - plan.start,
                sentences=len(plan.sentences),
                documents=len(documents),
                source=piece.text.source,
            )
            with atomic_path(corpus / shard.file) as partial:
                partial.write_bytes(ids[plan.ids].data)
            save_array(corpus / shard.documents_file, documents)
            split.append(shard)
    return train, held_out


def report(
    corpus: Path, types: str, train: Sequence[Shard], held_out: Sequence[Shard]
) -> None:
    """Print what a corpus holds: a row for each split and, where there are several, for
    each source of it.
    """
    say(f"{corpus}: {types}")
    say(f"{'':30}{'words':>16}{'sentences':>14}{'documents':>12}{'shards':>8}")
    for split, shards in (("training", train), ("held out", held_out)):
        rows = {split: shards}
        sources = dict.fromkeys(shard.source for shard in shards)
        for name in sources if len(sources) > 1 else ():
            rows[f"  {name}"] = [shard for shard in shards if shard.source == name]
        for title, own in rows.items():
            sentences = sum(shard.sentences for shard in own)
            documents = sum(shard.documents for shard in own)
            say(
                f"{title:30}{words_of(own):>16,}{sentences:>14,}{documents:>12,}"
                f"{len(own):>8,}"
            )


def words_of(shards: Sequence[Shard]) -> int:
    """The tokens of shards, without boundaries of sentences."""
    return sum(shard.tokens - 2 * shard.sentences for shard in shards)
