"""Shards: which parts of numbered pieces become the shards of a corpus, which are held
out, and how they are written.
"""

import shutil
from collections import defaultdict
from collections.abc import Sequence
from itertools import compress, count, groupby
from pathlib import Path
from typing import NamedTuple

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


class SplitShard(NamedTuple):
    """A shard of the corpus to be, and the split that it is of."""

    split: str
    shard: PlannedShard


def default_shard_tokens(tokens: int) -> int:
    """Tokens of a shard of a source that has about `tokens`; each source has its own
    size, so that a small source cuts no other.
    """
    wanted = max(tokens // SHARDS_OF_A_SOURCE, min(SMALL_SHARD, tokens // FEW_SHARDS))
    return max(1, min(LARGEST_SHARD, wanted))


def plan_shards(numbered: Sequence[NumberedPiece]) -> list[SplitShard]:
    """The shards of the corpus in their order, each with its split, "train" or
    "held-out".

    Where a source has no held-out files, as much as a shard of it is held out.

    Raises:
        InputError: a source has no sentence, or nothing to hold out.
    """
    shards: defaultdict[tuple[str, bool], list[PlannedShard]] = defaultdict(list)
    for piece in numbered:
        shards[piece.text.source, piece.text.held_out] += piece.shards
    planned: list[SplitShard] = []
    for (source, is_held_out), own in shards.items():
        needs_ends = (source, True) not in shards
        if len(own) < 1 + needs_ends:
            _refuse_too_little(source, is_held_out, own)
        if is_held_out:
            planned += [SplitShard("held-out", shard) for shard in own]
            continue
        ends = held_out_ends(own) if needs_ends else {}
        for shard in own:
            if shard not in ends:
                planned.append(SplitShard("train", shard))
                continue
            before, end = ends[shard]
            if before:
                planned.append(SplitShard("train", before))
            planned.append(SplitShard("held-out", end))
    return planned


def _refuse_too_little(
    source: str, is_held_out: bool, shards: Sequence[PlannedShard]
) -> None:
    text = "the held-out text" if is_held_out else "the training text"
    if source:
        text += f" of {source}"
    why = "has no sentence (that is not left out)"
    if shards:
        why = "is one shard, and none is left to hold out"
    raise InputError(
        f"{text} {why}: give more text, with a sentence on each line, or --held-out "
        "files"
    )


def held_out_ends(
    shards: Sequence[PlannedShard],
) -> dict[PlannedShard, tuple[PlannedShard | None, PlannedShard]]:
    """What to hold out of several shards of a source: shard → the part left for
    training (or None), the part held out.

    It is as much as one shard, in ends of `SHORTEST_END` or more from everywhere in the
    text: from each shard if they are large enough, else from some in equal distances.
    Where there is not enough for two ends, or no shard can be split, it is the last
    shard.
    """
    tokens = sum(shard.end - shard.start for shard in shards) // len(shards)
    places = min(len(shards), tokens // SHORTEST_END)
    ends: dict[PlannedShard, tuple[PlannedShard | None, PlannedShard]] = {}
    if places > 1:
        for place in range(places):
            shard = shards[(2 * place + 1) * len(shards) // (2 * places)]
            half = (shard.end - shard.start) // 2
            parts = shard.split(min(tokens // places, half))
            if parts:
                ends[shard] = parts
    return ends or {shards[-1]: (None, shards[-1])}


class MergedLexicon(NamedTuple):
    """The lexicon of all pieces.

    words: the most frequent in training first, equal ones by code point.
    counts: int64 [V], how often each stands in the training shards.
    rows: for each piece, uint32 [its types]: their ids in the lexicon.
    """

    words: list[str]
    counts: np.ndarray
    rows: dict[NumberedPiece, np.ndarray]


def merge_lexicons(planned: Sequence[SplitShard], min_count: int) -> MergedLexicon:
    """Merge the lexicons of all pieces; with `min_count` above 1 rarer words become
    `<unk>`, but the marks do not.
    """
    # A word gets the next row where it is first met; the rows are sorted afterwards.
    row_of: defaultdict[str, int] = defaultdict(count().__next__)
    first_rows: dict[NumberedPiece, np.ndarray] = {}
    totals: list[tuple[np.ndarray, np.ndarray]] = []
    for piece, shards in groupby(planned, key=lambda each: each.shard.piece):
        words = piece.lexicon
        occurs = np.zeros(len(words), dtype=bool)
        in_training = np.zeros(len(words), dtype=np.int64)
        for split, shard in shards:
            counts = np.bincount(shard.ids, minlength=len(words))
            occurs |= counts > 0
            if split == "train":
                in_training += counts
        # A word of sentences that were left out may occur nowhere: it gets no row.
        rows = [row_of[word] for word in compress(words, occurs.tolist())]
        first_rows[piece] = np.zeros(len(words), dtype=ID_DTYPE)
        first_rows[piece][occurs] = rows
        totals.append((first_rows[piece][occurs], in_training[occurs]))
    marks = [row_of[BEGIN], row_of[END]]
    if min_count > 1:
        marks.append(row_of[UNKNOWN])
    words = list(row_of)
    counts = np.zeros(len(words), dtype=np.int64)
    for rows_of_piece, in_training in totals:
        counts[rows_of_piece] += in_training
    # Words of the held-out text alone are kept, too, unless rare words are not.
    kept = counts >= (min_count if min_count > 1 else 0)
    kept[marks] = True
    counts[marks[-1]] += counts[~kept].sum()
    by_code_point = sorted(np.flatnonzero(kept).tolist(), key=words.__getitem__)
    order = np.array(by_code_point, dtype=np.int64)
    order = order[np.argsort(-counts[order], kind="stable")]
    final = np.zeros(len(words), dtype=ID_DTYPE)
    final[order] = np.arange(len(order), dtype=ID_DTYPE)
    final[~kept] = final[marks[-1]]
    return MergedLexicon(
        words=[words[row] for row in order.tolist()],
        counts=counts[order],
        rows={piece: final[rows] for piece, rows in first_rows.items()},
    )


def write_shards(
    planned: Sequence[SplitShard], rows: dict[NumberedPiece, np.ndarray], corpus: Path
) -> tuple[list[Shard], list[Shard]]:
    """Write the shards of a corpus.

    Args:
        planned: the shards.
        rows: see `MergedLexicon`.
        corpus: the corpus directory.

    Returns:
        The training shards and the held-out ones.
    """
    shutil.rmtree(corpus / "shards", ignore_errors=True)
    shards: dict[str, list[Shard]] = {"train": [], "held-out": []}
    for split, planned_shard in progress_bar(
        iterable=planned, desc="writing", unit=" shards"
    ):
        documents = planned_shard.documents
        shard = Shard(
            file=f"shards/{split}-{len(shards[split]):05}.bin",
            tokens=planned_shard.end - planned_shard.start,
            sentences=len(planned_shard.sentences),
            documents=len(documents),
            source=planned_shard.piece.text.source,
        )
        with atomic_path(corpus / shard.file) as partial:
            partial.write_bytes(rows[planned_shard.piece][planned_shard.ids].data)
        save_array(corpus / shard.documents_file, documents)
        shards[split].append(shard)
    return shards["train"], shards["held-out"]


def report(
    corpus: Path, types: str, train: Sequence[Shard], held_out: Sequence[Shard]
) -> None:
    """Print what a corpus holds: a row for each split and, where there are several, for
    each source of it.
    """
    say(f"{corpus}: {types}")
    say(f"{'':30}{'words':>16}{'sentences':>14}{'documents':>12}{'shards':>8}")
    for split, shards in (("training", train), ("held out", held_out)):
        _report_row(split, shards)
        sources = list(dict.fromkeys(shard.source for shard in shards))
        if len(sources) > 1:
            for name in sources:
                own = [shard for shard in shards if shard.source == name]
                _report_row(f"  {name}", own)


def _report_row(title: str, shards: Sequence[Shard]) -> None:
    sentences = sum(shard.sentences for shard in shards)
    documents = sum(shard.documents for shard in shards)
    # Tokens count `<s>` and `</s>`, too.
    words = sum(shard.tokens for shard in shards) - 2 * sentences
    say(f"{title:30}{words:>16,}{sentences:>14,}{documents:>12,}{len(shards):>8,}")
