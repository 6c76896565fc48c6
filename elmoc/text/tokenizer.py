"""Tokenizer: raw text to sentences of words, in any language that separates words by
spaces, without downloads.

Words are those of the Penn Treebank (English contractions are split: `do n't`, `can
not`), found by one pattern in the pieces between spaces; what stays whole and what
stands alone is said at `_TOKEN`. Quotes are straight (“ ” „ become `"`, ‘ ’ become
`'`), parentheses stay as they are, and HTML entities become what they stand for.
Sentences end at full stops, question marks and exclamation marks, of any script
(`SENTENCE_ENDS`), unless what stands before and behind says otherwise. Abbreviations
are common ones and those that Punkt (NLTK) learns from the text itself. What matches a
pattern of the user (`keep`) is one word.
"""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from html.entities import html5
from importlib import import_module
from itertools import chain, pairwise

from elmoc.text.scripts import UNSPACED


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Abbreviations that stand before a name: no sentence ends behind them.
_TITLES = _listed(
    """
    mr mrs ms messrs mme mlle dr prof st sr rev hon capt col lt gen maj sgt cpl adm gov
    sen rep pres supt mt ft hr
    """
)
ABBREVIATIONS = _TITLES | _listed(
    """
    jr esq vs viz cf al ed eds vol vols pp fig figs nos dept univ assn bros inc ltd co
    corp approx est e.g i.e u.s jan feb mar apr jun jul aug sep sept oct nov dec mon tue
    wed thu fri u.k u.n a.m p.m ph.d d.c z.b d.h usw
    """
)
# Words that are abbreviations before a number alone: No. 5, p. 12, Nr. 3, op. 27.
_BEFORE_NUMBERS = _listed(
    """
    no nos nr p pp vol vols ch chap art sec fig figs op eq num bd kap abs s n c ca v tab
    """
)
# English words that begin a sentence behind an abbreviation which often ends one, as
# `p.m.` and `Inc.` do.
_STARTERS = _listed(
    """
    the a an he she it they we i you this that these those there but and in on at when
    if his her then so after as what how why who my our their its
    """
)
# German words between which and a noun an ordinal number stands, and months: am 3. Mai,
# die 1. Bundesliga.
_BEFORE_ORDINALS = _listed(
    """
    am im vom zum zur beim ab seit bis der die das den dem des ein eine einer einem
    jeder jede jedes
    """
)
_MONTHS = _listed(
    """
    januar jänner februar märz april mai juni juli august september oktober november
    dezember
    """
)
# Unicode's property Sentence_Terminal up to U+FFFF, which `re` does not know, without
# `.?!`; and the shad of Tibetan.
_OTHER_ENDS = (
    r"\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965"
    r"\u0f0d-\u0f12\u104a\u104b\u1362\u1367\u1368\u166e\u1735\u1736\u17d4\u17d5\u1803"
    r"\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f\u1b7d-\u1b7f"
    r"\u1c3b\u1c3c\u1c7e\u1c7f\u2024\u203c\u203d\u2047-\u2049\u2cf9-\u2cfb\u2e2e\u2e3c"
    r"\u2e53\u2e54\u2e60\u2e61\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce"
    r"\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe12\ufe15\ufe16\ufe52"
    r"\ufe56\ufe57\uff01\uff0e\uff1f\uff61"
)
# What is left of Terminal_Punctuation: commas, colons and the like.
_OTHER_COMMAS = (
    r"\u037e\u0387\u05c3\u060c\u061b\u0703-\u070a\u070c\u07f8\u0830-\u0835\u0838\u083a-"
    r"\u083c\u085e\u0e5a\u0e5b\u0f08\u1361\u1363-\u1366\u16eb-\u16ed\u17d6\u17da\u1802"
    r"\u1804\u1805\u1808\u1b5d\u1c3d-\u1c3f\u2e41\u2e4c\u2e4e\u2e4f\u3001\ua4fe\ua60d"
    r"\ua6f4-\ua6f6\ua9c7\uaadf\ufe50\ufe51\ufe54\ufe55\uff0c\uff1a\uff1b\uff64"
)
# The last character of a sentence, as in a class of a pattern.
SENTENCE_ENDS = f".?!{_OTHER_ENDS}"
# Other marks end a sentence behind letters of one script: the question mark of Greek,
# `:` for the full stop of Armenian, `::` and ፡፡ for that of Ethiopic.
_ENDS_OF_SCRIPTS = (
    r"(?<=[\u0300-\u036f\u0370-\u03ff\u1f00-\u1fff][;\u037e])|(?<=[\u0531-\u0587]:)"
    r"|(?<=[\u1200-\u135f][:\u1361])[:\u1361]"
)
# Full stops of scripts, later than U+0530, beside which `.` marks an abbreviation.
_FULL_STOPS = "։۔।።"
# Characters of text; fewer teach Punkt more wrong abbreviations than right ones.
SMALLEST_TRAINING_TEXT = 50_000

# No part of the text; where files were joined, it stands inside of it, too.
BYTE_ORDER_MARK = "\ufeff"
# The mark of Hebrew acronyms, for which `"` is written most often.
_GERSHAYIM = "\u05f4"
# Quotation marks become straight. The byte order mark and the word joiner are nothing.
STRAIGHT = str.maketrans(
    dict.fromkeys("“”„‟" + _GERSHAYIM, '"')
    | dict.fromkeys("‘’‚‛", "'")
    | dict.fromkeys((BYTE_ORDER_MARK, "\u2060"))
)
# Stands between blanks for a word that is kept, while the others are found: a letter,
# which begins a sentence, and what Unicode keeps out of texts.
KEPT = "X\uffff"
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z]\w{1,30});")
# The quotation mark ‚ written for a comma.
_COMMA_BELOW = re.compile(r"‚(?=\s|$)|(?<=\d)‚(?=\d)")
# Letters, and the points of vowels.
_HEBREW = "[\u05b0-\u05bd\u05bf\u05c1\u05c2\u05c7\u05d0-\u05f2]"
# But after prefixes (and, in, the, …) and before two letters `"` begins a quotation.
_IN_ACRONYM = re.compile(
    rf"(?<!{_HEBREW})"
    rf'(?![\u05d1\u05d4\u05d5\u05db\u05dc\u05de\u05e9]+"{_HEBREW}{{2}})'
    rf'({_HEBREW}+)"(?={_HEBREW})'
)
# Of other scripts and languages.
_MARKS = f"…¿¡·{_OTHER_COMMAS}{_OTHER_ENDS}"
_EMOJI = "[\u231a-\u23ff\u2600-\u27bf\u2b05-\u2b55\U0001f000-\U0001faff]"
# Signs that change the emoji before them: colours of skin, presentation.
_SYMBOLS = "[\ufe0f\u20e3\U0001f3fb-\U0001f3ff]*"
# A character of a word: no space, no mark that stands alone, no emoji.
_IN_WORD = rf"[^\s.,:;?!\"'()\[\]{{}}<>@#$%&*£€¥«»‹›–—`{_MARKS}{_EMOJI[1:-1]}]"
# One word of a piece without spaces: the first alternative that fits.
_TOKEN = re.compile(
    # URLs, without punctuation at their end
    rf"(?:https?://|ftp://|www\.)[^\s<>\"]*[^\s<>\".,;:!?'()\[\]{{}}{_MARKS}]"
    # e-mail addresses, by RFC 5321's limit, without which `a.a.a…` took the square of
    # its length
    r"|\b[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+\b"
    # placeholders and tags, such as <unk>; <s> and </s> are marks of a corpus
    r"|</?(?!s>)[A-Za-z][\w-]*/?>"
    # smileys
    r"|(?<!\w)(?:[<>]?[:;=][-'^o]?(?:\)+|\(+|[\[\]DPpO/\\|*3@{}])|[8xX]-[()D]"
    r"|[(\[][-']?[:;=](?!\S)|</?3+|\^[_.-]?\^|[oO]_[oO])(?!\w)"
    # the second parts of contractions, and what begins with an apostrophe: 's, 'em,
    # '90s
    r"|^'(?i:s|m|d|ll|re|ve|em|til|cause|tis|twas|n|\d\ds)(?!\w)"
    # flags and other emoji
    rf"|[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}{_SYMBOLS}(?:\u200d{_EMOJI}{_SYMBOLS})*"
    # @name, #tag, C# and F#
    r"|(?<![\w&])(?:@\w+|#\w*[^\W\d_][\w\u0900-\u0dff]*)|(?<!\w)[A-Z]#(?!\w)"
    # words, with the marks inside of them: 1,5 and 10:30, AT&T, o'clock, col·legi, p.m.
    # and e.g. with the stop behind them
    rf"|(?:{_IN_WORD}|\.(?={_IN_WORD}))(?:{_IN_WORD}|(?<=\d)[,:،](?=\d)"
    rf"|(?<=[^\W\d_])&(?=[^\W\d_])|['·\u0387](?={_IN_WORD})|\.(?!\.)|(?<=\w)\*+(?=\w))*"
    # rows of the same mark
    r"|''|``|\.{2,}|\*+|\u1361{2}|\S"
)
# English: do|n't, she|'s, can|not, gon|na.
_CONTRACTION = re.compile(
    r"(.+?)(n't|'(?:s|m|d|ll|re|ve))(\.?)"
    r"|(can)(not)|(gim|lem)(me)|(gon|wan)(na)|(got)(ta)",
    re.IGNORECASE,
)
_DASHES = re.compile(r"(-{2,})")
# Characters before a full stop that are looked at: two words.
_LONGEST_BEFORE = 80
_OPENING = "\"'“”„‟‘’‚«»‹›([{¿¡*"
_CLOSING = "\"'“”‘’«»‹›)\\]}*"
_FINAL = re.compile(rf"(?<=[^.])\.(?=(?:\[\d+\]|[{_CLOSING}–—-])*$)")
_END_MARK = f"[.?!…{_OTHER_ENDS}]"
# Where a sentence may end. It begins with a class of characters, which is searched for
# fast. No part is tried again from within a row of marks, which would take the square
# of its length.
_END = re.compile(
    rf"(?P<mark>[.?!…;:\u037e\u1361{_OTHER_ENDS}]"
    rf"(?:(?<={_END_MARK})(?<!{_END_MARK}.){_END_MARK}*+|{_ENDS_OF_SCRIPTS}))"
    rf"(?P<closed>(?:\[\d+\]|[{_CLOSING}]|\s[»”\")](?=\s|$))*+)"
    r"(?=\s+(?P<next>\S+))"
)
_WITH_DOTS = re.compile(r"(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}")
# Of any script, vowel signs too, which \w leaves out.
_LETTER = rf"[^\s!-/:-@\[-`{{-~{_MARKS}]"
# Full stops of other scripts stand apart in raw text, too.
_APART = re.compile(r"(?:^|\s)[,.،؛，、。](?=\s|$)")
# These stand apart in raw French, and spaces in raw Thai, too.
_APART_IN_SOME = re.compile(
    rf"(?:^|\s)[;:!?\"](?=\s|$)|(?<=[{UNSPACED}])\s(?=[{UNSPACED}])"
)
_ATTACHED = re.compile(
    rf"{_LETTER}[,;:!?{_MARKS}](?=\s|$)|{_LETTER}\.(?=\s*$)"
    rf"|(?:^|\s)\"{_LETTER}|{_LETTER}\"(?=\s|$)",
    re.MULTILINE,
)
# The end of a sentence, and such an end at that of a line.
_ANY_END = re.compile(f"[:;…{SENTENCE_ENDS}]")
_SENTENCE_END = re.compile(rf"{_ANY_END.pattern}[\"'”’)\]]*\s*$")


def plain_text(text: str) -> str:
    """Text without HTML entities (twice: dumps have `&amp;quot;`)."""
    for _ in range(2 if "&" in text else 0):
        text = ENTITY.sub(character_of, text)
    return text


def character_of(entity: re.Match[str]) -> str:
    """What an HTML entity stands for; as it is where there is none of this name, though
    the beginning may be one (`rock&reggae;`).
    """
    is_known = entity[0][1] == "#" or entity[0][1:] in html5
    return html.unescape(entity[0]) if is_known else entity[0]


def tokenise_sentence(text: str, keep: Sequence[re.Pattern[str]] = ()) -> list[str]:
    """The words of one sentence of raw text; [] for white space.

    Args:
        text: the sentence.
        keep: what matches one of them is a word, with `_` for white space in it.
    """
    return _words_of(*_without_kept(plain_text(text), keep))


def _without_kept(text: str, keep: Sequence[re.Pattern[str]]) -> tuple[str, list[str]]:
    """A text with `KEPT` for each word that is kept, and these words in order."""
    text = text.replace(KEPT[-1], "") if keep else text
    kept: list[str] = []
    parts: list[str] = []
    end = 0
    for match in _matches(keep, text):
        word = "_".join(match[0].split())
        kept += [word] if word else []
        parts += [text[end : match.start()], f" {KEPT} " if word else ""]
        end = match.end()
    return "".join([*parts, text[end:]]), kept


def _matches(patterns: Sequence[re.Pattern[str]], text: str) -> Iterator[re.Match[str]]:
    """What matches one of the patterns, from the left; of several matches at one place
    that of the first pattern.
    """
    found = [_next_match(pattern, text, 0) for pattern in patterns]
    while matches := list(filter(None, found)):
        first = min(matches, key=re.Match.start)
        yield first
        end = first.end()
        found = [
            _next_match(each.re, text, end) if each.start() < end else each
            for each in matches
        ]


def _next_match(
    pattern: re.Pattern[str], text: str, start: int
) -> re.Match[str] | None:
    """The first match from `start` on that is not of nothing."""
    return next(filter(re.Match.group, pattern.finditer(text, start)), None)


def _words_of(text: str, kept: list[str]) -> list[str]:
    """The words of a sentence, with the first ones of `kept`, which are taken from it,
    for `KEPT`.
    """
    # A zero-width space divides words of scripts without spaces.
    pieces = plain_text(text).replace("\u200b", " ").split()
    # Only marks stand behind the last piece with a letter or digit.
    backwards = range(len(pieces) - 1, 0, -1)
    last = next((n for n in backwards if any(map(str.isalnum, pieces[n]))), 0)
    found = (_words(piece, place >= last) for place, piece in enumerate(pieces))
    words = list(chain.from_iterable(found))
    return [kept.pop(0) if word == KEPT else word for word in words] if kept else words


@lru_cache(maxsize=1 << 17)
def _words(piece: str, is_last: bool) -> tuple[str, ...]:
    """The words of a piece between two spaces; a full stop at the end of the `is_last`
    one stands alone.
    """
    piece = _COMMA_BELOW.sub(",", piece).translate(STRAIGHT)
    if '"' in piece:
        piece = _IN_ACRONYM.sub(rf"\1{_GERSHAYIM}", piece)
    behind: list[str] = []
    stop = _FINAL.search(piece) if is_last else None
    if stop:
        behind = [".", *_TOKEN.findall(piece[stop.end() :])]
        piece = piece[: stop.start()]
    words: list[str] = []
    for token in _TOKEN.findall(piece):
        contraction = _CONTRACTION.fullmatch(token)
        if contraction:
            first, *second = filter(None, contraction.groups())
            words += [first, "".join(second)]
        else:
            words += filter(None, _DASHES.split(token))
    straight = ['"' if word in ("``", "''") else word for word in words + behind]
    return tuple(word.replace(_GERSHAYIM, '"') for word in straight)


def tokenise_paragraph(
    text: str,
    split: Callable[[str], Sequence[str]],
    keep: Sequence[re.Pattern[str]] = (),
) -> list[list[str]]:
    """The sentences of a paragraph of raw text, as words.

    Args:
        text: the paragraph.
        split: cuts it into sentences (see `sentence_splitter`).
        keep: see `tokenise_sentence`; no sentence ends inside.
    """
    sentences: list[list[str]] = []
    text, kept = _without_kept(plain_text(text), keep)
    for sentence in split(text):
        words = _words_of(sentence, kept)
        if sentences and not any(map(str.isalnum, "".join(words))):
            # A stray mark, such as the "!" of "What?!".
            sentences[-1] += words
        elif words:
            sentences.append(words)
    return sentences


def sentence_splitter(sample: str) -> Callable[[str], Sequence[str]]:
    """A function that cuts a paragraph into sentences.

    Args:
        sample: raw text from which abbreviations are learned (by Punkt).
    """
    abbreviations = ABBREVIATIONS
    if len(sample) >= SMALLEST_TRAINING_TEXT:
        punkt = import_module("nltk.tokenize.punkt")
        learned = punkt.PunktTrainer(sample.translate(STRAIGHT)).get_params()
        abbreviations = ABBREVIATIONS | (learned.abbrev_types - _BEFORE_NUMBERS)

    def split(text: str) -> list[str]:
        sentences = []
        start = 0
        has_full_stop = any(map(text.__contains__, _FULL_STOPS))
        for end in _END.finditer(text):
            before = text[max(start, end.start() - _LONGEST_BEFORE) : end.start()]
            is_dot = has_full_stop and end["mark"] == "." and before[-1:] > "\u0530"
            if not is_dot and _ends_sentence(before, end, abbreviations):
                sentences.append(text[start : end.end()])
                start = end.end()
        sentences.append(text[start:])
        return sentences

    return split


def _ends_sentence(
    before: str, end: re.Match[str], abbreviations: frozenset[str]
) -> bool:
    """Whether a sentence ends at a mark.

    Args:
        before: the text before the mark in the sentence.
        end: a match of `_END`.
        abbreviations: in lower case, without the stop at their end.
    """
    following = end["next"].lstrip(_OPENING)
    goes_on = following[:1].islower()
    following = following.rstrip(".,:;!?").lower()
    if end["mark"] != ".":
        # "Why?" he asked … and so on
        return not (goes_on and (end["closed"] or end["mark"][-1] in ".…;:"))
    *words, word = before.lower().split() or [""]
    word = word.lstrip(_OPENING)
    if word.isdecimal():
        # An ordinal number of German, Danish, Czech, … or the number of a list.
        in_phrase = words and words[-1] in _BEFORE_ORDINALS
        ordinal = len(word) < 3 and (following in _MONTHS or in_phrase)
        return not (goes_on or ordinal or not words)
    if following[:1].isdecimal() and word in _BEFORE_NUMBERS:
        return False
    initial = len(word) == 1 and word.isalpha()
    if not (initial or word in abbreviations or _WITH_DOTS.fullmatch(word)):
        return True
    stands_before_name = word in _TITLES or (initial and word != "i")
    return following in _STARTERS and not (goes_on or stands_before_name)


def looks_tokenised(sample: str) -> bool:
    """Whether text is tokenised: more of its `, ; : ! ? "` and final full stops stand
    apart than touch a word.

    Of `; : ! ? "` that stand apart, which they do in raw French, ten count as one: they
    decide in text of short questions alone. So do spaces between letters of scripts
    without spaces between words. Marks of other scripts count where they touch a word,
    and their commas where they stand apart, too. Text without any such
    mark counts as raw (tokenising it again changes nothing).
    """
    return _apart_or_touching(sample) > 0


def looks_raw(sample: str) -> bool:
    """Whether text is not tokenised: more of its marks touch a word than stand apart,
    as `looks_tokenised` counts them; false for text without any.
    """
    # Some tokenisers write `&quot;` for a quotation mark.
    return _apart_or_touching(plain_text(sample)) < 0


def _apart_or_touching(sample: str) -> float:
    """How many more marks stand apart than touch a word."""
    apart = len(_APART.findall(sample)) + len(_APART_IN_SOME.findall(sample)) / 10
    return apart - len(_ATTACHED.findall(sample))


def looks_wrapped(lines: Sequence[str]) -> bool:
    """Whether raw lines are paragraphs wrapped to a width, so that sentences run on
    over line ends.

    They are when most lines that another line follows end in the middle of a sentence,
    and lines are of a like width (median from 45 characters on, 95 % at most 120).
    Where fewer than a twentieth of them hold the end of a sentence, as in transcripts
    without punctuation, each is a sentence.
    """
    followed = [
        line for line, after in pairwise(lines) if line.strip() and after.strip()
    ]
    if len(followed) < 2:
        return False
    lengths = sorted(len(line.rstrip()) for line in followed)
    open_ends = sum(1 for line in followed if not _SENTENCE_END.search(line))
    ends = sum(1 for line in followed if _ANY_END.search(line))
    if open_ends <= len(followed) / 2 or ends < len(followed) / 20:
        return False
    middle = lengths[len(lengths) // 2]
    wide = lengths[int(0.95 * (len(lengths) - 1))]
    return middle >= 45 and wide <= 120
