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
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

from data_scripts.parts.local_shards import LocalShard, piece_key, write_piece
from data_scripts.parts.merge_lexicons import Lexicon, LocalShardSource, merge_lexicons, write_shard
from data_scripts.parts.options import Options
from data_scripts.parts.sources import (
    LARGEST_SHARD,
    SHARDS_AT_LEAST,
    default_shard_tokens,
    estimate_tokens,
    files_by_source,
    files_of,
    name_shards,
    names_of,
    pieces_of,
)
from data_scripts.parts.text_pieces import Piece, find_named_files
from data_scripts.parts.workers import default_workers, parallel_map
from elmoc.corpus import ID_DTYPE, Shard, finish_corpus
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.writing import require_space
from elmoc.progress import progress_bar
from elmoc.settings import setting

SHARDS_AT_MOST = 100_000


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(Options):
    """How a corpus is made of its text."""

    min_count: int = setting(least=1, most=2**62)
    shard_tokens: int = setting(least=1, most=10**9)
    of_every_source: bool = False


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
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
        "out of training. Default: the last shard of every source, which is the end of its last file; name files where "
        "IN mixes sources without naming them",
    )
    parser.add_argument(
        "--of-every-source",
        action="store_true",
        help="with --held-out: hold out the last shard of those sources, too, of which it names no file",
    )
    parser.add_argument(
        "--min-count",
        type=int,
        default=1,
        metavar="N",
        help="words seen fewer than N times in training become <unk> (default 1: every word type has a row)",
    )
    parser.add_argument("--workers", type=int, default=default_workers(), metavar="N", help="processes (%(default)s)")
    parser.add_argument(
        "--shard-tokens",
        type=int,
        metavar="N",
        help=f"tokens in a shard, roughly; default {LARGEST_SHARD:,}, or for a small text what gives {SHARDS_AT_LEAST} "
        "shards of it or of its smallest source, so that the last shard (held out by default) is a twentieth of that",
    )
    options = vars(parser.parse_args(argv))
    files, held_out = options.pop("input"), options.pop("held_out")

    def run() -> None:
        train, evaluation = find_named_files(files), find_named_files(held_out)
        build_corpus(list(train), held_out=list(evaluation), source_of=train | evaluation, **options)

    return run_command(run)


def build_corpus(
    files: Sequence[Path],
    corpus: Path,
    *,
    held_out: Sequence[Path] = (),
    source_of: Mapping[Path, str] = MappingProxyType({}),
    min_count: int = 1,
    workers: int = 1,
    shard_tokens: int | None = None,
    of_every_source: bool = False,
    recorded_name: Callable[[Path], str] = str,
) -> None:
    """Build the corpus directory `corpus` from text `files`.

    `held_out` files are the held-out split (and are taken out of `files` where they are among them); without any, the
    last shard of every source is, and with `of_every_source` that of those of which none is given. `source_of` has the
    names of the files' sources, of all or of none. `recorded_name` is what `corpus.json` calls a file. Raises
    `InputError` for text that cannot be used, naming file and line, and when `corpus` is finished already or is some
    other directory.
    """
    held_out_paths = {os.path.realpath(file) for file in held_out}
    files = [file for file in files if os.path.realpath(file) not in held_out_paths]
    check_files(files, held_out, corpus)
    by_source = files_by_source(files, held_out, source_of)
    tokens = {source: estimate_tokens([*train, *other]) for source, (train, other) in by_source.items()}
    options = CorpusOptions(
        min_count=min_count,
        shard_tokens=default_shard_tokens(tokens.values()) if shard_tokens is None else shard_tokens,
        workers=workers,
        of_every_source=of_every_source,
    )
    if sum(tokens.values()) // options.shard_tokens > SHARDS_AT_MOST:
        raise InputError(
            f"--shard-tokens {options.shard_tokens} makes over {SHARDS_AT_MOST:,} shards of {names_of(files)}, about "
            f"{sum(tokens.values()):,} words: give a larger one"
        )
    with work_folder(corpus) as work:
        require_space(corpus, 2 * ID_DTYPE.itemsize * sum(tokens.values()))
        sources = read_pieces(pieces_of(by_source, options.shard_tokens), corpus, work, options)
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
                "shard_tokens": options.shard_tokens,
                "held_out": [recorded(file) for file in held_out] or "last shard",
            },
        )
    print(f"{corpus}: {len(lexicon.words):,} word types; training {describe(train)}; held out {describe(evaluation)}")
    for name in dict.fromkeys(shard.source for shard in train + evaluation if shard.source):
        own, other = ([shard for shard in shards if shard.source == name] for shards in (train, evaluation))
        print(f"  {name}: training {describe(own)}; held out {describe(other)}")


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


def refuse_output(corpus: Path) -> None:
    """Raise an `InputError` when `corpus` is finished already, or is a directory of something else.

    What a build left of its work folder that was killed while it removed it is removed here.
    """
    description, work = corpus / "corpus.json", corpus / ".work"
    if description.exists():
        if work.exists():
            with locked(description):
                shutil.rmtree(work, ignore_errors=True)
        raise InputError(f"{corpus} is a finished corpus already: remove it or choose another output path")
    unfinished = work.exists() or not corpus.exists()
    if not unfinished and (not corpus.is_dir() or any(not path.name.endswith(".lock") for path in corpus.iterdir())):
        raise InputError(f"{corpus} exists and is not an unfinished corpus: remove it or choose another output path")


@contextmanager
def work_folder(corpus: Path) -> Iterator[Path]:
    """`CORPUS/.work`, locked against a second build, and removed once the block ends well; see `refuse_output`."""
    refuse_output(corpus)
    with locked(corpus / "corpus.json"):
        refuse_output(corpus)
        work = corpus / ".work"
        work.mkdir(exist_ok=True)
        yield work
        shutil.rmtree(work)


def read_pieces(pieces: Sequence[Piece], corpus: Path, work: Path, options: CorpusOptions) -> list[LocalShardSource]:
    """Number the words of all pieces; returns the shards of the corpus, and where each comes from."""
    started = time.perf_counter()
    folders = [work / piece_key(piece, options.shard_tokens) for piece in pieces]
    clean(corpus, work, keep={folder.name for folder in folders})
    read = partial(write_piece, shard_tokens=options.shard_tokens)
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
    sources = name_shards(pieces, folders, results, of_every_source=options.of_every_source)
    by_split = Counter(source.held_out for source in sources)
    if not words or not (by_split[False] and by_split[True]):
        raise _nothing_in(pieces, by_split)
    return sources


def _nothing_in(pieces: Sequence[Piece], by_split: Mapping[bool, int]) -> InputError:
    """The error for a corpus of which a split has no shard."""
    asked = any(piece.held_out for piece in pieces)
    empty = [piece for piece in pieces if not by_split[piece.held_out]]
    which = ("held-out" if empty[0].held_out else "train") if asked else "input"
    names = names_of(files_of(empty))
    return InputError(f"{names}: the {which} files hold no sentences, all their lines are blank: add some text")


def clean(corpus: Path, work: Path, keep: set[str]) -> None:
    """Remove what an interrupted build left that this one does not use."""
    shutil.rmtree(corpus / "shards", ignore_errors=True)
    for path in work.iterdir():
        if path.is_dir() and path.name not in keep:
            shutil.rmtree(path)


def describe(shards: Sequence[Shard]) -> str:
    """Words, sentences, documents and shards in one line."""
    sentences, documents = sum(shard.sentences for shard in shards), sum(shard.documents for shard in shards)
    words = sum(shard.tokens for shard in shards) - 2 * sentences
    return f"{words:,} words in {sentences:,} sentences, {documents:,} documents, {len(shards)} shards"


if __name__ == "__main__":
    sys.exit(main())
