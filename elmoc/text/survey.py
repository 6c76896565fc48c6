"""Survey: how many sentences and words an input of a dump has, and whether all of them
can be entries of a feature file.
"""

from typing import NamedTuple

import xxhash

from elmoc.errors import InputError, shortened
from elmoc.features.options import MOST_SENTENCES, MOST_WORDS
from elmoc.text.sentences import SentenceInput
from elmoc.text.suitable import check_suitable


class Survey(NamedTuple):
    """What is known of an input before it is dumped.

    sentences: its number of sentences.
    words: the number of words that they have states of.
    fingerprint: a hash of its content.
    """

    sentences: int
    words: int
    fingerprint: str


def survey(source: SentenceInput, *, found_by_words: bool, warn: bool) -> Survey:
    """Read all of an input once.

    Args:
        source: the input.
        found_by_words: whether sentences will be found by their words, so that words
            may not hold white space (which only words of documents can).
        warn: whether text that does not look tokenised is told of on standard error.

    Raises:
        InputError: an input without sentences; an empty sentence, unless allowed; a
            sentence of more than `MOST_WORDS`; two documents with one key (`:` and `/`
            count as the same there, as for e2e-coref); JSON lines or columns in place
            of text.
    """
    if not source.documents:
        check_suitable(source.path, warn=warn)
    digest = xxhash.xxh3_64()
    keys = set[str]()
    sentences = 0
    words = 0
    for sentence in source:
        where = f"{source.path}, {sentence.where}"
        if sentence.begins and sentence.document is not None:
            key = sentence.document.replace("/", ":")
            if key in keys:
                raise InputError(
                    f'{where}: the doc_key "{shortened(key)}" stands in a line before '
                    'it (":" and "/" count as the same): give each document its own'
                )
            keys.add(key)
        tokens = list(sentence.tokens)
        divided_otherwise = source.documents and sentence.line.split() != tokens
        if found_by_words and divided_otherwise:
            raise InputError(
                f"{where} has a word with white space in it, so that it cannot be "
                "found by its words: take the white space out, or choose another "
                "layout (--format), or --forget-sentences"
            )
        if not tokens and not source.allow_empty:
            raise InputError(
                f"{where} is empty: remove it, or write an empty array: --allow-empty"
            )
        if len(tokens) > MOST_WORDS:
            raise InputError(
                f"{where} has {len(tokens):,} words, a sentence at most "
                f"{MOST_WORDS:,}: divide it"
            )
        begins = "1" if sentence.begins else ""
        parts = [sentence.line, *tokens, sentence.document or "", begins]
        digest.update("\0".join(parts).encode() + b"\n")
        sentences += 1
        words += sentence.length
        if sentences > MOST_SENTENCES:
            raise InputError(
                f"{where}: a feature file has at most {MOST_SENTENCES:,} sentences: "
                "divide the text"
            )
    if not sentences:
        raise InputError(
            f"{source.path} has no lines: give a file with a sentence on each"
        )
    return Survey(sentences, words, digest.hexdigest())
