"""CoNLL columns: all their formats, and damaged data refused with file and line."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from downstream.readers.conll_columns import read_columns
from downstream.tasks.ner.model import TaggedSentence, bio_to_bioul, bioul_to_bio
from downstream.tasks.ner.task import TASK, NerReaderOptions, iob_to_bio
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
LITBANK = """\
-DOCSTART-|O|O|O|O

the|B-PER|O|O|O
king|I-PER|O|O|O
of|I-PER|O|O|O
Spain|I-PER|B-GPE|O|O
""".replace("|", "\t")


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
    ("column", "tags"),
    [(1, ["B-PER", "I-PER", "I-PER", "I-PER"]), (2, ["O", "O", "O", "B-GPE"]), (-1, ["O"] * 4), (4, ["O"] * 4)],
)
def test_litbank_layers_are_columns(tmp_path: Path, column: int, tags: list[str]) -> None:
    (sentence,) = read(tmp_path / "c", LITBANK, column)
    assert sentence.sentence.words == ("the", "king", "of", "Spain")
    assert sentence.tags == tags


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


def test_gzip(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path / "c.gz", gzip.compress(LITBANK.encode()), 1)
    assert sentence.sentence.words == ("the", "king", "of", "Spain")


def test_types_may_hold_dashes_and_white_space_in_words_is_mended(tmp_path: Path) -> None:
    text = "x\u00a0y\tB-creative-work\n\tI-creative-work\nke s\tO\n\u2028\tO\n😀\u00a0\tO\n"
    (sentence,) = read(tmp_path / "c", text)
    assert sentence.sentence.words == ("x_y", "_", "ke_s", "_", "😀")
    assert sentence.tags == ["B-creative-work", "I-creative-work", "O", "O", "O"]
    assert sentence.mended == 4, "white space at the edge of a column is no part of the word"
    assert "(4 words empty or with white space: read with _)" in TASK.describe([sentence])
    assert TASK.describe([sentence]).startswith("1 sentence, 5 tokens, 1 entity")


@pytest.mark.parametrize("tags", ["B-A E-A O S-A S-B", "B-A L-A O U-A U-B"])
def test_bioes_and_biolu_are_read(tmp_path: Path, tags: str) -> None:
    (sentence,) = read(tmp_path / "c", "".join(f"w {tag}\n" for tag in tags.split()))
    assert sentence.tags == ["B-A", "I-A", "O", "B-A", "B-B"]


@pytest.mark.parametrize(
    ("tags", "bio", "bioul"),
    [
        ("O", "O", "O"),
        ("I-X", "B-X", "U-X"),
        ("B-X I-X I-X", "B-X I-X I-X", "B-X I-X L-X"),
        ("I-X I-X B-X I-X", "B-X I-X B-X I-X", "B-X L-X B-X L-X"),
        ("B-X B-X", "B-X B-X", "U-X U-X"),
        ("O I-X O", "O B-X O", "O U-X O"),
        ("B-X I-Y I-Y", "B-X B-Y I-Y", "U-X B-Y L-Y"),
        ("I-X-Y I-X-Z", "B-X-Y B-X-Z", "U-X-Y U-X-Z"),
    ],
)
def test_tags(tags: str, bio: str, bioul: str) -> None:
    assert iob_to_bio(bioul.split()) == bio.split(), "also called BIOLU"
    assert iob_to_bio(bioul.replace("L-", "E-").replace("U-", "S-").split()) == bio.split(), "BIOES"
    assert iob_to_bio(tags.split()) == bio.split()
    assert bio_to_bioul(bio.split()) == bioul.split()
    assert bioul_to_bio(bioul.split()) == bio.split()


GZIPPED = gzip.compress(b"a\tO\n" * 3_000)
BAD_FILES: dict[str, tuple[bytes, str]] = {
    "fewer.conll": (b"a\tO\nb\tO\nc\n", "line 3: 1 columns where the lines before have 2"),
    "more.conll": (b"a O\n\nb X O\n", "line 3: 3 columns where the lines before have 2"),
    "tag.conll": (b"a\tO\nb\tNNP\n", "line 2: 'NNP' is not a tag of the form O, B-TYPE or I-TYPE"),
    "bmes.conll": (b"a\tM-PER\n", "line 1: 'M-PER' is not a tag"),
    "typeless.conll": (b"a\tO\nb\tB-\n", "line 2: 'B-' is not a tag"),
    "empty-tag.conll": (b"a\tO\nb\t\n", "line 2: '' is not a tag"),
    "long-tag.conll": (b"a\tB-" + b"x" * 101 + b"\n", "line 1: 'B-xxx"),
    "long-cell.conll": (b"a\t" + b"x" * 100_000 + b"\n", "xxx' is not a tag"),
    "words.conll": (b"a\nb\n", "line 1: there is no tag column -1; the line has 1 columns"),
    "utf8.conll": (b"a\tO\ncaf\xe9\tO\n", "line 2: byte 0xe9 is not valid UTF-8"),
    "empty.conll": (b"", "holds no sentences"),
    "blank.conll": (b"\n \n\t\n", "holds no sentences"),
    "documents.conll": (b"-DOCSTART- O\n\n", "holds no sentences"),
    "cut.gz": (GZIPPED[:-40], "the gzip data is truncated or damaged"),
    "no-gzip.gz": (b"a\tO\n", "the gzip data is truncated or damaged"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_bad_files(tmp_path: Path, ten: Path, fails: Callable[..., str], name: str) -> None:
    content, message = BAD_FILES[name]
    bad = tmp_path / name
    bad.write_bytes(content)
    for arguments in (
        ["sentences", "ner", bad],
        ["ner", "--train", bad, "--dev", ten, "--vectors", "random:1:4"],
        ["ner", "--train", ten, "--dev", ten, "--test", bad, "--vectors", "random:1:4"],
    ):
        line = fails(*arguments)
        assert str(bad) in line
        assert message in line
        assert len(line) < 600


def test_missing_files_and_folders(tmp_path: Path, fails: Callable[..., str]) -> None:
    assert "none.conll does not exist" in fails("sentences", "ner", tmp_path / "none.conll")
    assert "is a directory" in fails("sentences", "ner", tmp_path)


@pytest.mark.parametrize("column", [0, 2, 9, -2])
def test_no_such_column(ten: Path, fails: Callable[..., str], column: int) -> None:
    message = fails("sentences", "ner", ten, "--column", column)
    assert f"line 1: there is no tag column {column}; the line has 2 columns" in message


@pytest.mark.parametrize(
    ("between", "warning"),
    [("", "is one sentence"), ("\n", "has a sentence for each word"), ("\n" * 3, "has a sentence for each word")],
)
def test_sentences_that_are_not_told_apart_are_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], between: str, warning: str
) -> None:
    path = tmp_path / "tags.conll"
    for words, said in ((999, False), (1000, True)):
        path.write_text(between.join(f"w{number}\tO\n" for number in range(words)))
        assert len(list(read_columns(path))) == (1 if not between else words)
        assert (f"warning: {path} {warning}" in capsys.readouterr().err) == said
    path.write_text("a\tO\n" * 1200 + "\nb\tO\n")
    assert len(list(read_columns(path))) == 2
    assert not capsys.readouterr().err


def test_reading_stops_at_the_first_bad_line(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("a O\n\nb O\n\nc\n")
    sentences = read_columns(tmp_path / "c")
    assert [next(sentences).rows, next(sentences).rows] == [[["a", "O"]], [["b", "O"]]]
    with pytest.raises(InputError, match="line 5"):
        next(sentences)


def test_a_byte_order_mark_is_no_part_of_the_first_word(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path / "a.conll", b"\xef\xbb\xbfAda B-PER\n\xef\xbb\xbfx O\n")
    assert sentence.sentence.words == ("Ada", "\ufeffx")
