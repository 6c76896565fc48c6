"""Tokenising: how the raw text of a file becomes tokenised sentences.

Raw text: blank lines separate documents (or paragraphs) and stay document boundaries.
Lines wrapped to a width are joined first (decided once a file, see `looks_wrapped`),
any other line is split into sentences on its own. Text that is tokenised already passes
through line for line. That is decided once a file, from its first megabyte: it is
tokenised when more of its punctuation stands apart than touches a word
(`looks_tokenised`). The output counts as tokenised, so tokenising it again changes
nothing. Byte order marks are left out wherever they stand, and the lines `<doc …>` and
`</doc>` of WikiExtractor are blank lines. Text of scripts without spaces between words
is refused, unless it is divided into words by spaces: then it counts as tokenised.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, groupby

from data_scripts.parts.workers import parallel_map
from elmoc.batches import buffered
from elmoc.errors import InputError, say, warn
from elmoc.files.compression import AnyPath
from elmoc.text.documents import (
    TextRange,
    check_tokenised,
    reader_of,
)
from elmoc.text.options import Answer, RawTextOptions
from elmoc.text.scripts import unspaced_problem
from elmoc.text.tokenizer import (
    BYTE_ORDER_MARK,
    SENTENCE_ENDS,
    looks_tokenised,
    looks_wrapped,
    sentence_splitter,
    tokenise_paragraph,
)

# Characters of a printed list of files.
_LONGEST_LIST = 300
# Characters of the beginning: enough to learn a language's abbreviations from.
SAMPLE_CHARACTERS = 1_000_000
# Characters that a worker is given at once.
_BLOCK_CHARACTERS = 1 << 18
# Characters that are tokenised at once, which takes a hundred times their memory.
_LONGEST_PARAGRAPH = 1 << 20
# The last place in a text where a sentence seems to end.
_LAST_END = re.compile(rf".*[{SENTENCE_ENDS}](?= )", re.DOTALL)
_OF_WIKIEXTRACTOR = re.compile(r"\s*(?:<doc\s+id=.*>|</doc>)\s*")


class Tokeniser:
    """What the lines of one file become; abbreviations are learned from its beginning.

    Args:
        text: the file.
        tokenised: whether its text is tokenised already.
        wrapped: whether its lines are wrapped to a width.
        keep: see `RawTextOptions`.

    Raises:
        InputError: the file cannot be read; it is raw text without spaces between
            words; a pattern cannot be used.

    text: the file.
    tokenised: its lines pass as they are.
    wrapped: its lines are joined, where they are not tokenised.
    keep: what it was made with.
    kind: what is printed of it.
    workers: processes that share its blocks.
    """

    workers = 1

    def __init__(
        self,
        text: TextRange,
        *,
        tokenised: Answer,
        wrapped: Answer,
        keep: Sequence[str],
    ) -> None:
        self.text = text
        self.keep = keep
        self._keep = list(map(_compiled, keep))
        lines = _sample(text)
        sample = "\n".join(lines)
        if tokenised != "yes":
            self._require_spaces(sample)
        self.tokenised = tokenised == "yes" or (
            tokenised == "auto"
            and (reader_of(text.path).is_tokenised(text) or looks_tokenised(sample))
        )
        self.wrapped = wrapped == "yes" or (wrapped == "auto" and looks_wrapped(lines))
        how = "wrapped: its lines are joined" if self.wrapped else "not wrapped"
        self.kind = "tokenised already" if self.tokenised else f"raw text, {how}"

    def lines(self, lines: Iterable[str]) -> Iterator[str]:
        """The tokenised lines that lines of the file, or of a part of it, become."""
        blocks = parallel_map(self.tokenise, self.blocks(lines), self.workers)
        return chain.from_iterable(blocks)

    def blocks(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """Lines of the file in blocks, each of which can be tokenised by itself."""
        lines = map(_without_markup, lines)
        lines = lines if self.tokenised else _paragraphs(lines, self.wrapped)
        return buffered(lines, lambda line: len(line) + 1, most=_BLOCK_CHARACTERS)

    @cached_property
    def _split(self) -> Callable[[str], Sequence[str]]:
        """Cuts a paragraph into sentences. It is made where it is first needed, since
        learning takes seconds.
        """
        return sentence_splitter("\n".join(_sample(self.text)))

    def tokenise(self, block: list[str]) -> list[str]:
        """The sentences of a block, as lines; "" where a document ends."""
        if self.tokenised:
            return block
        self._require_spaces("\n".join(block))
        lines = []
        for paragraph in block:
            found = tokenise_paragraph(paragraph, self._split, self._keep)
            lines += [" ".join(words) for words in found] if paragraph else [""]
        return lines

    def _require_spaces(self, text: str) -> None:
        """Raise an `InputError` where spaces do not divide a text into words."""
        problem = unspaced_problem(text)
        if problem:
            raise InputError(
                f"{self.text.path} {problem}, and pass what it writes with "
                "--tokenised yes"
            )


def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of `keep`.

    Raises:
        InputError: it is no regular expression.
    """
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise InputError(
            f"--keep {pattern} is no regular expression: {error}"
        ) from error


def tokenisers_of(
    texts: Collection[TextRange], options: RawTextOptions, wrapped: Answer = "auto"
) -> list[Tokeniser]:
    """The tokenisers of files; printed lines say which files are raw text.

    Raises:
        InputError: see `Tokeniser`; or a file is not of the kind that it seems to be.
    """
    check_tokenised(texts, tell=options.tokenised == "yes")
    found = [
        Tokeniser(text, tokenised=options.tokenised, wrapped=wrapped, keep=options.keep)
        for text in texts
    ]
    for kind in dict.fromkeys(each.kind for each in found):
        files = [each.text.path for each in found if each.kind == kind]
        say(f"{listed(files)}: {kind}")
    if options.keep and all(each.tokenised for each in found):
        warn("keep acts on raw text alone")
    return found


def listed(files: Collection[AnyPath]) -> str:
    """The names of files; as many as fit in a line, and the number of all."""
    names = ", ".join(map(str, files))
    fits = len(names) <= _LONGEST_LIST
    return names if fits else f"{names[:_LONGEST_LIST]}… ({len(files):,} files)"


def _sample(text: TextRange) -> list[str]:
    """The lines at the beginning of a file, by which it is judged."""
    lines = reader_of(text.path).sample(text, SAMPLE_CHARACTERS)
    return list(map(_without_markup, lines))


def _without_markup(line: str) -> str:
    """A line without byte order marks; "" for one of WikiExtractor, which begins or
    ends an article.
    """
    line = line.replace(BYTE_ORDER_MARK, "")
    return "" if _OF_WIKIEXTRACTOR.fullmatch(line) else line


def _paragraphs(lines: Iterable[str], wrapped: bool) -> Iterator[str]:
    """Lines, or the joined lines between blank lines; "" for every blank line.

    A paragraph of more than `_LONGEST_PARAGRAPH` is cut.
    """
    waiting = ""
    # The blank line at the end closes the last paragraph.
    for line in chain(lines, [""]):
        text = line.strip()
        waiting += f" {text}"
        while len(waiting) > _LONGEST_PARAGRAPH:
            end = _place_to_cut(waiting)
            yield waiting[:end].strip()
            waiting = waiting[end:]
        if text and wrapped:
            continue
        if waiting.strip():
            yield waiting.strip()
        if not text:
            yield ""
        waiting = ""


def _place_to_cut(text: str) -> int:
    """Where a long paragraph is cut: where a sentence seems to end, else between words,
    else anywhere.
    """
    end = _LAST_END.match(text, 0, _LONGEST_PARAGRAPH)
    # From 1 on, since a paragraph in the making begins with a blank.
    between_words = text.rfind(" ", 1, _LONGEST_PARAGRAPH)
    return (end and end.end()) or between_words + 1 or _LONGEST_PARAGRAPH


def single_blank_lines(lines: Iterable[str]) -> Iterator[str]:
    """The lines with one blank line where there were several, and none at the start or
    end.
    """
    documents = (each for has_text, each in groupby(lines, key=bool) if has_text)
    for number, document in enumerate(documents):
        if number:
            yield ""
        yield from document
