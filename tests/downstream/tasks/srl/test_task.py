"""The SRL task: sentences are read, learned and written."""

import re
from pathlib import Path

import numpy as np
import pytest
from downstream.readers.columns import Span
from downstream.tasks.srl.model import Proposition, SrlSentence
from downstream.tasks.srl.task import TASK
from elmoc.errors import InputError

# a sentence, then a proposition a line: the predicate's place and lemma, and its spans
TEN = """\
Ada gave Charles the books that he wanted .
  1 give ARG0:0 V:1 ARG2:2 ARG1:3-7
  7 want ARG1:3-4 R-ARG1:5 ARG0:6 V:7
" No , " said Ada , " it is late . "
  4 say ARG1:0-3 V:4 ARG0:5 C-ARG1:7-11
  9 be ARG1:8 V:9 ARG2:10
Nobody at all !
Charles gave up .
  1 give ARG0:0 V:1-2
Call them up today
  0 call V:0 ARG1:1 C-V:2 ARGM-TMP:3
Late books
Wanted !
  0 want V:0
Today , yesterday , she read it .
  5 read ARGM-TMP:0 ARGM-TMP:2 ARG0:4 V:5 ARG1:6
The late books were said to be wanted
  3 be V:3
  4 say ARG1:0-2 V:4 C-ARG1:5-7
  6 be V:6
  7 want ARG1:0-2 V:7
It is
  1 be ARG1:0 V:1
Late books .
Nobody
"""


def spans_of(text: str) -> list[Span]:
    found = re.findall(r"(\S+):(\d+)(?:-(\d+))?", text)
    return [Span(label, int(first), int(last or first)) for label, first, last in found]


def document(text: str = TEN) -> str:
    """The columns of CoNLL-2012."""
    blocks = re.findall(r"^(\S.*)\n((?:  .*\n)*)", text, flags=re.MULTILINE)
    lines = ["#begin document (ten); part 000"]
    for words_text, proposition_text in blocks:
        words, propositions = words_text.split(), [line.split(maxsplit=2) for line in proposition_text.splitlines()]
        columns = []
        for _, _, spans in propositions:
            cells = ["*"] * len(words)
            for label, first, last in spans_of(spans):
                cells[first] = f"({label}{cells[first]}"
                cells[last] += ")"
            columns.append(cells)
        senses = {int(place): (lemma, "01") for place, lemma, _ in propositions}
        for place, word in enumerate(words):
            lemma, sense = senses.get(place, ("-", "-"))
            arguments = [cells[place] for cells in columns]
            lines.append(
                "\t".join(["ten", "0", str(place), word, "XX", "*", lemma, sense, "-", "-", "*", *arguments, "-"])
            )
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    path = tmp_path / "ten.gold_conll"
    path.write_text(document(), encoding="utf-8")
    return path


def read(path: Path) -> list[SrlSentence]:
    return TASK.read(path, TASK.reader, training=False)


def test_reading(ten: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sentences = read(ten)
    assert len(sentences) == 8
    assert sentences[0].sentence.words == ("Ada", "gave", "Charles", "the", "books", "that", "he", "wanted", ".")
    assert (sentences[0].sentence.file, sentences[0].sentence.line) == (str(ten), 2)
    assert sentences[0].propositions == [
        Proposition(1, "give", spans_of("ARG0:0 V:1 ARG2:2 ARG1:3-7")),
        Proposition(7, "want", spans_of("ARG1:3-4 R-ARG1:5 ARG0:6 V:7")),
    ]
    assert sentences[2].sentence.line == 31
    assert "4 sentences without a predicate" in capsys.readouterr().err
    assert TASK.vocabulary(sentences) == {
        "labels": ["ARG0", "ARG1", "ARG2", "ARGM-TMP", "C-ARG1", "C-V", "R-ARG1", "V"]
    }


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("said\tXX\t*\tsay\t01", "said\tXX\t*\t-\t-", 12),
        ("gave\tXX\t*\tgive\t01", "gave\tXX\t*\t-\t01", 3),
        ("gave\tXX\t*\tgive\t01", "gave\tXX\t*\t\t01", 3),
        ("(ARG2*)\t*\t-\n", "(ARG2*))\t*\t-\n", 4),
    ],
)
def test_broken_propositions(tmp_path: Path, old: str, new: str, line: int) -> None:
    assert old in document()
    path = tmp_path / "broken.gold_conll"
    path.write_text(document().replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError, match=rf"broken\.gold_conll, line {line}: "):
        read(path)


def test_of_arguments_inside_others_the_outer_one_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "nested.gold_conll"
    text = document().replace("(ARG2*)\t*\t-\n", "(ARG2(ARG3*))\t*\t-\n", 1)
    path.write_text(text, encoding="utf-8")
    assert [each.propositions[0] for each in read(path)[:1]] == [
        Proposition(1, "give", spans_of("ARG0:0 V:1 ARG2:2 ARG1:3-7"))
    ]
    assert "1 argument inside others" in capsys.readouterr().err


RELEASE = """\
web/1.xml 0 0 Shops NNS (TOP(S(NP*) - - (ARG1*) *
web/1.xml 0 1 close VBP (VP* close close.01 (V*) (ARGM-ADV*
web/1.xml 0 2 to VBP (VP* - - (C-ARG1(ARG2* *)
web/1.xml 0 3 stock VB * stock stock.02 *)) (V*)

web/1.xml 1 0 Well UH (TOP(INTJ*)) - -

web/2.xml 0 0 Go VB (TOP*) go go.02 (V*)
"""


def test_propbanks_own_release_is_read(tmp_path: Path) -> None:
    path = tmp_path / "ewt.gold_conll"
    path.write_text(RELEASE, encoding="utf-8")
    first, second = read(path)
    assert first.sentence.words == ("Shops", "close", "to", "stock")
    assert first.propositions == [
        Proposition(1, "close", spans_of("ARG1:0 V:1 C-ARG1:2-3")),
        Proposition(3, "stock", spans_of("ARGM-ADV:1-2 V:3")),
    ]
    assert (second.sentence.words, second.propositions) == (("Go",), [Proposition(0, "go", spans_of("V:0"))])


CONLL_2005 = """\
The      DT  (S(NP*  -    -      (A1*    *
rates    NNS *)      -    -         *)   *
were     VBD (VP*    01   be      (V*)   *
said     VBN (VP*    02   say       *  (V*)
.        .   *))     -    -         *    *

Sales    NNS (NP*)   -    -
"""


@pytest.mark.parametrize(
    ("columns", "lemma"),
    [((0, 4, 5, 6), 1), ((0, 1, 2, 3, 4, 5, 6), 4), ((1, 0, 1, 1, 1, 2, 3, 4, 5, 6), 7)],
    ids=["words and props", "all", "as many columns as PropBank's, words in the first"],
)
def test_conll_2005_is_read(tmp_path: Path, columns: tuple[int, ...], lemma: int) -> None:
    path = tmp_path / "train.props"
    rows = [line.split() for line in CONLL_2005.splitlines()]
    lines = ["  ".join(row[place] for place in columns if place < len(row)) for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    (sentence,) = read(path)
    words = ("The", "rates", "were", "said", ".") if columns[0] == 0 else ("DT", "NNS", "VBD", "VBN", ".")
    assert sentence.sentence.words == words
    assert sentence.propositions == [
        Proposition(2, "be", spans_of("A1:0-1 V:2")),
        Proposition(3, "say", spans_of("V:3")),
    ]
    path.write_text("\n".join([*lines, "", *lines[2:3], *lines[4:5]]), encoding="utf-8")
    with pytest.raises(InputError, match=rf"line 9: 1 predicates \(column {lemma}\), but 2 columns"):
        read(path)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1 was be be VB VB _ _ 0 0 ROOT ROOT Y be.01 _", "words is CoNLL-2009, whose arguments are single words"),
        ("be (V*)", "words has predicates and arguments (CoNLL-2005), but no words: put them in front, as by `paste"),
        ("was O\nis B-X", "words, line 1: no column of predicates (or -) has"),
    ],
)
def test_other_columns_are_named(tmp_path: Path, row: str, said: str) -> None:
    path = tmp_path / "words"
    path.write_text(f"{row}\n\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(said)):
        read(path)


def test_data_without_predicates(tmp_path: Path) -> None:
    path = tmp_path / "none.gold_conll"
    path.write_text(document("Nobody at all !\nLate books\n"), encoding="utf-8")
    with pytest.raises(InputError, match=r"none\.gold_conll has no predicates"):
        read(path)


def test_written_propositions(ten: Path) -> None:
    sentences = read(ten)[-1:] + read(ten)[2:4]
    written = [TASK.format_prediction(each, [one.spans for one in each.propositions]) for each in sentences]
    assert "".join(written) == (
        "-\t(ARG1*)\nbe\t(V*)\n\n"
        "-\t(ARG0*)\ngive\t(V*\n-\t*)\n-\t*\n\n"
        "call\t(V*)\n-\t(ARG1*)\n-\t(C-V*)\n-\t(ARGM-TMP*)\n\n"
    )


def test_counts_and_details(ten: Path) -> None:
    sentences = read(ten)
    gold = [[one.spans for one in sentence.propositions] for sentence in sentences]
    assert sum(TASK.count(*pair)[0] for pair in zip(sentences, gold, strict=True)) == 20
    # the quotation without its second half; and nothing of the first sentence
    predicted = [list(roles) for roles in gold]
    predicted[0] = [(), ()]
    predicted[1][0] = tuple(span for span in gold[1][0] if span.label != "C-ARG1")
    counts = np.stack([TASK.count(*pair) for pair in zip(sentences, predicted, strict=True)])
    assert counts[:4].tolist() == [[0, 6, 0], [3, 4, 4], [1, 1, 1], [2, 2, 2]]
    metrics = TASK.metrics(counts.sum(axis=0))
    assert {name: float(value) for name, value in metrics.items()} == pytest.approx(
        {"argument F1": 100 * 26 / 34, "argument precision": 100 * 13 / 14, "argument recall": 65.0}
    )
