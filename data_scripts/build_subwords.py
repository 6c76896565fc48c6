"""Building a corpus of subwords: the words of a corpus directory are written as units
of byte-level BPE.

Merges are learnt from the words of the training text, each as often as it occurs there.
Shards, documents, sources and the held-out split are the same as in the corpus of
words.
"""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from msgspec import Meta

from data_scripts.parts.shards import report, words_of
from data_scripts.parts.workers import Workers, parallel_map
from elmoc.command_line import run_main
from elmoc.corpus import BEGIN, END, ID_DTYPE, UNKNOWN, Corpus, Shard, finish_corpus
from elmoc.files.arrays import save_array
from elmoc.files.writing import atomic_directory, locked
from elmoc.process import available_cores, progress_bar

# PyTorch, which both load, is only needed for the work.
if TYPE_CHECKING:
    from elmoc.word_vectors.subwords import Subwords

# Occurrences of a word that the learner is given at once.
BLOCK_WORDS = 10_000


@dataclass(frozen=True, kw_only=True)
class SubwordOptions:
    """How words are divided into subwords."""

    words: Annotated[
        Path,
        Meta(description="corpus directory of words", extra={"metavar": "CORPUS"}),
    ]
    corpus: Annotated[
        Path, Meta(description="the corpus directory to make", extra={"metavar": "OUT"})
    ]
    # The usual size of a vocabulary of subwords.
    units: Annotated[int, Meta(ge=1, description="units to learn, at most")] = 32_000
    workers: Workers = field(default_factory=available_cores)


def build_subwords(options: SubwordOptions) -> None:
    """Make a corpus of subwords.

    Raises:
        InputError: the corpus exists or is being written, or `words` is none of words.
    """
    corpus = options.corpus
    source = Corpus(options.words)
    source.require_words()
    with locked(corpus, new=True):
        learnt = learn(source, options.units)
        split = _SplitTypes(source, learnt)
        with atomic_directory(corpus) as partial:
            (partial / "shards").mkdir()
            both = source.train + source.held_out
            bar = progress_bar(
                iterable=parallel_map(
                    lambda shard: split.write_shard(shard, partial),
                    both,
                    options.workers,
                ),
                desc="writing",
                total=len(both),
                unit=" shards",
            )
            shards: list[Shard] = list(bar)
            train = shards[: len(source.train)]
            held_out = shards[len(source.train) :]
            learnt.write_merges(partial)
            share = round(words_of(train) / words_of(source.train), 4)
            finish_corpus(
                partial,
                lexicon=split.lexicon,
                counts=split.counts,
                train=train,
                held_out=held_out,
                sources=source.record.sources,
                settings=source.record.settings
                | {
                    "words": os.path.realpath(options.words),
                    "units": len(split.lexicon),
                    "units_of_a_word": share,
                },
                subwords=True,
            )
    types = f"{len(split.lexicon):,} units, {share:.3f} a word; here words are units"
    report(corpus, types, train, held_out)


class _SplitTypes:
    """The word types of a corpus as rows of units.

    lexicon: the units, most frequent first.
    counts: int64 [units], how often each occurs in the training text.
    """

    def __init__(self, source: Corpus, learnt: "Subwords") -> None:
        split = learnt.rows(source.lexicon)
        # The marks are units of their own.
        for mark, row in source.marks.items():
            split[row] = [learnt.row_of[mark]]
        lengths = np.array([len(rows) for rows in split])
        rows = np.concatenate([np.asarray(each, dtype=np.int64) for each in split])
        of_types = np.repeat(source.counts, lengths)
        counts = np.bincount(rows, weights=of_types, minlength=len(learnt.units))
        # Most frequent first, as in every corpus.
        order = np.argsort(-counts, kind="stable")
        new_row = np.empty_like(order)
        new_row[order] = np.arange(len(order))
        self.lexicon = [learnt.units[row] for row in order.tolist()]
        self.counts = counts[order].astype(np.int64)
        self._source = source
        self._lengths = lengths
        # The units of all types, one type after the other, and where each type begins.
        self._units = new_row[rows].astype(ID_DTYPE)
        self._first = np.cumsum(lengths) - lengths

    def write_shard(self, shard: Shard, folder: Path) -> Shard:
        """Write a shard of words in units, into the folder of a corpus."""
        ids = self._source.read_shard(shard)
        lengths = self._lengths[ids]
        # Where the first unit of each word is in the shard.
        places = np.cumsum(lengths) - lengths
        total = int(lengths.sum())
        rows = np.repeat(self._first[ids] - places, lengths) + np.arange(total)
        (folder / shard.file).write_bytes(self._units[rows].data)
        documents = places[self._source.read_documents(shard)]
        save_array(folder / shard.documents_file, documents)
        return replace(shard, tokens=total)


def learn(corpus: Corpus, units: int) -> "Subwords":
    """Learn units from the words of a corpus, at most this number."""
    import tokenizers

    from elmoc.word_vectors.subwords import Subwords

    marks = corpus.marks
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.WhitespaceSplit(),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False),
        ]
    )
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=units - len(marks),
        initial_alphabet=alphabet,
        show_progress=False,
        limit_alphabet=len(alphabet),
    )
    tokenizer.train_from_iterator(_occurrences(corpus), trainer)
    # It ran in threads: else the library warns in processes that are forked later.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    model = json.loads(tokenizer.to_str())["model"]
    by_row = sorted(model["vocab"], key=model["vocab"].get)
    return Subwords(by_row + list(marks), list(map(tuple, model["merges"])))


def _occurrences(corpus: Corpus) -> Iterator[str]:
    """The words of the training text, each as often as it occurs; words with a mark in
    them are left out, since no unit may be made of a mark.
    """
    types = [
        (word, occurrences)
        for word, occurrences in zip(corpus.lexicon, corpus.counts, strict=True)
        if not any(mark in word for mark in (BEGIN, END, UNKNOWN))
    ]
    for word, occurrences in progress_bar(
        iterable=types, unit=" types", desc="learning"
    ):
        for start in range(0, occurrences, BLOCK_WORDS):
            yield f"{word} " * min(BLOCK_WORDS, occurrences - start)


main = partial(
    run_main,
    SubwordOptions,
    build_subwords,
    prog="python -m data_scripts.build_subwords",
    description="Make a corpus directory of subwords (byte-level BPE) from a "
    "corpus of words.",
)

if __name__ == "__main__":
    sys.exit(main())
