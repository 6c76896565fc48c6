"""Scripts: which text is written without spaces between words, and what divides it into
words.
"""

from collections import Counter
from itertools import chain
from typing import NamedTuple
from unicodedata import category, name

from elmoc.errors import shortened

_CHINESE_OR_JAPANESE = "jieba (Chinese) or fugashi (Japanese)"
# ICU knows the words of all these languages.
_OTHER = "BreakIterator of PyICU"
# Tools that find words, by script: the first word of the names that Unicode gives to
# its characters. They are the scripts of Unicode's line break class SA, those of
# ideographs, and Tibetan.
SEGMENTERS = {
    "CJK": _CHINESE_OR_JAPANESE,
    "HIRAGANA": _CHINESE_OR_JAPANESE,
    "KATAKANA": _CHINESE_OR_JAPANESE,
    "BOPOMOFO": _CHINESE_OR_JAPANESE,
    "THAI": "pythainlp",
    "LAO": "laonlp",
    "KHMER": "khmernltk",
    "TIBETAN": "botok",
    "MYANMAR": _OTHER,
    "AHOM": _OTHER,
    "TAI": _OTHER,
    "NEW": _OTHER,
}
# Characters of such scripts among those of a text of which they are a considerable
# part.
_CONSIDERABLE = 0.1
# Letters and vowel signs for each space, above which spaces do not divide words. In
# divided text these are 5 on average, in Burmese phrases 12, elsewhere more.
_LETTERS_A_SPACE = 8


class Unspaced(NamedTuple):
    """A considerable part of a text, in scripts without spaces between words.

    share: of the characters of the text.
    divided: whether spaces divide it into words all the same.
    problem: what to tell of the text where they do not.
    """

    share: float
    divided: bool
    problem: str


def unspaced_part(text: str) -> Unspaced | None:
    """The part of a text that is in scripts without spaces between words, if it is a
    considerable one. A zero-width space divides words, too.
    """
    counts: Counter[str] = Counter()
    own = set()
    for each in set(text):
        segmenter = SEGMENTERS.get(name(each, "").partition(" ")[0])
        # Letters and marks: neither digits nor punctuation.
        if segmenter is not None and category(each)[0] in "LM":
            counts[segmenter] += text.count(each)
            own.add(each)
    if not own:
        return None
    lines = [line.split() for line in text.replace("\u200b", " ").splitlines()]
    share = counts.total() / sum(map(len, chain.from_iterable(lines)))
    if share < _CONSIDERABLE:
        return None
    spaces = 0
    longest = ""
    for line in lines:
        pieces = [piece for piece in line if not own.isdisjoint(piece)]
        spaces += max(0, len(pieces) - 1)
        longest = max([longest, *pieces], key=len)
    # A word of Chinese has half as many letters as one of Thai.
    letters = counts.total() + counts[_CHINESE_OR_JAPANESE]
    return Unspaced(
        share=share,
        divided=letters <= _LETTERS_A_SPACE * (spaces + 1),
        problem="holds text of a script without spaces between words, such as "
        f"{shortened(longest, 20)!r}: divide it into words first, e.g. by "
        f"{max(counts, key=counts.__getitem__)}",
    )
