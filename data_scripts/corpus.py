"""Corpora: from text of any kind to a corpus directory (lexicon, token shards, counts).

The text is read once: workers number the words of their piece in order of occurrence
(`parts/pieces.py`), then the pieces' lexicons are merged and the ids mapped
(`parts/shards.py`). Finished pieces stay in `CORPUS/.work` until the corpus is
finished, so that a call that was killed goes on behind them; the result is the same,
byte for byte, whatever the number of workers or interruptions.

Where files are given as NAME=PATH, NAME is the source of their text, and every shard
holds text of one source alone.
"""

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
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
from data_scripts.parts.tokenising import Answer, Keep, Tokeniser
from data_scripts.parts.workers import Workers, parallel_map
from elmoc.corpus import Corpus, finish_corpus
from elmoc.errors import InputError, say
from elmoc.files.checksums import fingerprint_file
from elmoc.files.writing import locked
from elmoc.process import available_cores, progress_bar
from elmoc.settings import checked
from elmoc.text.documents import (
    BYTES_PER_TOKEN,
    TextRange,
    estimate_text_bytes,
    read_documents,
    reader_of,
    rereadable,
)
from elmoc.text.named_files import AnyPath, find_named_files
from elmoc.text.overlap import RUN, Overlap

TOKENISED = Meta(
    description="whether the text is tokenised already: one sentence a line, words "
    "split on white space (auto: decided for each file, see data_scripts.tokenize)"
)
# Files in their order, each with its source.
NamedFiles = dict[AnyPath, str]


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """How a corpus is made of text."""

    tokenised: Annotated[Answer, TOKENISED] = "auto"
    keep: Keep = ()
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


DEFAULT = CorpusOptions()


def make_corpus(
    sources: AnyPath | Sequence[AnyPath],
    out: Path | str,
    options: CorpusOptions = DEFAULT,
) -> Corpus:
    """Make a corpus directory of text, and open it.

    Blank lines and the ends of files divide documents. Raw text is tokenised as
    `python -m data_scripts.tokenize` does it; a printed line says which files are raw.
    A call that was interrupted goes on when it is made again. The corpus is described
    in docs/train.md, its files in `elmoc/corpus.py`.

    Args:
        sources: files of text (plain, or compressed by gzip, bzip2 or xz), folders,
            globs, `NAME=PATH` of these, or `-` for standard input.
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
    if isinstance(sources, str | os.PathLike):
        sources = [sources]
    with ExitStack() as stack:
        paths = [stack.enter_context(rereadable(source)) for source in sources]
        _build(paths, out, options)
    return Corpus(out)


def _build(sources: Sequence[AnyPath], out: Path, options: CorpusOptions) -> None:
    """See `make_corpus`; what is read can be read more than once."""
    train_files, held_out_files = find_text(sources, options.held_out)
    files = train_files | held_out_files
    leave_out_files = list(find_named_files(options.leave_out))
    for file in leave_out_files:
        reader_of(file).check(TextRange(file))
    found = {
        file: Tokeniser(file, tokenised=options.tokenised, keep=options.keep)
        for file in files
    }
    tokenisers = {file: each for file, each in found.items() if not each.tokenised}
    pieces, shard_tokens = _divide(train_files, held_out_files, options.shard_tokens)
    overlap = None
    if leave_out_files:
        documents = chain.from_iterable(map(read_documents, leave_out_files))
        overlap = Overlap(chain.from_iterable(each.sentences() for each in documents))
    settings: dict[str, Any] = {
        "min_count": options.min_count,
        "shard_tokens": shard_tokens,
        "held_out": _as_given(held_out_files) or "as much as a shard of each source",
    }
    if tokenisers:
        settings["tokenised_here"] = list(map(str, tokenisers))
        settings["keep"] = options.keep
        say(f"raw text, which is tokenised: {', '.join(map(str, tokenisers))}")
    elif options.keep:
        say("warning: --keep acts on raw text alone", file=sys.stderr)
    with locked(out / "corpus.json"):
        work = out / ".work"
        if (out / "corpus.json").exists():
            # A call may have been killed while it removed the folder.
            shutil.rmtree(work, ignore_errors=True)
        # Hidden are the folder and the lock of this call.
        if any(out.glob("[!.]*")) and not work.is_dir():
            raise InputError(
                f"{out} is a finished corpus, or holds other files: remove it or "
                "choose another path"
            )
        number = partial(
            number_piece, work=work, leave_out=overlap, tokenisers=tokenisers
        )
        bar = progress_bar(
            iterable=parallel_map(number, pieces, options.workers),
            desc="reading",
            total=len(pieces),
            unit=" pieces",
        )
        numbered = list(map(NumberedPiece, bar, pieces))
        planned = plan_shards(numbered)
        lexicon = MergedLexicon(planned, options.min_count)
        train, held_out = write_shards(planned, lexicon, out)
        if overlap is not None:
            settings["leave_out"] = {
                str(file): fingerprint_file(Path(file)) for file in leave_out_files
            }
            left_out = dict.fromkeys(shard_tokens, 0)
            for piece in numbered:
                left_out[piece.text.source] += piece.left_out
            settings["left_out_sentences"] = left_out
            say(f"{sum(left_out.values()):,} sentences overlap with --leave-out")
        finish_corpus(
            out,
            lexicon=lexicon.words,
            counts=lexicon.counts,
            train=train,
            held_out=held_out,
            sources=_as_given(files),
            settings=settings,
        )
        shutil.rmtree(work)
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
    train: NamedFiles, held_out: NamedFiles, shard_tokens: int | None
) -> tuple[list[TextPiece], dict[str, int]]:
    """The pieces of all files, and the size of a shard of each source."""
    both = train | held_out
    sizes: dict[str, int] = {}
    for source in dict.fromkeys(both.values()):
        tokens = estimate_text_bytes(_of_source(both, source)) // BYTES_PER_TOKEN
        sizes[source] = shard_tokens or default_shard_tokens(tokens)
    pieces = []
    for is_held_out, files in ((False, train), (True, held_out)):
        for source, size in sizes.items():
            own = _of_source(files, source)
            pieces += cut_pieces(own, size, is_held_out, source)
    return pieces, sizes


def _of_source(files: NamedFiles, source: str) -> list[AnyPath]:
    return [file for file, name in files.items() if name == source]


def _as_given(files: NamedFiles) -> list[str]:
    """The files as `corpus.json` names them: NAME=PATH, or PATH without a source."""
    return [f"{name}={file}" if name else str(file) for file, name in files.items()]
