"""Tokenizer: raw text to sentences of words, in any language that separates words by
spaces, without downloads.

Words are those of the Penn Treebank (English contractions are split: `do n't`, `can
not`), found by one pattern in the pieces between spaces; what stays whole and what
stands alone is said at `_TOKEN`. Quotes are straight (“ ” „ become `"`, ‘ ’ become
`'`), parentheses stay as they are, and HTML entities become what they stand for.
Sentences end at full stops, question marks and exclamation marks, of any script
(`SENTENCE_ENDS`), unless what stands before and behind says otherwise. Abbreviations
are common ones and those that Punkt (NLTK) learns from the text itself.
"""

import html
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import pairwise

_LISTED = re.compile(r"\S+").findall
# abbreviations that stand before a name: no sentence ends behind them
_TITLES = frozenset(
    _LISTED(
        "mr mrs ms messrs mme mlle dr prof st sr rev hon capt col lt gen maj sgt cpl adm gov sen rep pres supt mt ft hr"
    )
)
ABBREVIATIONS = _TITLES | frozenset(
    _LISTED(
        "jr esq vs viz cf al ed eds vol vols pp fig figs nos dept univ assn bros inc ltd co corp approx est e.g i.e "
        "u.s jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri u.k u.n a.m p.m ph.d d.c z.b d.h usw"
    )
)
# words that are abbreviations before a number alone: No. 5, p. 12, Nr. 3, op. 27
_BEFORE_NUMBERS = frozenset(
    _LISTED(
        "no nos nr p pp vol vols ch chap art sec fig figs op eq num bd kap abs s n c ca v tab"
    )
)
# English words that begin a sentence behind an abbreviation which often ends one, as
# `p.m.` and `Inc.` do
_STARTERS = frozenset(
    _LISTED(
        "the a an he she it they we i you this that these those there but and in on at when if his her then so after "
        "as what how why who my our their its"
    )
)
# German words between which and a noun an ordinal number stands, and months: am 3. Mai,
# die 1. Bundesliga
_BEFORE_ORDINALS = frozenset(
    _LISTED(
        "am im vom zum zur beim ab seit bis der die das den dem des ein eine einer einem jeder jede jedes"
    )
)
_MONTHS = frozenset(
    _LISTED(
        "januar jänner februar märz april mai juni juli august september oktober november dezember"
    )
)
_OTHER_ENDS = "।॥۔؟።፧։"  # of the scripts of India, of Arabic, Ethiopic and Armenian
SENTENCE_ENDS = ".?!" + _OTHER_ENDS  # the last character of a sentence
SMALLEST_TRAINING_TEXT = (
    50_000  # characters; fewer teach Punkt more wrong abbreviations than right ones
)

# no part of the text; where files were joined, it stands inside of it, too
BYTE_ORDER_MARK = "\ufeff"
_GERSHAYIM = (
    "\u05f4"  # the mark of Hebrew acronyms, for which `"` is written most often
)
_STRAIGHT = str.maketrans(
    {
        "“": '"',
        "”": '"',
        "„": '"',
        "‟": '"',
        "‘": "'",
        "’": "'",
        "‚": "'",
        "‛": "'",
        _GERSHAYIM: '"',
    }
    | {BYTE_ORDER_MARK: None, "\u2060": None}  # nothing, as the word joiner is
)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z]\w{1,30});")
_COMMA_BELOW = re.compile(
    r"‚(?=\s|$)|(?<=\d)‚(?=\d)"
)  # the quotation mark ‚ written for a comma
# letters, and the points of vowels
_HEBREW = "[\u05b0-\u05bd\u05bf\u05c1\u05c2\u05c7\u05d0-\u05f2]"
_IN_ACRONYM = re.compile(  # after prefixes (and, in, the, …) and before two letters `"` begins a quotation, though
    rf'(?<!{_HEBREW})(?![\u05d1\u05d4\u05d5\u05db\u05dc\u05de\u05e9]+"{_HEBREW}{{2}})({_HEBREW}+)"(?={_HEBREW})'
)
_MARKS = "…¿¡،؛፣፤፥፦" + _OTHER_ENDS  # of other scripts and languages
_EMOJI = "[\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001faff]"
# that change the emoji before them: colours of skin, presentation
_SYMBOLS = "[\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*"
# a character of a word: no space, no mark that stands alone, no emoji
_IN_WORD = rf"[^\s.,:;?!\"'()\[\]{{}}<>@#$%&*£€¥«»‹›–—`{_MARKS}{_EMOJI[1:-1]}]"
# What is one word of a piece without spaces, the first that fits.
_TOKEN = re.compile(
    # URLs, without punctuation at their end
    rf"(?:https?://|ftp://|www\.)[^\s<>\"]*[^\s<>\".,;:!?'()\[\]{{}}{_MARKS}]"
    # e-mail addresses; RFC 5321's limit, without which `a.a.a…` took the square of its
    # length
    r"|\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+\b"
    # placeholders and tags, such as <unk>; <s> and </s> are marks of a corpus
    r"|</?(?!s>)[A-Za-z][\w-]*/?>"
    # smileys
    r"|(?<!\w)(?:[<>]?[:;=][-'^o]?(?:\)+|\(+|[\[\]DPpO/\\|*3@{}])|[8xX]-[()D]|[(\[][-']?[:;=](?!\S)"
    r"|</?3+|\^[_.-]?\^|[oO]_[oO])(?!\w)"
    # the second parts of contractions, and what begins with an apostrophe: 's, 'em,
    # '90s
    r"|^'(?i:s|m|d|ll|re|ve|em|til|cause|tis|twas|n|\d\ds)(?!\w)"
    # flags and other emoji
    rf"|[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}{_SYMBOLS}(?:\u200d{_EMOJI}{_SYMBOLS})*"
    # @name, #tag, C# and F#
    r"|(?<![\w&])(?:@\w+|#\w*[^\W\d_][\w\u0900-\u0dff]*)|(?<!\w)[A-Z]#(?!\w)"
    # words, with what stands inside of them: 1,5 and 10:30, AT&T, o'clock, p.m. and
    # e.g. with the stop behind them
    rf"|(?:{_IN_WORD}|\.(?={_IN_WORD}))(?:{_IN_WORD}|(?<=\d)[,:،](?=\d)|(?<=[^\W\d_])&(?=[^\W\d_])|'(?={_IN_WORD})|\.(?!\.)"
    r"|(?<=\w)\*+(?=\w))*"
    # rows of the same mark
    r"|''|``|\.{2,}|\*+|\S"
)
# English: do|n't, she|'s, can|not, gon|na
_CONTRACTION = re.compile(
    r"(.+?)(n't|'(?:s|m|d|ll|re|ve))(\.?)|(can)(not)|(gim|lem)(me)|(gon|wan)(na)|(got)(ta)",
    re.IGNORECASE,
)
_DASHES = re.compile(r"(-{2,})")
# characters before a full stop that are looked at: two words
_LONGEST_BEFORE = 80
_OPENING = "\"'“”„‟‘’‚«»‹›([{¿¡*"
_CLOSING = "\"'“”‘’«»‹›)\\]}*"
_FINAL = re.compile(rf"(?<=[^.])\.(?=(?:\[\d+\]|[{_CLOSING}–—-])*$)")
# where a sentence may end; no part is tried again from within a row of marks, which
# would take the square of its length
_END = re.compile(
    rf"(?<![.?!…])(?P<mark>[.?!…{_OTHER_ENDS}]++)(?P<closed>(?:\[\d+\]|[{_CLOSING}]|\s[»”\")](?=\s|$))*+)"
    r"(?=\s+(?P<next>\S+))"
)
_WITH_DOTS = re.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}")
# of any script, vowel signs too, which \w leaves out
_LETTER = rf"[^\s!-/:-@\[-`{{-~{_MARKS}]"
_APART = re.compile(
    r"(?:^|\s)[,.،؛](?=\s|$)"
)  # the full stops of other scripts stand apart in raw text, too
_APART_IN_FRENCH = re.compile(r"(?:^|\s)[;:!?\"](?=\s|$)")  # in raw French, too
_ATTACHED = re.compile(
    rf"{_LETTER}[,;:!?{_MARKS}](?=\s|$)|{_LETTER}\.(?=\s*$)|(?:^|\s)\"{_LETTER}|{_LETTER}\"(?=\s|$)",
    re.MULTILINE,
)
# A word with a comma, question mark or another mark attached to its end; full stops and
# colons aside. `&quot;`, `&#91;` and `&apos;&apos;` are words of some tokenisers, and
# transcripts have `no:`.
WITH_MARK = re.compile(rf"(?!\S*&#?\w+;$)\S*{_LETTER}[,;!?{_MARKS}]")
_SENTENCE_END = re.compile(rf"[:;…{SENTENCE_ENDS}][\"'”’)\]]*\s*$")


def plain_text(text: str) -> str:
    """Text without HTML entities (twice: dumps have `&amp;quot;`)."""
    for _ in range(2 if "&" in text else 0):
        text = _ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    return text


def tokenise_sentence(text: str) -> list[str]:
    """The words of one sentence of raw text; [] for white space."""
    pieces = plain_text(text).replace("\u200b", " ").split()
    words: list[str] = []
    last = next(
        (
            place
            for place in reversed(range(len(pieces)))
            if any(map(str.isalnum, pieces[place]))
        ),
        0,
    )
    for place, piece in enumerate(pieces):
        words += _words(piece, place >= last)
    return words


@lru_cache(maxsize=1 << 17)
def _words(piece: str, is_last: bool) -> tuple[str, ...]:
    """The words of what stands between two spaces; a full stop at the end of the
    `is_last` one stands alone.
    """
    piece = _COMMA_BELOW.sub(",", piece).translate(_STRAIGHT)
    if '"' in piece:
        piece = _IN_ACRONYM.sub(rf"\1{_GERSHAYIM}", piece)
    stop = None
    if is_last and (stop := _FINAL.search(piece)):
        piece, behind = piece[: stop.start()], piece[stop.end() :]
    words: list[str] = []
    for token in _TOKEN.findall(piece):
        if (contraction := _CONTRACTION.fullmatch(token)) is not None:
            first, second, *dot = filter(None, contraction.groups())
            words += [first, second + "".join(dot)]
        else:
            words += filter(None, _DASHES.split(token))
    words = [
        '"' if word in ("``", "''") else word.replace(_GERSHAYIM, '"') for word in words
    ]
    return (*words, ".", *_TOKEN.findall(behind)) if stop else tuple(words)


def tokenise_paragraph(
    text: str, split: Callable[[str], Sequence[str]]
) -> list[list[str]]:
    """The sentences of a paragraph of raw text, as words; `split` cuts it (see
    `sentence_splitter`).
    """
    sentences: list[list[str]] = []
    for sentence in split(plain_text(text)):
        words = tokenise_sentence(sentence)
        if sentences and not any(
            character.isalnum() for word in words for character in word
        ):
            sentences[-1] += words  # a stray mark, such as the "!" of "What?!"
        elif words:
            sentences.append(words)
    return sentences


def sentence_splitter(sample: str) -> Callable[[str], Sequence[str]]:
    """A function that cuts a paragraph into sentences, its abbreviations learned from
    `sample` (raw text).
    """
    abbreviations = ABBREVIATIONS
    if len(sample) >= SMALLEST_TRAINING_TEXT:
        trainer = import_module("nltk.tokenize.punkt").PunktTrainer()
        trainer.train(sample.translate(_STRAIGHT), finalize=False)
        trainer.finalize_training()
        abbreviations = abbreviations | (
            trainer.get_params().abbrev_types - _BEFORE_NUMBERS
        )

    def split(text: str) -> list[str]:
        sentences = []
        start = 0
        for end in _END.finditer(text):
            if _ends_sentence(
                text[max(start, end.start() - _LONGEST_BEFORE) : end.start()],
                end,
                abbreviations,
            ):
                sentences.append(text[start : end.end()])
                start = end.end()
        return [*sentences, text[start:]]

    return split


def _ends_sentence(
    before: str, end: re.Match[str], abbreviations: frozenset[str]
) -> bool:
    """Whether a sentence ends at a mark, from what stands `before` it in the sentence,
    and the word behind.
    """
    following = end["next"].lstrip(_OPENING)
    goes_on = following[:1].islower()
    following = following.rstrip(".,:;!?").lower()
    if end["mark"] != ".":
        return not (
            goes_on and (end["closed"] or end["mark"][-1] in ".…")
        )  # "Why?" he asked
    *words, word = before.lower().split() or [""]
    word = word.lstrip(_OPENING)
    if (
        word.isdecimal()
    ):  # an ordinal number of German, Danish, Czech, … or a number of a list
        ordinal = len(word) < 3 and (
            following in _MONTHS or (words and words[-1] in _BEFORE_ORDINALS)
        )
        return not (goes_on or ordinal or not words)
    if following[:1].isdecimal() and word in _BEFORE_NUMBERS:
        return False
    initial = len(word) == 1 and word.isalpha()
    if not (initial or word in abbreviations or _WITH_DOTS.fullmatch(word)):
        return True
    return (
        not goes_on
        and not (initial and word != "i")
        and word not in _TITLES
        and following in _STARTERS
    )


def looks_tokenised(sample: str) -> bool:
    """Whether text is tokenised: more of its `, ; : ! ? "` and final full stops stand
    apart than touch a word.

    Of `; : ! ? "` that stand apart, which they do in raw French, ten count as one: they
    decide in text of short questions alone. Marks of other scripts count where they
    touch a word, and their commas where they stand apart, too. Text without any such
    mark counts as raw (tokenising it again changes nothing).
    """
    apart = len(_APART.findall(sample)) + len(_APART_IN_FRENCH.findall(sample)) / 10
    return apart > len(_ATTACHED.findall(sample))


def looks_wrapped(lines: Sequence[str]) -> bool:
    """Whether raw lines are paragraphs wrapped to a width, so that sentences run on
    over line ends.

    They are when most lines that another line follows end in the middle of a sentence,
    and lines are of a like width (median from 45 characters on, 95 % at most 120).
    """
    followed = [
        line for line, after in pairwise(lines) if line.strip() and after.strip()
    ]
    if len(followed) < 2:
        return False
    lengths = sorted(len(line.rstrip()) for line in followed)
    open_ends = sum(not _SENTENCE_END.search(line) for line in followed)
    middle = lengths[len(lengths) // 2]
    wide = lengths[int(0.95 * (len(lengths) - 1))]
    return open_ends > len(followed) / 2 and middle >= 45 and wide <= 120
