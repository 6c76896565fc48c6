"""Raw text: do the words of a text have marks attached, as before it was tokenised?"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from elmoc.corpus import BEGIN, END
from elmoc.files.text import read_lines
from elmoc.tokenizer import ends_in_full_stop, ends_in_mark

# words from which a text is judged that is not counted anyway
SAMPLE_WORDS = 100_000
# text is called raw from this share of words on, where it is about a tenth; in tokenised text it is near nothing
_MANY_WITH_MARK = 0.01
# as few words may be names (Yahoo!), of however few words
_FEW_WITH_MARK = 2
# letters of an abbreviation that is written in small letters; few have more
_LONGEST_ABBREVIATION = 3


def sample_lines(path: Path | str, characters: int) -> list[str]:
    """The first lines of a text until there are so many characters, and of each line no more than that."""
    sample: list[str] = []
    found = 0
    for line in read_lines(path):
        sample.append(line[:characters])
        found += len(line)
        if found >= characters:
            break
    return sample


def attached_marks(sentence: Sequence[str]) -> int:
    """How many words of a sentence end in a mark, the last one in a full stop, too, unless it may be an abbreviation.

    A capitalised or short word may (`Ave.`, `usw.`), where no other mark of the sentence is attached.
    """
    marks = sum(ends_in_mark(word) for word in sentence if not word[-1:].isalnum())
    if not sentence or not ends_in_full_stop(sentence[-1]):
        return marks
    stem = sentence[-1].removesuffix(".")
    return marks + (marks > 0 or (len(stem) > _LONGEST_ABBREVIATION and stem == stem.lower()))


def warn_of_raw_text(name: Path | str, *, words: int, with_mark: int) -> None:
    """Say so on standard error where a text looks raw, as many of its words have a mark attached."""
    if with_mark > max(_FEW_WITH_MARK, _MANY_WITH_MARK * words):
        print(
            f"warning: {with_mark / words:.1%} of the words of {name} end in a comma or another mark, as in text that "
            "is not tokenised: `python -m data_scripts.tokenize --tokenised no` makes words of them: give what it "
            "writes instead",
            file=sys.stderr,
        )


def warn_of_raw_types(name: Path | str, types: Iterable[str], counts: Iterable[int]) -> None:
    """`warn_of_raw_text` of a whole text, by the word types of its corpus and how often each occurs in it."""
    words = with_mark = 0
    for word, times in zip(types, counts, strict=True):
        if word not in (BEGIN, END):
            words += times
            with_mark += times * ends_in_mark(word)
    warn_of_raw_text(name, words=words, with_mark=with_mark)


def warn_of_raw_file(path: Path | str) -> None:
    """`warn_of_raw_text` of the beginning of a file with a sentence a line."""
    sentences = [line.split() for line in sample_lines(path, 5 * SAMPLE_WORDS)]
    warn_of_raw_text(path, words=sum(map(len, sentences)), with_mark=sum(map(attached_marks, sentences)))
