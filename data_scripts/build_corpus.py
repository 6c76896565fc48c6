"""Building a corpus: tokenised text becomes a corpus directory (lexicon, token shards, counts).

The text has one sentence a line, words split on white space, and blank lines between documents; every file starts a
document of its own. The text is read once: workers number the words of their piece in order of occurrence
(`local_shards.py`), then the pieces' lexicons are merged and the ids mapped (`merge_lexicons.py`). Finished pieces stay
in `CORPUS/.work` until the corpus is finished, so that an interrupted build goes on where it was; the result is the
same, byte for byte, whatever the number of workers or interruptions.

Where files are given as NAME=PATH, NAME is the source of their text, and every shard holds text of one source alone.
"""

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from data_scripts.parts.local_shards import LocalShard, left_out, piece_key, write_piece
from data_scripts.parts.merge_lexicons import Lexicon, LocalShardSource, merge_lexicons, write_shard
from data_scripts.parts.options import Options
from data_scripts.parts.sources import (
    LARGEST_SHARD,
    files_by_source,
    name_shards,
    names_of,
    pieces_of,
    require_text,
    shard_tokens_by_source,
)
from data_scripts.parts.text_pieces import Piece
from data_scripts.parts.unsuitable import check_suitable
from data_scripts.parts.work_folder import clean, work_folder
from data_scripts.parts.workers import default_workers, parallel_map
from elmoc.corpus import ID_DTYPE, Shard, finish_corpus
from elmoc.errors import InputError, run_command
from elmoc.files.checksums import fingerprint_file
from elmoc.files.text import read_lines
from elmoc.files.writing import require_space
from elmoc.progress import progress_bar
from elmoc.settings import setting
from elmoc.text.named_files import estimate_tokens, find_files, find_folders, find_named_files
from elmoc.text.overlap import RUN, SHORTEST, Overlap, reduced
from elmoc.text.raw import sample_lines, warn_of_raw_types

_SAMPLE_CHARACTERS = 10_000
"""Of each file, from which is seen whether it is tokenised text; not more, since there may be many files."""
_LEAF = re.compile(r"\([^\s()]+ [^\s()]+\)")
"""A word of a bracketed tree, behind its label."""


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(Options):
    """How a corpus is made of its text."""

    min_count: int = setting(least=1, most=2**62)
    shard_tokens: int = setting(least=1, most=10**9)
    of_every_source: bool = False


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.build_corpus",
        description="Make a corpus directory from tokenised text: one sentence a line, words split on white space, "
        "blank lines between documents. Safe to interrupt and run again.",
    )
    parser.add_argument(
        "input",
        nargs="+",
        metavar="IN",
        help="text files, .gz files, folders, or quoted globs; NAME=PATH names the kind of text, its source, by which "
        "training can weight it and evaluation is reported",
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="the corpus directory to make")
    parser.add_argument(
        "--held-out",
        default=[],
        nargs="+",
        metavar="FILE",
        help="files (folders, globs, NAME=PATH) held out of training for evaluation; those that IN names too are left "
        "out of training. Default: of every source as much as a shard, which is the ends of its shards, so that it is "
        "from everywhere in the text",
    )
    parser.add_argument(
        "--of-every-source",
        action="store_true",
        help="with --held-out: hold out a part of those sources, too, of which it names no file",
    )
    parser.add_argument(
        "--min-count",
        type=int,
        default=1,
        metavar="N",
        help="words seen fewer than N times in training become <unk> (default 1: every word type has a row)",
    )
    parser.add_argument(
        "--leave-out",
        default=[],
        nargs="+",
        metavar="FILE",
        help="tokenised text (files, folders, globs), e.g. parts of tasks that scores are reported on: sentences of "
        f"IN and held-out ones that equal one of its sentences of {SHORTEST} words or more, or share {RUN} words in a "
        "row with one (case and punctuation aside), are left out",
    )
    parser.add_argument("--workers", type=int, default=default_workers(), metavar="N", help="processes (%(default)s)")
    parser.add_argument(
        "--shard-tokens",
        type=int,
        metavar="N",
        help=f"tokens in a shard, roughly; default {LARGEST_SHARD:,}, or for a small text (or source) a twentieth of "
        "it; as much as a shard is held out by default",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = vars(parser().parse_args(argv))
    files, held_out, leave_out = (options.pop(name) for name in ("input", "held_out", "leave_out"))

    def run() -> None:
        for folder in find_folders([*files, *held_out]):
            if Path(os.path.realpath(options["corpus"])).is_relative_to(os.path.realpath(folder)):
                raise InputError(
                    f"{options['corpus']} is inside {folder}, all files of which are read: choose another output path"
                )
        train, evaluation = find_named_files(files), find_named_files(held_out)
        build_corpus(
            list(train),
            held_out=list(evaluation),
            source_of=train | evaluation,
            leave_out=find_files(leave_out),
            **options,
        )

    return run_command(run)


def build_corpus(
    files: Sequence[Path],
    corpus: Path,
    *,
    held_out: Sequence[Path] = (),
    source_of: Mapping[Path, str] = MappingProxyType({}),
    leave_out: Sequence[Path] = (),
    min_count: int = 1,
    workers: int = 1,
    shard_tokens: int | None = None,
    of_every_source: bool = False,
    recorded_name: Callable[[Path], str] = str,
) -> None:
    """Build the corpus directory `corpus` from text `files`.

    `held_out` files are the held-out split (and are taken out of `files` where they are among them); without any, the
    ends of every source's shards are, and with `of_every_source` those of sources of which none is given. `source_of`
    has the names of the files' sources, of all or of none. Sentences that overlap with those of `leave_out` files are
    left out. `recorded_name` is what `corpus.json` calls a file.

    Raises `InputError` for text that cannot be used, naming file and line, and when `corpus` is finished already or is
    some other directory.
    """
    held_out_paths = {os.path.realpath(file) for file in held_out}
    files = [file for file in files if os.path.realpath(file) not in held_out_paths]
    check_files(files, held_out, corpus)
    samples = ((file, sample_lines(file, _SAMPLE_CHARACTERS)) for file in (*files, *held_out, *leave_out))
    raw = check_suitable(samples, characters=_SAMPLE_CHARACTERS, tokenised=True)
    by_source = files_by_source(files, held_out, source_of)
    tokens = {source: estimate_tokens([*train, *other]) for source, (train, other) in by_source.items()}
    options = CorpusOptions(
        min_count=min_count,
        shard_tokens=LARGEST_SHARD if shard_tokens is None else shard_tokens,
        workers=workers,
        of_every_source=of_every_source,
    )
    sizes = shard_tokens_by_source(tokens, files, shard_tokens)
    overlap = Overlap(sentence for file in leave_out for sentence in _sentences_of(file)) if leave_out else None
    with work_folder(corpus) as work:
        pieces = pieces_of(by_source, sizes)
        folders = [work / piece_key(piece, overlap) for piece in pieces]
        clean(corpus, work, keep={folder.name for folder in folders})
        kept = sum(ids.stat().st_size for folder in folders for ids in folder.glob("*.ids"))
        require_space(corpus, 2 * ID_DTYPE.itemsize * sum(tokens.values()) - kept)  # of pieces, and of shards
        sources, without = read_pieces(pieces, folders, options, overlap)
        train = [source.shard for source in sources if not source.held_out]
        evaluation = [source.shard for source in sources if source.held_out]
        lexicon = _write_shards(sources, corpus, work, options)

        def recorded(file: Path) -> str:
            name = source_of.get(file, "")
            return f"{name}={recorded_name(file)}" if name else recorded_name(file)

        finish_corpus(
            corpus,
            lexicon=lexicon.words,
            counts=lexicon.counts,
            train=train,
            held_out=evaluation,
            sources=[recorded(file) for file in [*files, *held_out]],
            settings={
                "min_count": min_count,
                "shard_tokens": sizes if len(set(sizes.values())) > 1 else next(iter(sizes.values())),
                "held_out": [recorded(file) for file in held_out] or "as much as a shard of each source",
            }
            | held_out_record(evaluation, [source_of.get(file, "") for file in held_out])
            | left_out_record(leave_out, without),
        )
    if not set(raw) & set(files):  # which may be raw elsewhere than at their beginning
        warn_of_raw_types(names_of(files), lexicon.words, lexicon.counts.tolist())
    report(corpus, lexicon, train, evaluation, names=list(by_source), leave_out=leave_out, without=without)


def report(
    corpus: Path,
    lexicon: Lexicon,
    train: Sequence[Shard],
    held_out: Sequence[Shard],
    *,
    names: Sequence[str],
    leave_out: Sequence[Path],
    without: Mapping[str, int],
) -> None:
    """Print what a corpus holds, in all and of each of several sources.

    names: of the sources.
    leave_out, without: the files whose sentences were left out, and how many of each source.
    """
    print(f"{corpus}: {len(lexicon.words):,} word types; {describe_splits(train, held_out)}")
    for name in names if len(names) > 1 else ():
        own = ([shard for shard in shards if shard.source == name] for shards in (train, held_out))
        print(f"  {name}: {describe_splits(*own)}")
    if leave_out:
        named = [f"{count:,}" + (f" of {name}" if name else "") for name, count in without.items()]
        print(f"sentences left out, since they overlap with those of {names_of(leave_out)}: {', '.join(named)}")


def _sentences_of(file: Path) -> Iterator[list[str]]:
    """The sentences of a file to leave out; an `InputError` where all are too short to be found, or bracketed trees."""
    found = trees = False
    all_in_brackets = True
    for line in read_lines(file):
        words = line.split()
        found = found or sum(map(bool, map(reduced, words))) >= SHORTEST
        if words and all_in_brackets:
            all_in_brackets = words[0].startswith("(")
            trees = trees or _LEAF.search(line) is not None
        yield words
    if trees and all_in_brackets:
        raise InputError(
            f"{file} holds bracketed trees, whose labels and brackets are between the words, so that nothing could be "
            "left out by it: give --leave-out the sentences in them, which `python -m downstream sentences TASK FILE` "
            "prints of a task's file"
        )
    if not found:
        raise InputError(
            f"{file}: no line of it has {SHORTEST} words, so that nothing could be left out by it: give --leave-out "
            "tokenised text with a whole sentence on each line"
        )


def held_out_record(shards: Sequence[Shard], named: Sequence[str]) -> dict[str, Any]:
    """What `corpus.json` says of sources of which as much as a shard is held out, beside files of those `named`."""
    others = dict.fromkeys(shard.source for shard in shards if shard.source not in named)
    return {"held_out_a_shard_of": list(others)} if named and others else {}


def left_out_record(files: Sequence[Path], sentences: Mapping[str, int]) -> dict[str, Any]:
    """What `corpus.json` says of text that was left out: by which files, and how many sentences of each source."""
    if not files:
        return {}
    return {"leave_out": {str(file): fingerprint_file(file) for file in files}, "left_out_sentences": dict(sentences)}


def _write_shards(sources: Sequence[LocalShardSource], corpus: Path, work: Path, options: CorpusOptions) -> Lexicon:
    """Write the shards of the corpus; returns its lexicon."""
    started = time.perf_counter()
    lexicon = merge_lexicons(sources, work, options.min_count)
    writing = parallel_map(partial(write_shard, corpus=corpus), sources, options.workers)
    for _ in progress_bar(iterable=writing, desc="writing", total=len(sources), unit="shard"):
        pass
    print(f"lexicon merged and shards written in {time.perf_counter() - started:.1f} s")
    return lexicon


def check_files(files: Sequence[Path], held_out: Sequence[Path], corpus: Path) -> None:
    """Raise an `InputError` unless there are training files, and none of any is part of the corpus to be made."""
    if not files:
        raise InputError("every input file is held out: name files to train on, too")
    inside = os.path.join(os.path.realpath(corpus), "")
    for file in [*files, *held_out]:
        if os.path.realpath(file).startswith(inside):
            raise InputError(f"{file} is inside {corpus}, the corpus to be made: choose another output path")


def read_pieces(
    pieces: Sequence[Piece], folders: Sequence[Path], options: CorpusOptions, leave_out: Overlap | None
) -> tuple[list[LocalShardSource], Counter[str]]:
    """Number the words of all pieces, each in its folder; returns the shards of the corpus, and where each comes from.

    Beside them, how many sentences of each source were left out.
    """
    started = time.perf_counter()
    read = partial(write_piece, leave_out=leave_out)
    results: list[list[LocalShard]] = []
    with progress_bar(
        desc="reading", total=sum(piece.text_bytes for piece in pieces), unit="B", unit_scale=True
    ) as bar:
        for piece, result in zip(
            pieces, parallel_map(read, zip(pieces, folders, strict=True), options.workers), strict=True
        ):
            results.append(result)
            bar.update(piece.text_bytes)
    words = sum(shard.tokens - 2 * shard.sentences for result in results for shard in result)
    seconds = time.perf_counter() - started
    print(f"{words:,} words read in {seconds:.1f} s ({words / seconds:,.0f} words/s, {options.workers} workers)")
    without: Counter[str] = Counter()
    for piece, folder in zip(pieces, folders, strict=True):
        without[piece.source] += left_out(folder)
    require_text(pieces, results, left_out=without.total())
    return name_shards(pieces, folders, results, of_every_source=options.of_every_source), without


def describe_splits(train: Sequence[Shard], held_out: Sequence[Shard]) -> str:
    """What both splits hold, in one line."""
    return f"training {describe(train)}; held out {describe(held_out)}"


def describe(shards: Sequence[Shard]) -> str:
    """Words, sentences, documents and shards in one line."""
    sentences, documents = sum(shard.sentences for shard in shards), sum(shard.documents for shard in shards)
    words = sum(shard.tokens for shard in shards) - 2 * sentences
    return f"{words:,} words in {sentences:,} sentences, {documents:,} documents, {len(shards)} shards"


if __name__ == "__main__":
    sys.exit(main())
