"""Corpora: from text of any kind to a corpus directory (lexicon, token shards, counts).

The text is read once: workers number the words of their piece in order of occurrence
(`parts/pieces.py`), then the pieces' lexicons are merged and the ids mapped
(`parts/shards.py`). Finished pieces stay in `CORPUS/.work` until the corpus is
finished, so that a call that was killed goes on behind them; the result is the same,
byte for byte, whatever the number of workers or interruptions.

Where files are given as NAME=PATH, NAME is the source of their text, and every shard
holds text of one source alone.
"""

import glob
import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from data_scripts.parts.pieces import (
    NumberedPiece,
    TextPiece,
    cut_pieces,
    number_piece,
)
from data_scripts.parts.shards import (
    LARGEST_SHARD,
    MergedLexicon,
    default_shard_tokens,
    plan_shards,
    report,
    write_shards,
)
from data_scripts.parts.tokenising import listed, tokenisers_of
from data_scripts.parts.workers import Workers, parallel_map
from elmoc.corpus import Corpus, finish_corpus
from elmoc.errors import InputError, say
from elmoc.files.checksums import FileChecksum
from elmoc.files.writing import locked
from elmoc.process import available_cores, progress_bar
from elmoc.settings import checked
from elmoc.text.documents import (
    BYTES_PER_TOKEN,
    AnySource,
    RowCount,
    TextRange,
    check_tokenised,
    estimate_text_bytes,
    read_documents,
    rereadable,
    whole_files,
)
from elmoc.text.named_files import AnyPath, find_named_files
from elmoc.text.options import RawTextOptions
from elmoc.text.overlap import RUN, Overlap

# The folder of pieces in a corpus that is being made.
WORK = ".work"
# Files in their order, each with its source.
NamedFiles = dict[AnyPath, str]
# Items of a list that are looked at to tell paths from text.
_LOOKED_AT = 100


@dataclass(frozen=True, kw_only=True)
class CorpusOptions(RawTextOptions):
    """How a corpus is made of text."""

    held_out: Annotated[
        tuple[str, ...],
        Meta(
            description="text held out for evaluation; of a source without any, as "
            "much as a shard, the ends of its shards",
            extra={"metavar": "FILE"},
        ),
    ] = ()
    leave_out: Annotated[
        tuple[str, ...],
        Meta(
            description="tokenised text whose sentences are left out of the corpus, "
            f"and so is every sentence that shares {RUN} words in a row with one of it",
            extra={"metavar": "FILE"},
        ),
    ] = ()
    min_count: Annotated[
        int,
        Meta(
            ge=1,
            description="words seen fewer than N times in training become <unk>; with "
            "1 every word type has a row",
        ),
    ] = 1
    shard_tokens: (
        Annotated[
            int,
            Meta(
                ge=1,
                description=f"tokens in a shard, roughly; default {LARGEST_SHARD:,}, "
                "or for a smaller text a twentieth of it",
            ),
        ]
        | None
    ) = None
    workers: Workers = field(default_factory=available_cores)


def make_corpus(
    sources: AnySource, out: Path | str, options: CorpusOptions = CorpusOptions()
) -> Corpus:
    """Make a corpus directory of text, and open it.

    A blank line, the end of a file and the end of a row end a document. Raw text is
    tokenised as `python -m data_scripts.tokenize` does it; a printed line says which
    files are raw. A call that was interrupted goes on when it is made again.
    docs/train_reference.md describes the corpus, `elmoc/corpus.py` its files.

    Args:
        sources: a file of any kind that `read_documents` takes, a folder, a glob,
            `NAME=PATH` of these, or `-` for standard input; a list of these; or text
            itself, as any other iterable that `read_documents` takes (of strings, of
            lists of words, of rows such as a `datasets.Dataset` has).
        out: the corpus directory to make; its folder is made, too.
        options: see `CorpusOptions`.

    Returns:
        The corpus: word types `lexicon` [V], `counts` int64 [V], and shards of ids,
        uint32 [tokens], with `<s>` and `</s>` around each sentence.

    Raises:
        InputError: text that cannot be used (with file and line), an impossible option,
            and an `out` that is finished already or some other directory.
    """
    options = checked(options)
    out = Path(out)
    is_list = isinstance(sources, list | tuple) and are_paths(sources[:_LOOKED_AT])
    given: Any = sources if is_list else [sources]
    with ExitStack() as stack:
        paths = [
            stack.enter_context(rereadable(each, field=options.field)) for each in given
        ]
        _build(paths, out, options)
    return Corpus(out)


def are_paths(items: Sequence[Any]) -> bool:
    """Whether the items of a list are paths, globs or `NAME=PATH` and no text: one of
    them names something, or none of them is of several words.
    """
    if not items or not all(isinstance(each, str | os.PathLike) for each in items):
        return False
    texts = list(map(os.fspath, items))
    paths = texts + [text.partition("=")[2] for text in texts]
    return any(os.path.lexists(path) or glob.glob(path) for path in paths) or not any(
        text.split()[1:] for text in texts
    )


def _build(sources: Sequence[AnyPath], out: Path, options: CorpusOptions) -> None:
    """See `make_corpus`; what is read can be read more than once."""
    train_files, held_out_files = find_text(sources, options.held_out)
    files = train_files | held_out_files
    say(f"text, in this order: {listed(files)}")
    # In one call, since the column may be one of either.
    whole = whole_files([*files, *find_named_files(options.leave_out)], options.field)
    leave_out = whole[len(files) :]
    texts = dict(zip(whole[: len(files)], files.values(), strict=True))
    tokenisers = tokenisers_of(texts, options)
    raw = {each.text.path: each for each in tokenisers if not each.tokenised}
    wrapped = {path for path, each in raw.items() if each.wrapped}
    pieces, shard_tokens = _divide(texts, held_out_files, options.shard_tokens, wrapped)
    check_tokenised(leave_out)
    documents = chain.from_iterable(map(read_documents, leave_out))
    sentences = chain.from_iterable(each.sentences() for each in documents)
    overlap = Overlap(sentences) if leave_out else None
    settings: dict[str, Any] = {
        "min_count": options.min_count,
        "shard_tokens": shard_tokens,
        "held_out": _as_given(held_out_files) or "as much as a shard of each source",
    }
    if raw:
        settings |= {"tokenised_here": list(map(str, raw)), "keep": options.keep}
    workers = options.workers
    if raw and len(pieces) < workers:
        # A compressed file is one piece, in which blocks are tokenised side by side.
        for each in raw.values():
            each.workers = workers
        workers = 1
    number = partial(number_piece, work=out / WORK, leave_out=overlap, tokenisers=raw)
    with locked(out / "corpus.json"):
        _require_own(out)
        _read(pieces, number, workers)
        numbered = [NumberedPiece(number(piece), piece) for piece in pieces]
        if leave_out:
            settings["leave_out"] = {
                str(text.path): FileChecksum.of(Path(text.path)).whole
                for text in leave_out
            }
        _finish(numbered, out, options.min_count, _as_given(files), settings)


def _require_own(out: Path) -> None:
    """Raise an `InputError` where the output is finished or something else."""
    work = out / WORK
    if (out / "corpus.json").exists():
        # A call may have been killed while it removed the folder.
        shutil.rmtree(work, ignore_errors=True)
    # Hidden are the folder and the lock of this call.
    if any(out.glob("[!.]*")) and not work.is_dir():
        raise InputError(
            f"{out} is a finished corpus, or holds other files: remove it or choose "
            "another path"
        )


def _read(
    pieces: Sequence[TextPiece], number: Callable[[TextPiece], Path], workers: int
) -> None:
    """Read those of the pieces that are not there yet."""
    size = sum(piece.text_bytes for piece in pieces)
    with progress_bar(total=size, desc="reading", unit="B", unit_scale=True) as bar:
        for piece, _ in zip(pieces, parallel_map(number, pieces, workers), strict=True):
            bar.update(piece.text_bytes)


def _finish(
    numbered: Sequence[NumberedPiece],
    out: Path,
    min_count: int,
    sources: Sequence[str],
    settings: dict[str, Any],
) -> None:
    """Make the corpus of its pieces; the last two are for `corpus.json`."""
    planned = plan_shards(numbered)
    lexicon = MergedLexicon(planned, min_count)
    train, held_out = write_shards(planned, lexicon, out)
    left_out = dict.fromkeys(settings["shard_tokens"], 0)
    counts: Counter[str] = Counter()
    for piece in numbered:
        counts.update(piece.counts)
        left_out[piece.text.source] += piece.counts["left_out"]
    RowCount(counts["rows"], counts["without_text"]).tell(out)
    if "leave_out" in settings:
        settings["left_out_sentences"] = left_out
        say(f"{counts['left_out']:,} sentences overlap with what is left out")
    finish_corpus(
        out,
        lexicon=lexicon.words,
        counts=lexicon.counts,
        train=train,
        held_out=held_out,
        sources=sources,
        settings=settings,
    )
    shutil.rmtree(out / WORK)
    report(out, f"{len(lexicon.words):,} word types", train, held_out)


def find_text(
    sources: Sequence[AnyPath], held_out: Sequence[AnyPath]
) -> tuple[NamedFiles, NamedFiles]:
    """The files to train on and those to hold out, each with its source; a file that
    both name is held out.

    Raises:
        InputError: nothing is left to train on, or only some files have a source.
    """
    evaluation = find_named_files(held_out)
    aside = {os.path.realpath(file) for file in evaluation}
    train = {
        file: name
        for file, name in find_named_files(sources).items()
        if os.path.realpath(file) not in aside
    }
    if not train:
        raise InputError("every input file is held out: name files to train on, too")
    if len({bool(name) for name in (train | evaluation).values()}) > 1:
        raise InputError(
            "some files are given as NAME=PATH and some without a name: name all of "
            "them, or none"
        )
    return train, evaluation


def _divide(
    texts: Mapping[TextRange, str],
    held_out: Collection[AnyPath],
    shard_tokens: int | None,
    wrapped: Collection[AnyPath],
) -> tuple[list[TextPiece], dict[str, int]]:
    """The pieces of all files, and the size of a shard of each source."""
    sizes: dict[str, int] = {}
    for source in dict.fromkeys(texts.values()):
        files = [text.path for text, name in texts.items() if name == source]
        tokens = estimate_text_bytes(files) // BYTES_PER_TOKEN
        sizes[source] = shard_tokens or default_shard_tokens(tokens)
    pieces = []
    for is_held_out, source in product((False, True), sizes):
        own = [
            text
            for text, name in texts.items()
            if name == source and (text.path in held_out) == is_held_out
        ]
        pieces += cut_pieces(own, sizes[source], is_held_out, source, wrapped)
    return pieces, sizes


def _as_given(files: NamedFiles) -> list[str]:
    """The files as `corpus.json` names them: NAME=PATH, or PATH without a source."""
    return [f"{name}={file}" if name else str(file) for file, name in files.items()]
