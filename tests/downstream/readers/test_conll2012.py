"""CoNLL-2012 documents: read whole, and refused with their line where they are damaged."""

from pathlib import Path

import pytest
from downstream.readers.columns import ColumnSentence, Span
from downstream.readers.conll2012 import COREFERENCE, SPEAKER, WORD, Document, arguments_of, read_documents
from elmoc.errors import InputError

# written as OntoNotes is: spaces align the columns; `(3` and `(1` open on one word, `3)` closes before `1)`
TWO_PARTS = """\
#begin document (bn/x/00/x_0001); part 000
bn/x/00/x_0001   0   0      The    DT   (TOP(S(NP*     -    -   -   Ada     *     (ARG0*        *   (1|(3
bn/x/00/x_0001   0   1    girls   NNS           *)     -    -   1   Ada     *          *)       *      3)
bn/x/00/x_0001   0   2     gave   VBD        (VP*    give  01   -   Ada     *        (V*)       *       -
bn/x/00/x_0001   0   3       up    RP        (PRT*)    -    -   -   Ada     *      (C-V*)       *       1)
bn/x/00/x_0001   0   4  talking   VBG      (S(VP*)   talk  01   -   Ada     *     (ARG1*)    (V*)     (1)
bn/x/00/x_0001   0   5        .     .          *))     -    -   -   Ada     *          *        *       -

bn/x/00/x_0001   0   0      Yes    UH   (TOP(INTJ*))   -    -   -   Bob     *   (2)

#end document
#begin document (bn/x/00/x_0001); part 012
bn/x/00/x_0001   12   0      No    UH   (TOP(INTJ*))   -    -   -     -     *    -
#end document
"""


def read(tmp_path: Path, text: str) -> list[Document]:
    path = tmp_path / "documents.gold_conll"
    path.write_text(text, encoding="utf-8")
    return read_documents(path, arguments=True)


def mentions_of(sentence: ColumnSentence) -> list[Span]:
    return sentence.bracketed(COREFERENCE, clusters=True)


def one_sentence(*cells: tuple[str, ...]) -> str:
    """A document of one sentence; each word has these cells of arguments and coreference."""
    rows = [f"d\t0\t{i}\tw{i}\tXX\t*\t-\t-\t-\t-\t*\t" + "\t".join(row) for i, row in enumerate(cells)]
    return "\n".join(["#begin document (d); part 000", *rows, "#end document", ""])


def test_documents_of_aligned_columns(tmp_path: Path) -> None:
    first, second = read(tmp_path, TWO_PARTS)
    assert first.heading == "#begin document (bn/x/00/x_0001); part 000"
    assert second.heading == "#begin document (bn/x/00/x_0001); part 012"
    sentence, yes = first.sentences
    assert sentence.column(WORD) == ["The", "girls", "gave", "up", "talking", "."]
    assert sentence.lines == [2, 3, 4, 5, 6, 7]
    assert sentence.column(SPEAKER) == ["Ada"] * 6
    assert sentence.column(6)[2] == "give"
    assert arguments_of(sentence, first) == [
        [Span("ARG0", 0, 1), Span("V", 2, 2), Span("C-V", 3, 3), Span("ARG1", 4, 4)],
        [Span("V", 4, 4)],
    ]
    assert mentions_of(sentence) == [Span("1", 0, 3), Span("3", 0, 1), Span("1", 4, 4)]
    assert (yes.column(WORD), arguments_of(yes, first), yes.lines) == (["Yes"], [], [9])
    assert mentions_of(yes) == [Span("2", 0, 0)]


def test_mentions_of_one_cluster_inside_each_other(tmp_path: Path) -> None:
    text = one_sentence(("(5",), ("(5|(7)",), ("5)|(5)",), ("5)",))
    [document] = read(tmp_path, text)
    # a closing bracket ends the mention that was opened last
    assert mentions_of(document.sentences[0]) == [Span("5", 0, 3), Span("5", 1, 2), Span("7", 1, 1), Span("5", 2, 2)]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("#begin document (bn/x/00/x_0001); part 000\n", "", 10),
        ("\n#end document\n#begin", "\n#begin", 11),
        ("    -\n#end document\n", "    -\n", 13),
        (" (V*)       *      ", " (V*)       *   *  ", 4),
        ("#begin document (bn/x/00/x_0001); part 012\n", "#end document\n", 12),
        # arguments
        ("          *)       *      3)", "          *       *      3)", 2),
        ("(C-V*)", "C-V*)", 5),
        ("     (ARG1*)    (V*) ", "     (ARG1*)    *) ", 6),
        # mentions
        ("      3)\n", "      4)\n", 3),
        ("      3)\n", "       -\n", 2),
        ("     (1)\n", "       1\n", 6),
        ("   (1|(3\n", "   (1||(3\n", 2),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int) -> None:
    assert old in TWO_PARTS
    with pytest.raises(InputError, match=rf"documents\.gold_conll, line {line}: ") as error:
        all_spans(read(tmp_path, TWO_PARTS.replace(old, new, 1))[0])
    assert len(str(error.value)) < 500


def all_spans(document: Document) -> list[Span]:
    sentence = document.sentences[0]
    return [*mentions_of(sentence), *(span for spans in arguments_of(sentence, document) for span in spans)]


def test_files_without_the_words_are_refused(tmp_path: Path) -> None:
    text = one_sentence(("*", "-"), ("*", "-"))
    with pytest.raises(InputError, match=r"\[WORD\]"):
        read(tmp_path, text.replace("w0", "[WORD]").replace("w1", "[WORD]"))
    assert read(tmp_path, text.replace("w0", "[WORD]"))[0].sentences[0].column(WORD) == ["[WORD]", "w1"]
