"""Sources of text: which files are of which kind, how large shards are then, and which of them are held out."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from data_scripts.parts.local_shards import LocalShard, split_end
from data_scripts.parts.merge_lexicons import LocalShardSource
from data_scripts.parts.text_pieces import Piece, cut_pieces
from elmoc.corpus import Shard
from elmoc.errors import InputError

SHARDS_AT_MOST = 100_000
LARGEST_SHARD = 10_000_000
SHARDS_AT_LEAST = 20
LONG_SENTENCE = 1_000
"""Words; a longer one is a text whose sentences are not on lines of their own."""
SMALL_SHARD, FEW_SHARDS = 200, 4
"""So many tokens can still be evaluated on; a source that is too small for shards of that size has few of them."""
SHORTEST_END = 1_000
"""Tokens: ends of shards that are held out have about so many at least. Shorter ones would hold hardly a document."""
TOO_MUCH = 1.5
"""Times the tokens of a shard: more is not held out in its ends, as would be where lines are longer than these."""


def files_by_source(
    files: Sequence[Path], held_out: Sequence[Path], source_of: Mapping[Path, str]
) -> dict[str, tuple[list[Path], list[Path]]]:
    """Source → its files of both splits, in their order; files of which some have a source are an `InputError`."""
    by_source: dict[str, tuple[list[Path], list[Path]]] = {}
    for split, names in enumerate((files, held_out)):
        for file in names:
            by_source.setdefault(source_of.get(file, ""), ([], []))[split].append(file)
    if "" in by_source and len(by_source) > 1:
        unnamed = next(file for of_split in by_source[""] for file in of_split)
        raise InputError(
            f"{unnamed} is given without a name, others as NAME=PATH: name the source of all files (and --held-out "
            "files) or of none"
        )
    return by_source


def default_shard_tokens(tokens: int) -> int:
    """Tokens of a shard of a source that has about `tokens`; each has its own, so that a small one cuts no other."""
    return max(1, min(LARGEST_SHARD, max(tokens // SHARDS_AT_LEAST, min(SMALL_SHARD, tokens // FEW_SHARDS))))


def shard_tokens_by_source(tokens: Mapping[str, int], files: Sequence[Path], given: int | None) -> dict[str, int]:
    """Tokens of a shard of each source: so many as are `given`, or else what a source of about `tokens` has by default.

    Raises `InputError` where there would be too many shards of `files`.
    """
    sizes = {source: default_shard_tokens(each) if given is None else given for source, each in tokens.items()}
    if sum(tokens[source] // size for source, size in sizes.items()) > SHARDS_AT_MOST:
        raise InputError(
            f"--shard-tokens {min(sizes.values())} makes over {SHARDS_AT_MOST:,} shards of {names_of(files)}, about "
            f"{sum(tokens.values()):,} words: give a larger one"
        )
    return sizes


def pieces_of(
    by_source: Mapping[str, tuple[Sequence[Path], Sequence[Path]]], shard_tokens: Mapping[str, int]
) -> list[Piece]:
    """The pieces of the training files, source by source, and then of the held-out files.

    shard_tokens: of the shards of each source.
    """
    return [
        piece
        for held_out in (False, True)
        for source, files in by_source.items()
        for piece in cut_pieces(files[held_out], shard_tokens[source], held_out, source)
    ]


def require_text(pieces: Sequence[Piece], results: Sequence[Sequence[LocalShard]], *, left_out: int) -> None:
    """Raise an `InputError` where a source has no sentence in its training files, or in its held-out files.

    Args:
        pieces: of all sources.
        results: the shards of each.
        left_out: the sentences that were left out.
    """
    with_text = {(piece.source, piece.held_out) for piece, shards in zip(pieces, results, strict=True) if shards}
    empty = [piece for piece in pieces if (piece.source, piece.held_out) not in with_text]
    if not empty:
        return
    source, held_out = empty[0].source, empty[0].held_out
    asked = any(piece.held_out for piece in pieces)
    which = ("held-out" if held_out else "train") if asked else "input"
    names = names_of(files_of([piece for piece in empty if (piece.source, piece.held_out) == (source, held_out)]))
    raise InputError(
        f"{names}: the {which} files{f' of {source}' if source else ''} hold no sentences, all their lines are blank"
        f"{' or left out' if left_out else ''}: add some text{', or leave them out' if source else ''}"
    )


def name_shards(
    pieces: Sequence[Piece],
    folders: Sequence[Path],
    results: Sequence[Sequence[LocalShard]],
    *,
    of_every_source: bool = False,
) -> list[LocalShardSource]:
    """The shards of all pieces as shards of the corpus, which split each belongs to and how it is called there.

    Of every source as much as a shard is held out where no text was named for that, with `of_every_source` where none
    of that source was. Raises an `InputError` when that leaves a source nothing to train on.
    """
    local = [
        (piece, folder, number, shard)
        for piece, folder, result in zip(pieces, folders, results, strict=True)
        for number, shard in enumerate(result)
    ]
    named = {piece.source for piece in pieces if piece.held_out}
    indices: dict[str, list[int]] = {}
    for index, (piece, *_) in enumerate(local):
        if piece.source not in named and (of_every_source or not named):
            indices.setdefault(piece.source, []).append(index)
    ends: dict[int, tuple[LocalShard | None, LocalShard]] = {}
    for source, own in indices.items():
        if len(own) == 1:
            raise _one_shard(pieces, source, local[own[0]][3])
        of_source = held_out_ends([local[index][1:] for index in own])
        ends |= {own[place]: parts for place, parts in of_source.items()}
    sources = []
    by_split = {"train": 0, "held-out": 0}

    def add(split: str, index: int, shard: LocalShard, part: slice | None = None) -> None:
        piece, folder, number, _ = local[index]
        file = f"shards/{split}-{by_split[split]:05}.bin"
        by_split[split] += 1
        corpus_shard = Shard(file, shard.tokens, shard.sentences, shard.documents, piece.source)
        sources.append(LocalShardSource(folder, number, split == "held-out", corpus_shard, part))

    for index, (piece, *_, shard) in enumerate(local):
        if index not in ends:
            add("held-out" if piece.held_out else "train", index, shard)
            continue
        before, end = ends[index]
        if before is None:
            add("held-out", index, end)
        else:
            add("train", index, before, slice(0, before.tokens))
            add("held-out", index, end, slice(before.tokens, shard.tokens))
    return sources


def held_out_ends(
    shards: Sequence[tuple[Path, int, LocalShard]],
) -> dict[int, tuple[LocalShard | None, LocalShard]]:
    """What to hold out of several shards of a source: as much as one, in ends of about `SHORTEST_END` or more.

    So it is from everywhere in the text: from each shard, if they are large enough, else from some in equal distances.
    Where it is not enough for two ends, or no shard can be split, it is the last shard.

    Args:
        shards: the folder of the piece that each is in, its number there, and its size.

    Returns:
        index of a shard → its parts: what remains for training (None: nothing does), and what is held out.
    """
    tokens = sum(shard.tokens for *_, shard in shards) // len(shards)
    places = min(len(shards), tokens // SHORTEST_END)
    last: dict[int, tuple[LocalShard | None, LocalShard]] = {len(shards) - 1: (None, shards[-1][2])}
    while places > 1:
        ends: dict[int, tuple[LocalShard | None, LocalShard]] = {}
        for place in range(places):
            index = (2 * place + 1) * len(shards) // (2 * places)
            folder, number, shard = shards[index]
            if parts := split_end(folder, number, min(tokens // places, shard.tokens // 2)):
                ends[index] = parts
        held_out = sum(end.tokens for _, end in ends.values())
        if held_out <= TOO_MUCH * tokens:
            return ends or last
        places = min(places - 1, places * tokens // held_out)
    return last


def _one_shard(pieces: Sequence[Piece], source: str, shard: LocalShard) -> InputError:
    """The error for a source of one shard, where a part of every source is to be held out."""
    names = names_of(files_of([piece for piece in pieces if piece.source == source]))
    text = f"the text of {source}" if source else "the text"
    words = shard.tokens - 2
    if shard.sentences == 1 and words > LONG_SENTENCE:
        return InputError(
            f"{names}: {text} is one line of {words:,} words, where a sentence on each line is expected: give what "
            "`python -m data_scripts.tokenize --tokenised no` writes, which has such lines"
        )
    if shard.sentences == 1:
        return InputError(
            f"{names}: {text} is one sentence, so that none is left to hold out: name files with --held-out, or give "
            "more text"
        )
    return InputError(
        f"{names}: {text} makes only one shard, so that none is left to hold out: name files with --held-out, or give "
        "a smaller --shard-tokens"
    )


def files_of(pieces: Sequence[Piece]) -> list[str]:
    """The files of the pieces, each once."""
    return list(dict.fromkeys(segment.path for piece in pieces for segment in piece.segments))


def names_of(files: Sequence[Path | str]) -> str:
    """The first files, for a sentence about all of them."""
    return ", ".join(map(str, files[:3])) + (f" and {len(files) - 3:,} more" if len(files) > 3 else "")
