"""Building a corpus: tokenised text becomes a corpus directory (lexicon, token shards,
counts).

The text has one sentence a line, words split on white space, and blank lines between
documents; every file starts a document of its own. The text is read once: workers
number the words of their piece in order of occurrence (`parts/pieces.py`), then the
pieces' lexicons are merged and the ids mapped. Finished pieces stay in `CORPUS/.work`
until the corpus is finished, so that a build that was killed goes on behind them; the
result is the same, byte for byte, whatever the number of workers or interruptions.

Where files are given as NAME=PATH, NAME is the source of their text, and every shard
holds text of one source alone.
"""

import argparse
import os
import shutil
import sys
from collections import defaultdict
from collections.abc import Sequence
from itertools import compress, count, groupby
from pathlib import Path
from typing import Any

import numpy as np

from data_scripts.parts.pieces import (
    NumberedPiece,
    TextPart,
    TextPiece,
    cut_pieces,
    number_piece,
    piece_key,
)
from data_scripts.parts.workers import add_workers, parallel_map, positive
from elmoc.corpus import BEGIN, END, ID_DTYPE, UNKNOWN, Shard, finish_corpus
from elmoc.errors import InputError, run_command
from elmoc.files.arrays import save_array
from elmoc.files.checksums import fingerprint_file
from elmoc.files.text import read_lines
from elmoc.files.writing import atomic_path, locked
from elmoc.process import progress_bar
from elmoc.text.documents import estimate_tokens
from elmoc.text.named_files import find_named_files
from elmoc.text.overlap import RUN, Overlap
from elmoc.text.suitable import check_suitable, warn_of_raw_text

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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.build_corpus",
        description="Make a corpus directory from tokenised text: one sentence a line, words split on white space, "
        "blank lines between documents. Safe to interrupt and run again.",
    )
    text = "files, .gz files, folders, or quoted globs; NAME=PATH names the kind of text, its source"
    held_out = "text held out for evaluation; of a source without any, as much as a shard, the ends of its shards"
    leave_out = f"text whose sentences are left out of IN, as those are that share {RUN} words in a row with one of it"
    min_count = "words seen fewer than N times in training become <unk> (default 1: every word type has a row)"
    shard_tokens = f"tokens in a shard, roughly; default {LARGEST_SHARD:,}, or for a smaller text a twentieth of it"
    parser.add_argument("files", nargs="+", metavar="IN", help=text)
    parser.add_argument(
        "corpus", type=Path, metavar="CORPUS", help="the corpus directory to make"
    )
    parser.add_argument(
        "--held-out", default=[], nargs="+", metavar="FILE", help=held_out
    )
    parser.add_argument(
        "--leave-out", default=[], nargs="+", metavar="FILE", help=leave_out
    )
    parser.add_argument(
        "--min-count", type=positive, default=1, metavar="N", help=min_count
    )
    parser.add_argument("--shard-tokens", type=positive, metavar="N", help=shard_tokens)
    add_workers(parser)
    options = vars(parser.parse_args(argv))
    return run_command(lambda: build_corpus(**options))


def build_corpus(
    files: Sequence[str],
    corpus: Path,
    *,
    held_out: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    min_count: int = 1,
    shard_tokens: int | None = None,
    workers: int = 1,
) -> None:
    """Build the corpus directory `corpus`; see the command's help.

    Raises `InputError` for text that cannot be used, naming file and line, and when
    `corpus` is finished already or is some other directory.
    """
    train_files, held_out_files = find_text(files, held_out)
    leave_out_files = list(find_named_files(leave_out))
    for file in (*train_files, *held_out_files, *leave_out_files):
        check_suitable(file)
    overlap = (
        Overlap(line.split() for file in leave_out_files for line in read_lines(file))
        if leave_out
        else None
    )
    paths: defaultdict[tuple[bool, str], list[Path]] = defaultdict(
        list
    )  # by split and source
    for file, source in (train_files | held_out_files).items():
        paths[file in held_out_files, source].append(file)
    sources = list(dict.fromkeys(source for _, source in paths))
    sizes = {
        source: shard_tokens
        or default_shard_tokens(
            estimate_tokens(paths[False, source] + paths[True, source])
        )
        for source in sources
    }
    pieces = [
        piece
        for is_held_out in (False, True)
        for source, size in sizes.items()
        for piece in cut_pieces(paths[is_held_out, source], size, is_held_out, source)
    ]
    settings: dict[str, Any] = {
        "min_count": min_count,
        "shard_tokens": sizes,
        "held_out": _named(held_out_files) or "as much as a shard of each source",
    }
    with locked(corpus / "corpus.json"):
        work = corpus / ".work"
        if (corpus / "corpus.json").exists():
            shutil.rmtree(
                work, ignore_errors=True
            )  # of a build that was killed while it removed it
        if not work.is_dir() and any(
            not path.name.startswith(".corpus.json.") for path in corpus.iterdir()
        ):
            raise InputError(
                f"{corpus} is a finished corpus, or holds other files: remove it or choose another path"
            )
        numbered = number_pieces(pieces, work, overlap, workers)
        planned = plan_shards(numbered)
        lexicon, counts, ids = merge_lexicons(planned, min_count)
        train, evaluation = write_shards(planned, ids, corpus)
        if leave_out:
            settings["leave_out"] = {
                str(file): fingerprint_file(file) for file in leave_out_files
            }
            settings["left_out_sentences"] = {
                source: sum(
                    piece.left_out for piece in numbered if piece.text.source == source
                )
                for source in sources
            }
        finish_corpus(
            corpus,
            lexicon=lexicon,
            counts=counts,
            train=train,
            held_out=evaluation,
            sources=_named(train_files | held_out_files),
            settings=settings,
        )
        shutil.rmtree(work)
    warn_of_raw_text(corpus, zip(lexicon, counts.tolist(), strict=True))
    report(corpus, f"{len(lexicon):,} word types", train, evaluation)
    for source, sentences in settings.get("left_out_sentences", {}).items():
        print(
            f"{sentences:,} sentences{f' of {source}' if source else ''} left out: they overlap with --leave-out"
        )


def find_text(
    files: Sequence[str], held_out: Sequence[str]
) -> tuple[dict[Path, str], dict[Path, str]]:
    """The files to train on and those to hold out, each with its source; a file that
    both name is held out.
    """
    evaluation = find_named_files(held_out)
    aside = set(map(os.path.realpath, evaluation))
    train = {
        file: name
        for file, name in find_named_files(files).items()
        if os.path.realpath(file) not in aside
    }
    if not train:
        raise InputError("every input file is held out: name files to train on, too")
    if len(set(map(bool, [*train.values(), *evaluation.values()]))) > 1:
        raise InputError(
            "some files are given as NAME=PATH and some without a name: name all of them, or none"
        )
    return train, evaluation


def _named(files: dict[Path, str]) -> list[str]:
    """The files as `corpus.json` names them: NAME=PATH, or PATH without a source."""
    return [
        f"{source}={file}" if source else str(file) for file, source in files.items()
    ]


def default_shard_tokens(tokens: int) -> int:
    """Tokens of a shard of a source that has about `tokens`; each has its own, so that
    a small one cuts no other.
    """
    wanted = max(tokens // SHARDS_OF_A_SOURCE, min(SMALL_SHARD, tokens // FEW_SHARDS))
    return max(1, min(LARGEST_SHARD, wanted))


def number_pieces(
    pieces: Sequence[TextPiece], work: Path, leave_out: Overlap | None, workers: int
) -> list[NumberedPiece]:
    """Number the words of all pieces that are not in `work` already, each in a folder
    there; returns all of them.
    """
    folders = [work / piece_key(piece, leave_out) for piece in pieces]
    both = list(zip(pieces, folders, strict=True))
    done = parallel_map(lambda each: number_piece(*each, leave_out), both, workers)
    list(progress_bar(iterable=done, desc="reading", total=len(pieces), unit=" pieces"))
    return [NumberedPiece(piece, folder) for piece, folder in both]


def plan_shards(numbered: Sequence[NumberedPiece]) -> list[tuple[str, TextPart]]:
    """The shards of the corpus in their order, each with its split, "train" or
    "held-out".

    Of a source that has no held-out files, as much as a shard is held out. Raises an
    `InputError` for a source that has no sentence, or nothing to hold out.
    """
    shards: defaultdict[tuple[str, bool], list[TextPart]] = defaultdict(list)
    for piece in numbered:
        shards[piece.text.source, piece.text.held_out] += piece.shards
    planned: list[tuple[str, TextPart]] = []
    for (source, is_held_out), own in shards.items():
        needs_ends = (source, True) not in shards
        if len(own) < 1 + needs_ends:
            which = f"the {'held-out' if is_held_out else 'training'} text{f' of {source}' if source else ''}"
            why = (
                "is one shard, and none is left to hold out"
                if own
                else "has no sentence (that is not left out)"
            )
            raise InputError(
                f"{which} {why}: give more text, with a sentence on each line, or --held-out files"
            )
        ends = held_out_ends(own) if needs_ends else {}
        for part in own:
            before, end = (None, part) if is_held_out else ends.get(part, (part, None))
            planned += [("train", before)] if before else []
            planned += [("held-out", end)] if end else []
    return planned


def held_out_ends(
    shards: Sequence[TextPart],
) -> dict[TextPart, tuple[TextPart | None, TextPart]]:
    """What to hold out of several shards of a source: shard → the part left for
    training (or None), the part held out.

    It is as much as one shard, in ends of `SHORTEST_END` or more from everywhere in the
    text: from each shard if they are large enough, else from some in equal distances.
    Where there is not enough for two ends, or no shard can be split, it is the last
    shard.
    """
    tokens = sum(shard.end - shard.start for shard in shards) // len(shards)
    places = min(len(shards), tokens // SHORTEST_END)
    ends: dict[TextPart, tuple[TextPart | None, TextPart]] = {}
    for place in range(places if places > 1 else 0):
        shard = shards[(2 * place + 1) * len(shards) // (2 * places)]
        if parts := shard.split(min(tokens // places, (shard.end - shard.start) // 2)):
            ends[shard] = parts
    return ends or {shards[-1]: (None, shards[-1])}


def merge_lexicons(
    planned: Sequence[tuple[str, TextPart]], min_count: int
) -> tuple[list[str], np.ndarray, dict[NumberedPiece, np.ndarray]]:
    """Merge the lexicons of all pieces; with `min_count` above 1 rarer words become
    `<unk>`, but the marks do not.

    Returns:
        The words, the most frequent in training first, equal ones by code point; int64
        [V], how often each stands in the training shards; and for each piece uint32
        [its types]: the ids of these in the lexicon.
    """
    rows: defaultdict[str, int] = defaultdict(count().__next__)
    pieces: dict[NumberedPiece, np.ndarray] = {}
    totals: list[tuple[np.ndarray, np.ndarray]] = []
    for piece, of_piece in groupby(planned, key=lambda each: each[1].piece):
        words = (
            (piece.folder / "lexicon.txt").read_text(encoding="utf-8").split("\n")[:-1]
        )
        occurs = np.zeros(len(words), dtype=bool)
        in_training = np.zeros(len(words), dtype=np.int64)
        for split, part in of_piece:
            counts = np.bincount(part.ids, minlength=len(words))
            occurs |= counts > 0
            in_training += counts * (split == "train")
        found = compress(
            words, occurs.tolist()
        )  # a word of sentences that were left out may occur nowhere
        own = np.zeros(len(words), dtype=ID_DTYPE)
        own[occurs] = np.fromiter(
            map(rows.__getitem__, found), dtype=ID_DTYPE, count=int(occurs.sum())
        )
        pieces[piece] = own
        totals.append((own[occurs], in_training[occurs]))
    marks = [rows[BEGIN], rows[END], *([rows[UNKNOWN]] if min_count > 1 else [])]
    words = list(rows)
    counts = np.zeros(len(words), dtype=np.int64)
    for own, in_training in totals:
        counts[own] += in_training
    kept = counts >= (min_count if min_count > 1 else 0)
    kept[marks] = True
    counts[marks[-1]] += counts[~kept].sum()
    order = np.array(
        sorted(np.flatnonzero(kept).tolist(), key=words.__getitem__), dtype=np.int64
    )
    order = order[np.argsort(-counts[order], kind="stable")]
    final = np.zeros(len(words), dtype=ID_DTYPE)
    final[order] = np.arange(len(order), dtype=ID_DTYPE)
    final[~kept] = final[marks[-1]]
    return (
        [words[row] for row in order.tolist()],
        counts[order],
        {piece: final[own] for piece, own in pieces.items()},
    )


def write_shards(
    planned: Sequence[tuple[str, TextPart]],
    ids: dict[NumberedPiece, np.ndarray],
    corpus: Path,
) -> tuple[list[Shard], list[Shard]]:
    """Write the shards of the corpus, by the ids of each piece; returns the training
    shards and the held-out ones.
    """
    shutil.rmtree(corpus / "shards", ignore_errors=True)
    shards: dict[str, list[Shard]] = {"train": [], "held-out": []}
    for split, part in progress_bar(iterable=planned, desc="writing", unit=" shards"):
        file = f"shards/{split}-{len(shards[split]):05}.bin"
        documents = part.documents
        with atomic_path(corpus / file) as partial:
            partial.write_bytes(ids[part.piece][part.ids].data)
        shard = Shard(
            file,
            part.end - part.start,
            len(part.sentences),
            len(documents),
            part.piece.text.source,
        )
        save_array(corpus / shard.documents_file, documents)
        shards[split].append(shard)
    return shards["train"], shards["held-out"]


def report(
    corpus: Path, types: str, train: Sequence[Shard], held_out: Sequence[Shard]
) -> None:
    """Print what a corpus holds: a row for each split and, where there are several, for
    each source of it.
    """
    print(f"{corpus}: {types}")
    print(f"{'':30}{'words':>16}{'sentences':>14}{'documents':>12}{'shards':>8}")
    for split, shards in (("training", train), ("held out", held_out)):
        sources = list(dict.fromkeys(shard.source for shard in shards))
        for name in [None, *(sources if len(sources) > 1 else [])]:
            own = [shard for shard in shards if name in (None, shard.source)]
            sentences = sum(shard.sentences for shard in own)
            words = sum(shard.tokens for shard in own) - 2 * sentences
            title = split if name is None else f"  {name}"
            documents = sum(shard.documents for shard in own)
            print(
                f"{title:30}{words:>16,}{sentences:>14,}{documents:>12,}{len(own):>8,}"
            )


if __name__ == "__main__":
    sys.exit(main())
