"""CoNLL columns: all their formats, and damaged data refused with file and line."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from downstream.tasks.ner.task import TASK, NerReaderOptions, TaggedSentence
from elmoc.errors import InputError

CONLL_2003 = """\
-DOCSTART- -X- -X- O

U.N. NNP I-NP I-ORG
official NN I-NP O
Rolf NNP I-NP I-PER
Ekeus NNP I-NP I-PER
Kofi NNP I-NP B-PER

-DOCSTART- -X- -X- O

Baghdad NNP I-NP I-LOC
"""


def read(path: Path, text: str | bytes, column: int = -1) -> list[TaggedSentence]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return TASK.read(path, NerReaderOptions(column=column), training=True)


def test_conll_2003(tmp_path: Path) -> None:
    first, second = read(tmp_path / "c", CONLL_2003)
    assert first.sentence.words == ("U.N.", "official", "Rolf", "Ekeus", "Kofi")
    assert first.tags == ["B-ORG", "O", "B-PER", "I-PER", "B-PER"], "IOB1 became BIO"
    assert (first.sentence.line, second.sentence.line) == (3, 11)
    assert second.tags == ["B-LOC"]


@pytest.mark.parametrize(
    "text",
    [
        "a\tO\nb\tB-X\n\nc\tO\n",
        "a\tO\nb\tB-X\n\nc\tO",
        "\n\na\tO\nb\tB-X\n\t\n \nc\tO\n\n\n",
        "a\tO\r\nb\tB-X\r\n\r\nc\tO\r\n",
        "a O\nb  B-X \n\nc O\n",
        "a\tO\nb\tB-X\n-DOCSTART-\tO\nc\tO\n",
    ],
)
def test_sentence_ends_and_separators(tmp_path: Path, text: str) -> None:
    sentences = read(tmp_path / "c", text)
    assert [sentence.sentence.words for sentence in sentences] == [("a", "b"), ("c",)]
    assert [sentence.tags for sentence in sentences] == [["O", "B-X"], ["O"]]


def test_types_may_hold_dashes_and_white_space_in_words_is_mended(tmp_path: Path) -> None:
    text = "x\u00a0y\tB-creative-work\n\tI-creative-work\nke s\tO\n\u2028\tO\n😀\u00a0\tO\n"
    (sentence,) = read(tmp_path / "c", text)
    assert sentence.sentence.words == ("x_y", "_", "ke_s", "_", "😀")
    assert sentence.tags == ["B-creative-work", "I-creative-work", "O", "O", "O"]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("more.conll", b"a O\n\nb X O\n", ", line 3"),
        ("long-cell.conll", b"a\t" + b"x" * 100_000 + b"\n", ", line 1"),
        ("commas.conll", b"Bo,X,B-PER\n", ", line 1: column 0 has the words: .*, and here is 'Bo,X,B-PER'"),
        ("table.conll", b"Sentence: 1,It,O\n,is,O\n", ", line 2: 1 columns .* divide columns, and here is ',is,O'"),
        ("blank.conll", b"\n \n\t\n", ""),
        ("documents.conll", b"-DOCSTART- O\n\n", ""),
    ],
)
def test_bad_files(tmp_path: Path, ten: Path, fails: Callable[..., str], name: str, content: bytes, line: str) -> None:
    bad = tmp_path / name
    bad.write_bytes(content)
    for arguments in (["sentences", "ner"], ["ner", "--train", ten, "--dev", ten, "--vectors", "random:1:4", "--test"]):
        message = fails(*arguments, bad)
        assert re.search(re.escape(str(bad)) + line, message)
        assert len(message) < 600


def test_missing_files_folders_and_columns(tmp_path: Path, ten: Path, fails: Callable[..., str]) -> None:
    assert "none.conll" in fails("sentences", "ner", tmp_path / "none.conll")
    assert str(tmp_path) in fails("sentences", "ner", tmp_path)
    for column in (2, 9):
        assert f"{ten}, line 1: there is no column {column}" in fails("sentences", "ner", ten, "--column", column)
    assert f"{ten}, line 1: column 0 has the words" in fails("sentences", "ner", ten, "--column", 0)
    assert "--column" in fails("sentences", "ner", ten, "--column", -2)


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path / "a.conll", b"\xef\xbb\xbfAda B-PER\n\xef\xbb\xbfx O\n")
    assert sentence.sentence.words == ("Ada", "\ufeffx")


GERMEVAL = """\
#\thttp://de.wikipedia.org/wiki/Manfred_Korfmann [2009-10-17]
1\tDie\tO\tO
2\tTU\tB-ORG\tO
3\tWien\tI-ORG\tB-LOC

#\thttp://example.org [2010-01-01]
1\t#\tO\tO
2\t1683\tB-OTHpart\tO
"""
NUMBERED = "0 -DOCSTART- -X- O\n\n0 EU NNP I-ORG\n1 rejects VBZ O\n\n0 Bonn NNP I-LOC\n"
DOCUMENTS = "a.txt\t0\tEU\tB-ORG\na.txt\t3\trejects\tO\n\nb.txt\t0\tBonn\tB-LOC\nb.txt\t0\t1683\tO\n"


@pytest.mark.parametrize(
    ("text", "options", "words", "tags"),
    [
        (GERMEVAL, {"column": 2}, "Die TU Wien | # 1683", "O B-ORG I-ORG | O B-OTHpart"),
        (GERMEVAL, {}, "Die TU Wien | # 1683", "O O B-LOC | O O"),
        (NUMBERED, {}, "EU rejects | Bonn", "B-ORG O | B-LOC"),
        (DOCUMENTS, {"word_column": 2}, "EU rejects | Bonn 1683", "B-ORG O | B-LOC O"),
        ("B-ORG\tEU\nO\trejects\n", {"column": 0, "word_column": 1}, "EU rejects", "B-ORG O"),
        # tweets, comments
        ("#GoT\tB-TV\nis\tO\n\n#on\tO\n", {}, "#GoT is | #on", "B-TV O | O"),
        ("# id = 1\n#GoT B-TV\n# O\n\n# newdoc\n\n#on O\nX O\n", {}, "#GoT # | #on X", "B-TV O | O O"),
        ("#a\tO\n#b\tB-X\n", {}, "#a #b", "O B-X"),
        ("# source = O\n# x = B-X\nEU NNP B-NP B-ORG\n", {}, "EU", "B-ORG"),
        # numbers that are words
        ("7\tO\n7\tB-X\n", {"word_column": 0}, "7 7", "O B-X"),
        ("3\tO\n4\tO\nmen\tO\n\n5\tO\n", {}, "3 4 men | 5", "O O O | O"),
    ],
)
def test_columns_before_the_words_and_comments(
    tmp_path: Path, text: str, options: dict[str, int], words: str, tags: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c").write_text(text)
    sentences = TASK.read(tmp_path / "c", NerReaderOptions(**options), training=True)
    assert " | ".join(" ".join(each.sentence.words) for each in sentences) == words
    assert " | ".join(" ".join(each.tags) for each in sentences) == tags
    assert ("words are read from column 1" in capsys.readouterr().err) == (text in (GERMEVAL, NUMBERED))


@pytest.mark.parametrize(
    "text", ["7\tO\n7\tO\n", "1\tFoi\tO\n2-3\tao\tO\n2\ta\tO\n3\to\tO\n", "1\tEU\tO\n1\tis\tO\n\n4\tx\tO\n9\tx\tO\n"]
)
def test_numbers_are_not_read_as_words(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="--word-column"):
        read(tmp_path / "c", text)


ONTONOTES = """\
#begin document (bc/x); part 000
bc/x 0 0 In IN (PP* - - - - * -
bc/x 0 1 the DT (NP* - - - - (DATE(ORDINAL* -
bc/x 0 2 third JJ * - - - - *) -
bc/x 0 3 year NN *)) - - - - *) -
bc/x 0 4 Peru NNP * - - - - (GPE) (0)

bc/x 0 0 Hm UH * - - - - * * -

#end document
"""


def test_brackets_of_ontonotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = read(tmp_path / "c", ONTONOTES, 10)
    assert first.sentence.words == ("In", "the", "third", "year", "Peru")
    assert first.tags == ["O", "B-DATE", "I-DATE", "I-DATE", "B-GPE"]
    assert (second.sentence.words, second.tags) == (("Hm",), ["O"])
    assert "1 entity inside others" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"line 5: .*closes"):
        read(tmp_path / "c", ONTONOTES.replace("(DATE(ORDINAL*", "(DATE*"), 10)
    with pytest.raises(InputError, match="--column"):
        read(tmp_path / "c", ONTONOTES)


@pytest.mark.parametrize(
    ("text", "words", "tags", "said"),
    [
        # a language in front of the words
        ("zh-yue:Bo B-PER\nzh-yue:: O\n\nzh-yue:x O\n", "Bo : | x", "B-PER O | O", "zh-yue: in front of all 3"),
        ("1 de:Bo PER\n2 nl: O\n", "Bo _", "B-PER O", "note: {}: de:, nl: in front of all 2 words is left out"),
        ("a:b O\nc:d B-X\n", "a:b c:d", "O B-X", ""),
        ("en:a O\nen:b B-X\nc O\n", "en:a en:b c", "O B-X O", "warning: {}: 2 of 3 words begin with a language"),
        ("Bo, B-X\nis, O\n", "Bo, is,", "B-X O", "warning: {}: all 2 words end with a comma, such as 'Bo,', and are"),
        ("en:a O\nb B-X\nc O\n", "en:a b c", "O B-X O", ""),
        # a row of headings
        ("Word\tPOS\tTag\nBo\tX\tB-PER\n", "Bo", "B-PER", "note: {}: the row of headings is left out: Word"),
        ("token ner_tags\n\nBo PER\nis O\n", "Bo is", "B-PER O", "headings is left out: token ner_tags"),
        ("\n# id = 1\nform NER\n1 B-NER\n2 O\n3 O\nx O\n", "1 2 3 x", "B-NER O O O", "headings is left out: form NER"),
        ("Bo LABEL\nis O\nAl LABEL\n", "Bo is Al", "B-LABEL O B-LABEL", "are spelled TYPE"),
        # no ends of sentences
        ("Bo B-X\n! O\n. O\nIt O\n. O\n", "Bo ! . It .", "B-X O O O O", "warning: {}, line 1: one sentence has 5"),
        ("a O\n\n" + "b O\n" * 1001, "a |" + " b" * 1001, "O |" + " O" * 1001, "{}, line 3: one sentence has 1,001"),
        ("Bo B-X\n. O\n", "Bo .", "B-X O", ""),
        # words that begin with #, and comments, beside types alone
        ("#sent s1\nAna B-PER\nleft O\n", "Ana left", "B-PER O", ""),
        ("# TV\n1 TV\nis O\n\n#2 TV\n", "# 1 is | #2", "B-TV I-TV O | B-TV", "are spelled TYPE"),
        ("#GoT TV\nis O\n\n# new\n#on TV\n", "#GoT is | #on", "B-TV O | B-TV", "are spelled TYPE"),
    ],
)  # fmt: skip
def test_what_people_leave_in_their_columns(
    tmp_path: Path, text: str, words: str, tags: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = read(tmp_path / "c", text)
    assert " | ".join(" ".join(each.sentence.words) for each in sentences) == words
    assert " | ".join(" ".join(each.tags) for each in sentences) == tags
    errors = capsys.readouterr().err
    assert said.format(tmp_path / "c") in errors
    assert bool(errors) == bool(said)
