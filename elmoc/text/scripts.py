"""Scripts: which text is written without spaces between words, and what divides it into
words.
"""

import re
from unicodedata import name

from elmoc.errors import shortened

# In classes of patterns, the blocks of scripts without spaces between words: those of
# Unicode's line break class SA (Thai, Lao, Myanmar, Khmer, Tai, Ahom), Tibetan, kana,
# bopomofo and ideographs.
UNSPACED = (
    r"\u0e00-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3005\u3007\u3041-\u312f"
    r"\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaadf"
    r"\uf900-\ufaff\uff66-\uff9d\U00011700-\U0001174f\U0001aff0-\U0001b16f"
    r"\U00020000-\U0003ffff"
)
_LETTER = re.compile(f"[{UNSPACED}]")
# By the first word of the names of its letters: a tool that finds the words of a
# script, and their length in divided text, at most, on average.
_CHINESE_OR_JAPANESE = ("jieba (Chinese) or fugashi (Japanese)", 3)
_SEGMENTERS = {
    "CJK": _CHINESE_OR_JAPANESE,
    "HIRAGANA": _CHINESE_OR_JAPANESE,
    "KATAKANA": _CHINESE_OR_JAPANESE,
    "THAI": ("pythainlp", 8),
    "LAO": ("laonlp", 8),
    "KHMER": ("khmernltk", 8),
    "TIBETAN": ("botok", 8),
}
# ICU knows words of other languages.
_OTHER = ("BreakIterator of PyICU", 8)
# Share of such letters in the characters of a text of which they are a considerable
# part.
_CONSIDERABLE = 0.1


def unspaced_problem(text: str) -> str:
    """What to tell of a text of which a considerable part is in scripts without spaces
    between words, unless spaces divide it all the same; else "".
    """
    letters = _LETTER.findall(text)
    if len(letters) <= _CONSIDERABLE * len(text):
        return ""
    pieces = filter(_LETTER.search, text.replace("\u200b", " ").split())
    longest, *others = sorted(pieces, key=len, reverse=True)
    script = name(letters[len(letters) // 2], "").partition(" ")[0]
    segmenter, length = _SEGMENTERS.get(script, _OTHER)
    # One word more, since a name or a quotation is no text.
    if len(letters) <= length * (len(others) + 2):
        return ""
    return (
        "holds text of a script without spaces between words, such as "
        f"{shortened(longest, 20)!r}: divide it into words first, e.g. by {segmenter}"
    )
