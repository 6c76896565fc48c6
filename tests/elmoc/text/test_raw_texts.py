"""Raw texts: the words of a string, and where each stands in it."""

import html
import re
from itertools import pairwise

import pytest
from elmoc.errors import InputError
from elmoc.text.raw_texts import tokenise_text, word_offsets
from elmoc.text.tokenizer import sentence_splitter, tokenise_paragraph
from hypothesis import example, given, settings
from hypothesis import strategies as st

# What the tokenizer divides, joins or replaces, side by side with ordinary words.
PARTS = [
    *("word", "can't", "“Hi”", "''yes''", "``no``", "‚low‘", "1‚5", "a--b", "p.m.", "#tag", "U.S.", "no. 5", "I"),
    *("&amp;", "&quot;", "&amp;quot;", "&amp;amp;quot;", "&#65;", "S&reggae;", "\ufeff", "wo\u2060rd", 'שו"ת'),
    *("New York", "New  \t York", "New\nYork", "___", "\uffff", "#rock’n’roll", "<“a\u2060”>", "#a\ufeffb"),
    *(" ", "  ", "\n", "\n\n", ".", "?!", "…", "X", "_", '"', "'", "`", "‘‘", "’’", "&", "😀", "é", "中", "\u200b"),
]
KEEP = [re.compile(r"New\s+York|#[^\s&]+"), re.compile(r"<“.*?>")]


def plain(text: str) -> str:
    """A piece of text as its word is: entities and quotation marks replaced, marks without a width left out."""
    for _ in range(4):
        text = html.unescape(text.replace("&reg", "&amp;reg"))
    text = re.sub("[\ufeff\u2060\u200b\uffff]", "", text).replace("``", '"')
    text = re.sub("[“”„‟״]", '"', re.sub("[‘’‚‛]", "'", text)).replace("''", '"')
    return re.sub(r"\s+", "_", text)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
@example("‘‘“")
@example("The ___ sat on a _ mat.")
def test_each_word_stands_where_it_says(text: str) -> None:
    words = [word for sentence in tokenise_text(text, KEEP) for word in sentence]
    offsets = word_offsets(text, words)
    assert len(offsets) == len(words)
    for word, (start, end) in zip(words, offsets, strict=True):
        piece = text[start:end]
        assert piece == piece.strip()
        assert plain(piece) in (plain(word), plain(word.replace(",", "'")))
    # In order, but that several words may be of one entity.
    assert all(after[0] >= before[1] or after == before for before, after in pairwise(offsets))


def test_a_text_is_tokenised_as_a_file_of_it() -> None:
    text = "Mr. Smith can't come.\ufeff He's\x0cill.\r\nNew\u2028line\n\nA new paragraph."
    expected = ["Mr. Smith ca n't come .", "He 's ill .", "New line", "A new paragraph ."]
    assert [" ".join(words) for words in tokenise_text(text)] == expected
    line = "This is a line of a text. It is wrapped to a width of letters, and goes on in the"
    wrapped = f"{line}\n{line}\n{line} next. End.\n\nAnother paragraph."
    joined = tokenise_paragraph(f"{line} {line} {line} next. End.", sentence_splitter(""))
    assert tokenise_text(wrapped) == [*joined, ["Another", "paragraph", "."]]
    assert tokenise_text("I love New\nYork.", KEEP) == [["I", "love", "New"], ["York", "."]]
    assert tokenise_text("I love New York.", KEEP) == [["I", "love", "New_York", "."]]


def test_errors() -> None:
    with pytest.raises(InputError, match=r"^text 3 holds text of a script without spaces"):
        tokenise_text("这是一个没有空格的句子" * 3, name="text 3")
    with pytest.raises(ValueError, match="'dog' does not stand"):
        word_offsets("the cat", ["the", "dog"])
