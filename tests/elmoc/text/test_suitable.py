"""Suitable text: columns and JSON lines are refused, raw text is warned of."""

from pathlib import Path

import pytest
from elmoc.errors import InputError
from elmoc.text.suitable import check_suitable, first_lines

RAW = "The cat sat, and it rained. Then we left; it was late."
TOKENISED = "The cat sat , and it rained . Then we left ; it was late ."


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (f"{RAW} " * 20, True),
        (f"{TOKENISED} " * 20 + f"{RAW} " * 2, False),
        (f"{TOKENISED} " * 200 + RAW, False),
        (TOKENISED, False),
        ("", False),
        ("Yahoo! and Jeopardy! are names , and so on , and more .", False),
        ("Look at &#91; 1 &#93; : &quot; it &apos;s , and so on . &apos;&apos; &#x27; &quot; " * 20, False),
        ("no: he left , well , yes: no , no " * 20, False),
        ("@user lol :) #fun https://a.b/c?d=1 , ok ? " * 30, False),
        ("1984 3.5 1985 4:30 " * 30, False),
        ("a list\nof short lines\n" * 30, False),
        ("我们 都 是 中国人 ， 今天 天气 很 好 。\n中华人民共和国 成立 了 。\n", False),
        ("\tIt rained .\n\tA cat sat .\t\n" * 20, False),
    ],
)
def test_text_that_looks_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, warned: bool) -> None:
    (tmp_path / "text.txt").write_text(text)
    check_suitable(tmp_path / "text.txt")
    assert ("text.txt" in capsys.readouterr().err) == warned


def test_the_sample_is_the_beginning() -> None:
    lines = ["abc", "", "d", "ef"]
    assert first_lines(lines, 4) == ["abc", "", "d"]
    assert first_lines(lines, 2) == ["ab"]
    assert first_lines(lines, 100) == lines


COLUMNS = {
    "a table": "year\tsum\tplace\n1984\t3.5\tRome\n1985\t-\tOslo\n" * 20,
    "CoNLL-U": "# sent_id = 1\n# text = It rained\n1\tIt\tPRON\t_\n2\trained\tVERB\t_\n\n" * 5,
    "three words": "1\tIt\tit\tPRON\n2\thad\thave\tAUX\n3\trained\train\tVERB\n",
    "CoNLL-2003": "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\nGerman JJ I-NP I-MISC\n\n" * 3,
    "CoNLL-2000": "He PRP B-NP\nreckons VBZ B-VP\nthe DT B-NP\ndeficit NN I-NP\n. . O\n",
    "BIO alone": "Anna B-PER\nsang O\n\nShe O\nleft O\nRome B-LOC\n. O\n",
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text(COLUMNS[name])
    with pytest.raises(InputError, match="/a has columns"):
        check_suitable(tmp_path / "a")


@pytest.mark.parametrize("text", ['\n{"text": "It rained ."}\n' * 9, f'{{"text": "{"It rained . " * 50_000}"}}\n'])
def test_json_lines_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a").write_text(text)
    with pytest.raises(InputError, match="/a holds JSON lines"):
        check_suitable(tmp_path / "a")


def test_one_object_among_text_is_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_text('{"a": 1}\nIt rained .\n')
    check_suitable(tmp_path / "a")
