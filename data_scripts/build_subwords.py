"""Building a corpus of subwords: the words of a corpus directory are written as units
of byte-level BPE.

Merges are learnt from the words of the training text, each as often as it occurs there.
Shards, documents, sources and the held-out split are the same as in the corpus of
words.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from data_scripts.build_corpus import report
from data_scripts.parts.workers import add_workers, parallel_map
from elmoc.corpus import BEGIN, END, ID_DTYPE, UNKNOWN, Corpus, Shard, finish_corpus
from elmoc.errors import InputError, run_command
from elmoc.files.arrays import save_array
from elmoc.files.writing import atomic_directory, locked, refuse_existing
from elmoc.model_directory import read_model_directory
from elmoc.process import progress_bar
from elmoc.word_vectors.subwords import Subwords, SubwordVectors

# Occurrences of a word that the learner is given at once.
BLOCK_WORDS = 10_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m data_scripts.build_subwords",
        description="Make a corpus directory of subwords (byte-level BPE) from a corpus of words.",
    )
    parser.add_argument(
        "words", type=Path, metavar="CORPUS", help="corpus directory of words"
    )
    parser.add_argument(
        "corpus", type=Path, metavar="OUT", help="the corpus directory to make"
    )
    units = parser.add_mutually_exclusive_group()
    units.add_argument(
        "--units",
        type=int,
        default=32_000,
        metavar="N",
        help="how many at most (%(default)s)",
    )
    units.add_argument(
        "--like",
        metavar="MODEL",
        help="the units of this model or run directory, or of this corpus of subwords (what --init-from needs)",
    )
    add_workers(parser)
    options = vars(parser.parse_args(argv))
    return run_command(lambda: build_subwords(**options))


def build_subwords(
    words: Path,
    corpus: Path,
    *,
    units: int = 32_000,
    like: str | None = None,
    workers: int = 1,
) -> None:
    """Build the corpus of subwords; see the command's help. Raises `InputError` for a
    corpus that has them already.
    """
    source = Corpus(words)
    source.require_words()
    with locked(corpus):
        refuse_existing(corpus)
        learnt = learn(source, units) if like is None else units_of(like)
        split = learnt.rows(source.lexicon)
        for mark, row in source.marks.items():
            split[row] = [learnt.row_of[mark]]
        lengths = np.array([len(rows) for rows in split])
        rows = np.concatenate([np.asarray(each, dtype=np.int64) for each in split])
        counts = np.bincount(
            rows, weights=np.repeat(source.counts, lengths), minlength=len(learnt.units)
        )
        order = np.argsort(
            -counts, kind="stable"
        )  # most frequent first, as in every corpus
        new_row = np.empty_like(order)
        new_row[order] = np.arange(len(order))
        lexicon = [learnt.units[row] for row in order.tolist()]
        units_of_types = new_row[rows].astype(ID_DTYPE)
        first = np.cumsum(lengths) - lengths
        with atomic_directory(corpus) as partial:
            (partial / "shards").mkdir()

            def write(shard: Shard) -> Shard:
                """Write a shard in units."""
                ids = source.read_shard(shard)
                places = (
                    np.cumsum(lengths[ids]) - lengths[ids]
                )  # of each word's first unit
                all_rows = np.repeat(first[ids] - places, lengths[ids]) + np.arange(
                    lengths[ids].sum()
                )
                (partial / shard.file).write_bytes(units_of_types[all_rows].data)
                save_array(
                    partial / shard.documents_file, places[source.read_documents(shard)]
                )
                return replace(shard, tokens=len(all_rows))

            both = (*source.train, *source.held_out)
            written = parallel_map(write, both, workers)
            shards = list(
                progress_bar(
                    iterable=written, desc="writing", total=len(both), unit=" shards"
                )
            )
            train = shards[: len(source.train)]
            held_out = shards[len(source.train) :]
            learnt.write_merges(partial)
            units, words_of_text = (
                sum(s.tokens - 2 * s.sentences for s in each)
                for each in (train, source.train)
            )
            share = round(units / words_of_text, 4)
            settings = {
                "words": os.path.realpath(words),
                "units": len(lexicon),
                "units_of_a_word": share,
            }
            finish_corpus(
                partial,
                lexicon=lexicon,
                counts=counts[order].astype(np.int64),
                train=train,
                held_out=held_out,
                sources=source.record.sources,
                settings=settings | ({} if like is None else {"like": like}),
                subwords=True,
            )
    report(
        corpus,
        f"{len(lexicon):,} units, {share:.3f} a word; here words are units",
        train,
        held_out,
    )


def learn(corpus: Corpus, units: int) -> Subwords:
    """At most this number of units, of the words of a corpus."""
    import tokenizers

    marks = corpus.marks
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    byte_level = tokenizers.pre_tokenizers.ByteLevel(
        add_prefix_space=True, use_regex=False
    )
    words = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([words, byte_level])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=units - len(marks),
        initial_alphabet=alphabet,
        show_progress=False,
        limit_alphabet=len(alphabet),
    )
    tokenizer.train_from_iterator(_occurrences(corpus), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [(left, right) for left, right in model["merges"]]
    return Subwords([*sorted(model["vocab"], key=model["vocab"].get), *marks], merges)


def _occurrences(corpus: Corpus) -> Iterator[str]:
    """The words of the training text, each as often as it occurs; those with a mark in
    them are left out.
    """
    types = zip(corpus.lexicon, corpus.counts.tolist(), strict=True)
    for word, count in progress_bar(
        iterable=types, total=corpus.types, unit=" types", desc="learning"
    ):
        if not any(
            mark in word for mark in (BEGIN, END, UNKNOWN)
        ):  # no unit may be made of them
            for start in range(0, count, BLOCK_WORDS):
                yield f"{word} " * min(BLOCK_WORDS, count - start)


def units_of(path: str) -> Subwords:
    """The units of a corpus of subwords, or those that a model reads."""
    if (Path(path) / "corpus.json").exists():
        return Subwords.of_corpus(Corpus(path))
    stored = read_model_directory(path).read_stored_vectors()
    if not isinstance(stored, SubwordVectors):
        raise InputError(
            f"--like {path}: the model reads no subwords: name a model that does, or leave --like out"
        )
    return stored.subwords


if __name__ == "__main__":
    sys.exit(main())
