"""Tokenizer: raw text to sentences of words, in any language that separates words by spaces, without downloads.

Words: NLTK's Penn-like tokeniser (English contractions are split: `do n't`, `can not`), with four changes: quotes are
straight (“ ” „ become `"`, ‘ ’ become `'`, and there are none of Penn's `` and ''), URLs, e-mail addresses and Hebrew
acronyms stay whole, marks of other scripts are words of their own, as English ones are, and byte order marks are left
out. Parentheses stay as they are.
Sentences: NLTK's Punkt, which also ends them at the full stops and question marks of other scripts (`SENTENCE_ENDS`).
Its abbreviations are common English ones and those that it learns from the text itself.
"""

import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise
from typing import Any

ABBREVIATIONS = frozenset(
    re.findall(
        r"\S+",
        "mr mrs ms messrs mme mlle dr prof st jr sr rev hon capt col lt gen maj sgt cpl adm gov sen rep pres supt esq "
        "mt ft vs viz cf al ed eds vol vols pp fig figs nos dept univ assn bros inc ltd co corp approx est e.g i.e "
        "jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri u.s u.k u.n a.m p.m ph.d d.c",
    )
)
_OTHER_ENDS = "।॥۔؟።፧։"  # of the scripts of India, of Arabic, Ethiopic and Armenian
SENTENCE_ENDS = ".?!" + _OTHER_ENDS  # the last character of a sentence
SMALLEST_TRAINING_TEXT = 50_000  # characters; fewer teach Punkt more wrong abbreviations than right ones

BYTE_ORDER_MARK = "\ufeff"  # no part of the text; where files were joined, it stands inside of it, too
_GERSHAYIM = "\u05f4"  # the mark of Hebrew acronyms, for which `"` is written most often
_STRAIGHT = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‟": '"', "‘": "'", "’": "'", "‚": ",", "‛": "'"}
    | {_GERSHAYIM: '"', BYTE_ORDER_MARK: None}
)
_MARKS = "…¿¡،؛፣፤፥፦" + _OTHER_ENDS  # that NLTK leaves attached to words
_MARK = re.compile(rf"(?!(?<=\d)،(?=\d))[{_MARKS}]")  # 1,5 is one word, and so is ١،٥
_PLACEHOLDER = "\ue000"  # a private-use character: stands for a URL while the rest is tokenised
_ADDRESS = re.compile(
    rf"(?:https?://|ftp://|www\.)[^\s<>\"]*[^\s<>\".,;:!?'()\[\]{{}}{_MARKS}]"  # no punctuation at the end
    r"|\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+\b"  # RFC 5321's limit, without which `a.a.a…` took the square of its length
)
_HEBREW = "[\u05b0-\u05bd\u05bf\u05c1\u05c2\u05c7\u05d0-\u05f2]"  # letters, and the points of vowels
_IN_ACRONYM = re.compile(  # after prefixes (and, in, the, …) and before two letters `"` begins a quotation, though
    rf'(?<!{_HEBREW})(?![\u05d1\u05d4\u05d5\u05db\u05dc\u05de\u05e9]+"{_HEBREW}{{2}})({_HEBREW}+)"(?={_HEBREW})'
)
_LETTER = rf"[^\s!-/:-@\[-`{{-~{_MARKS}]"  # of any script, vowel signs too, which \w leaves out
_APART = re.compile(r"(?:^|\s)[,.،؛](?=\s|$)")  # the full stops of other scripts stand apart in raw text, too
_APART_IN_FRENCH = re.compile(r"(?:^|\s)[;:!?\"](?=\s|$)")  # in raw French, too
_ATTACHED = re.compile(
    rf"{_LETTER}[,;:!?{_MARKS}](?=\s|$)|{_LETTER}\.(?=\s*$)|(?:^|\s)\"{_LETTER}|{_LETTER}\"(?=\s|$)", re.MULTILINE
)
# A word with a comma, question mark or another mark attached to its end; full stops and colons aside. `&quot;`, `&#91;`
# and `&apos;&apos;` are words of some tokenisers, and transcripts have `no:`.
WITH_MARK = re.compile(rf"(?!\S*&#?\w+;$)\S*{_LETTER}[,;!?{_MARKS}]")
_SENTENCE_END = re.compile(rf"[:;…{SENTENCE_ENDS}][\"'”’)\]]*\s*$")


def tokenise_sentence(text: str) -> list[str]:
    """The words of one sentence of raw text; [] for white space."""
    text = text.translate(_STRAIGHT)
    addresses = _ADDRESS.findall(text) if _PLACEHOLDER not in text else []
    if addresses:
        text = _ADDRESS.sub(f" {_PLACEHOLDER} ", text)
    if '"' in text:  # without which there is no need to look
        text = _IN_ACRONYM.sub(rf"\1{_GERSHAYIM}", text)  # which NLTK leaves where it is
    words = _word_tokeniser()(_MARK.sub(r" \g<0> ", text))
    words = ['"' if word in ("``", "''") else word.replace(_GERSHAYIM, '"') for word in words]
    if addresses:
        remaining = iter(addresses)
        words = [next(remaining) if word == _PLACEHOLDER else word for word in words]
    return words


def tokenise_paragraph(text: str, split: Callable[[str], Sequence[str]]) -> list[list[str]]:
    """The sentences of a paragraph of raw text, as words; `split` cuts it (see `sentence_splitter`)."""
    sentences: list[list[str]] = []
    for sentence in split(text):
        words = tokenise_sentence(sentence)
        if sentences and not any(character.isalnum() for word in words for character in word):
            sentences[-1] += words  # a stray mark, such as the "!" of "What?!"
        elif words:
            sentences.append(words)
    return sentences


def sentence_splitter(sample: str) -> Callable[[str], Sequence[str]]:
    """A function that cuts a paragraph into sentences, its abbreviations learned from `sample` (raw text)."""
    punkt = _nltk("nltk.tokenize.punkt")
    language = _language_variables(punkt)
    parameters = punkt.PunktParameters()
    if len(sample) >= SMALLEST_TRAINING_TEXT:
        trainer = punkt.PunktTrainer(lang_vars=language)
        trainer.train(sample.translate(_STRAIGHT), finalize=False)
        trainer.finalize_training()
        parameters = trainer.get_params()
    parameters.abbrev_types.update(ABBREVIATIONS)
    return punkt.PunktSentenceTokenizer(parameters, lang_vars=language).tokenize


def _language_variables(punkt: Any) -> Any:
    class Variables(punkt.PunktLanguageVars):
        sent_end_chars = tuple(SENTENCE_ENDS)

    return Variables()


def looks_tokenised(sample: str) -> bool:
    """Whether text is tokenised: more of its `, ; : ! ? "` and final full stops stand apart than touch a word.

    Of `; : ! ? "` that stand apart, which they do in raw French, ten count as one: they decide in text of short
    questions alone. Marks of other scripts count where they touch a word, and their commas where they stand apart, too.
    Text without any such mark counts as raw (tokenising it again changes nothing).
    """
    apart = len(_APART.findall(sample)) + len(_APART_IN_FRENCH.findall(sample)) / 10
    return apart > len(_ATTACHED.findall(sample))


def looks_wrapped(lines: Sequence[str]) -> bool:
    """Whether raw lines are paragraphs wrapped to a width, so that sentences run on over line ends.

    They are when most lines that another line follows end in the middle of a sentence, and lines are of a like width
    (median from 45 characters on, 95 % at most 120).
    """
    followed = [line for line, after in pairwise(lines) if line.strip() and after.strip()]
    if len(followed) < 2:
        return False
    lengths = sorted(len(line.rstrip()) for line in followed)
    open_ends = sum(not _SENTENCE_END.search(line) for line in followed)
    middle, wide = lengths[len(lengths) // 2], lengths[int(0.95 * (len(lengths) - 1))]
    return open_ends > len(followed) / 2 and middle >= 45 and wide <= 120


@lru_cache(maxsize=1)
def _word_tokeniser() -> Callable[[str], list[str]]:
    return _nltk("nltk.tokenize").NLTKWordTokenizer().tokenize


def _nltk(module: str) -> Any:
    imported = import_module(module)
    if "nltk.redos" in sys.modules:  # 5 s a pattern and text, of which a busy machine needs more for a long paragraph
        vars(sys.modules["nltk.redos"])["DEFAULT_TIMEOUT"] = None
    return imported
