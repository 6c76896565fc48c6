"""Suitable text: columns and JSON lines are refused, raw text and text without spaces are told of."""

from collections import Counter
from pathlib import Path

import pytest
from elmoc.errors import InputError
from elmoc.text.suitable import check_suitable, first_lines, warn_of_raw_text

RAW = "The cat sat, and it rained. Then we left; it was late."
TOKENISED = "The cat sat , and it rained . Then we left ; it was late ."


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (f"{RAW} " * 20, True),
        (f"{TOKENISED} " * 20 + f"{RAW} " * 2, True),
        (f"{TOKENISED} " * 200 + RAW, False),
        (TOKENISED, False),
        ("", False),
        ("Yahoo! and Jeopardy! are names .", False),
        ("Look at &#91; 1 &#93; : &quot; it &apos;s &apos;&apos; &#x27; &quot; " * 20, False),
        ("no: he left yes: A: no: " * 20, False),
        ("@user lol :) #fun https://a.b/c?d=1 , ok ? " * 30, False),
        ("1984 3.5 1985 4:30 " * 30, False),
    ],
)
def test_text_that_looks_raw(capsys: pytest.CaptureFixture[str], text: str, warned: bool) -> None:
    warn_of_raw_text("text.txt", Counter(text.split()).items())
    assert ("text.txt" in capsys.readouterr().err) == warned


def test_the_sample_is_the_beginning() -> None:
    lines = ["abc", "", "d", "ef"]
    assert first_lines(lines, 4) == ["abc", "", "d"]
    assert first_lines(lines, 2) == ["ab"]
    assert first_lines(lines, 100) == lines


UNSUITABLE = {
    "Chinese": "我们都是中国人，今天天气很好。他说：“明天会下雨吗？”\n大家都去公园散步。\n",
    "Japanese of many loanwords": "コンピュータープログラムをアップデートしました。\nインターネットでテストした\n",
    "Burmese": "မြန်မာနိုင်ငံသည်အရှေ့တောင်အာရှတွင်တည်ရှိသောနိုင်ငံဖြစ်သည်။ ထိုနိုင်ငံ၌လူဦးရေများသည်။\n",
    "Thai": "ประเทศไทยเป็นประเทศที่ตั้งอยู่ในเอเชียตะวันออกเฉียงใต้ มีพรมแดนติดกับลาว\n",
}
COLUMNS = {
    "a table": "year\tsum\tplace\n1984\t3.5\tRome\n1985\t-\tOslo\n" * 20,
    "CoNLL-U": "# sent_id = 1\n# text = It rained\n1\tIt\tPRON\t_\n2\trained\tVERB\t_\n\n" * 5,
    "three words": "1\tIt\tit\tPRON\n2\thad\thave\tAUX\n3\trained\train\tVERB\n",
    "CoNLL-2003": "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\nGerman JJ I-NP I-MISC\n\n" * 3,
    "CoNLL-2000": "He PRP B-NP\nreckons VBZ B-VP\nthe DT B-NP\ndeficit NN I-NP\n. . O\n",
    "BIO alone": "Anna B-PER\nsang O\n\nShe O\nleft O\nRome B-LOC\n. O\n",
    "OntoNotes": "#begin document (a); part 000\na 0 0 the DT * (A0* (12\na 0 1 cat NN * *) 12)\na 0 2 sat V * * -\n"
    * 3,
    "parts of speech": "It PRP\nrained VBD\nin IN\nRome NNP\n. .\n",
}
SUITABLE = {
    "tokenised Chinese": "我们 都 是 中国人 ， 今天 天气 很 好 。\n中华人民共和国 成立 了 。\n",
    "a list of katakana words": "コンピューター\nインターネット\nスーパーマーケット\nエアー・コンディショナー\n",
    "tokenised Thai": "ประเทศไทย เป็น ประเทศ ที่ ตั้ง อยู่ ใน เอเชีย\n",
    "Korean": "대한민국은 민주공화국이다. 대한민국의 주권은 국민에게 있다.\n",
    "a quotation in Chinese": "The novel begins: 我们都是中国人，今天天气很好。他说 . It goes on in English .\n",
    "German": "Donaudampfschifffahrtsgesellschaftskapitän\nRindfleischetikettierungsüberwachungsgesetz\n",
    "indented text": "\tIt rained .\n\tA cat sat .\t\n" * 20,
    "words divided by tabs": "It\trained\t.\nA\tlarge\tcat\tsat\t.\nNo\t.\n" * 20,
    "lines of as many words": "The cat sat .\nA dog ran .\nIt was late .\nWe all left .\nThey came back .\n",
    "one object among text": '{"a": 1}\nIt rained .\n',
}


@pytest.mark.parametrize("name", [*UNSUITABLE, *SUITABLE])
def test_text_without_spaces_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / "a").write_text((UNSUITABLE | SUITABLE)[name])
    check_suitable(tmp_path / "a")
    assert (f"{tmp_path}/a" in capsys.readouterr().err) == (name in UNSUITABLE)


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
