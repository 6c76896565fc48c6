"""Building a corpus: tokenised text becomes a corpus directory (lexicon, token shards, counts).

The text has one sentence a line, words split on white space, and blank lines between documents; every file starts a
document of its own. The text is read once: workers number the words of their piece in order of occurrence
(`local_shards.py`), then the pieces' lexicons are merged and the ids mapped (`merge_lexicons.py`). Finished pieces stay
in `CORPUS/.work` until the corpus is finished, so that an interrupted build goes on where it was; the result is the
same, byte for byte, whatever the number of workers or interruptions.
"""

import argparse
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from data_scripts.parts.local_shards import LocalShard, piece_key, write_piece
from data_scripts.parts.merge_lexicons import Lexicon, LocalShardSource, merge_lexicons, write_shard
from data_scripts.parts.options import Options
from data_scripts.parts.text_pieces import BYTES_PER_TOKEN, Piece, cut_pieces, estimate_text_bytes, find_files
from data_scripts.parts.workers import default_workers, parallel_map
from elmoc.corpus import ID_DTYPE, Shard, finish_corpus
from elmoc.errors import InputError, run_command
from elmoc.files.locks import locked
from elmoc.files.writing import require_space
from elmoc.progress import progress_bar
from elmoc.settings import setting

LARGEST_SHARD = 10_000_000
SHARDS_AT_LEAST = 20
SHARDS_AT_MOST = 100_000


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(Options):
    """How a corpus is made of its text."""

    min_count: int = setting(least=1, most=2**62)
    shard_tokens: int = setting(least=1, most=10**9)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.build_corpus",
        description="Make a corpus directory from tokenised text: one sentence a line, words split on white space, "
        "blank lines between documents. Safe to interrupt and run again.",
    )
    parser.add_argument("input", nargs="+", metavar="IN", help="text files, .gz files, folders, or quoted globs")
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="the corpus directory to make")
    parser.add_argument(
        "--held-out",
        default=[],
        nargs="+",
        metavar="FILE",
        help="files (folders, globs) held out of training for evaluation; those that IN names too are left out of "
        "training. Default: the last shard, which is the end of the last IN file, so name files where IN mixes sources",
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
        "shards, so that the last shard (held out by default) is a twentieth of it",
    )
    options = vars(parser.parse_args(argv))
    files, held_out = options.pop("input"), options.pop("held_out")
    return run_command(lambda: build_corpus(find_files(files), held_out=find_files(held_out), **options))


def build_corpus(
    files: Sequence[Path],
    corpus: Path,
    *,
    held_out: Sequence[Path] = (),
    min_count: int = 1,
    workers: int = 1,
    shard_tokens: int | None = None,
    recorded_name: Callable[[Path], str] = str,
) -> None:
    """Build the corpus directory `corpus` from text `files`.

    `held_out` files are the held-out split (and are taken out of `files` where they are among them); without any, the
    last shard is. `recorded_name` is what `corpus.json` calls a file. Raises `InputError` for text that cannot be used,
    naming file and line, and when `corpus` is finished already or is some other directory.
    """
    held_out_paths = {os.path.realpath(file) for file in held_out}
    files = [file for file in files if os.path.realpath(file) not in held_out_paths]
    check_files(files, held_out, corpus)
    tokens = sum(estimate_text_bytes(file) for file in [*files, *held_out]) // BYTES_PER_TOKEN
    if shard_tokens is None:
        shard_tokens = max(1, min(LARGEST_SHARD, tokens // SHARDS_AT_LEAST))
    options = CorpusOptions(min_count=min_count, shard_tokens=shard_tokens, workers=workers)
    if tokens // shard_tokens > SHARDS_AT_MOST:
        raise InputError(
            f"--shard-tokens {shard_tokens} makes over {SHARDS_AT_MOST:,} shards of {_names(files)}, about {tokens:,} "
            "words: give a larger one"
        )
    with work_folder(corpus) as work:
        require_space(corpus, 2 * ID_DTYPE.itemsize * tokens)
        piece_bytes = shard_tokens * BYTES_PER_TOKEN
        pieces = cut_pieces(files, piece_bytes, False) + cut_pieces(held_out, piece_bytes, True)
        sources = read_pieces(pieces, corpus, work, options)
        train = [source.shard for source in sources if not source.held_out]
        evaluation = [source.shard for source in sources if source.held_out]
        lexicon = _write_shards(sources, corpus, work, options)
        finish_corpus(
            corpus,
            lexicon=lexicon.words,
            counts=lexicon.counts,
            train=train,
            held_out=evaluation,
            sources=[recorded_name(file) for file in [*files, *held_out]],
            settings={
                "min_count": min_count,
                "shard_tokens": shard_tokens,
                "held_out": [recorded_name(file) for file in held_out] or "last shard",
            },
        )
    print(f"{corpus}: {len(lexicon.words):,} word types; training {describe(train)}; held out {describe(evaluation)}")


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
    local = [
        (folder, number, piece.held_out, shard)
        for piece, folder, result in zip(pieces, folders, results, strict=True)
        for number, shard in enumerate(result)
    ]
    words = sum(shard.tokens - 2 * shard.sentences for *_, shard in local)
    seconds = time.perf_counter() - started
    print(f"{words:,} words read in {seconds:.1f} s ({words / seconds:,.0f} words/s, {options.workers} workers)")
    sources = []
    by_split = {"train": 0, "held-out": 0}
    hold_out_last = not any(piece.held_out for piece in pieces)
    for index, (folder, number, held_out, shard) in enumerate(local):
        held_out = held_out or (hold_out_last and index == len(local) - 1)
        split = "held-out" if held_out else "train"
        file = f"shards/{split}-{by_split[split]:05}.bin"
        by_split[split] += 1
        sources.append(LocalShardSource(folder, number, held_out, Shard(file, **asdict(shard))))
    if not words or not all(by_split.values()):
        raise _nothing_in(pieces, by_split)
    return sources


def _nothing_in(pieces: Sequence[Piece], by_split: dict[str, int]) -> InputError:
    """The error for a corpus of which a split has no shard."""
    asked = any(piece.held_out for piece in pieces)
    if not asked and by_split["held-out"]:
        return InputError(
            f"{_names(_files_of(pieces))}: the text makes only one shard, so that none is left to hold out: name files "
            "with --held-out, or give a smaller --shard-tokens"
        )
    empty = [piece for piece in pieces if not by_split["held-out" if piece.held_out else "train"]]
    which = ("held-out" if empty[0].held_out else "train") if asked else "input"
    names = _names(_files_of(empty))
    return InputError(f"{names}: the {which} files hold no sentences, all their lines are blank: add some text")


def _files_of(pieces: Sequence[Piece]) -> list[str]:
    return list(dict.fromkeys(segment.path for piece in pieces for segment in piece.segments))


def _names(files: Sequence[Path | str]) -> str:
    """The first files, for a sentence about all of them."""
    return ", ".join(map(str, files[:3])) + (f" and {len(files) - 3:,} more" if len(files) > 3 else "")


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
