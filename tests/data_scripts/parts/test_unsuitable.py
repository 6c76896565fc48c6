"""Unsuitable text: text without spaces, HTML and JSON lines are noticed, and other text passes silently."""

import json
from pathlib import Path

import pytest

from data_scripts.parts.unsuitable import check_suitable, describe_unsuitable, is_json_lines
from elmoc.errors import InputError

SPACELESS = {
    "Chinese": "我们都是中国人，今天天气很好。他说：“明天会下雨吗？”\n大家都去公园散步。\n",
    "subtitles": "你好吗？\n我很好，谢谢你\n我们走吧，快一点\n",
    "Japanese": "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。\n",
    "Thai": "ประเทศไทยเป็นประเทศที่ตั้งอยู่ในเอเชียตะวันออกเฉียงใต้ มีพรมแดนติดกับลาว\n",
    "Khmer": "ប្រទេសកម្ពុជាជាប្រទេសមួយនៅអាស៊ីអាគ្នេយ៍\n",
}
HTML = {
    "a page": "<!DOCTYPE html>\n<title>a</title>\nSome text .\n",
    "an older page": "\n<HTML lang=en><BODY>Some text .\n",
    "a part of a page": '<p class="a">It rained.</p>\n<ul><li>one</li></ul>\n' * 5,
    "reviews": "It was a good film.<br /><br />I liked it, and all the others did so, too.\n" * 5,
    "XML": "<doc><title>One</title><text>It rained all day .</text></doc>\n" * 5,
}
SUITABLE = {
    "tokenised Chinese": "我们 都 是 中国人 ， 今天 天气 很 好 。\n中华人民共和国 成立 了 。\n",
    "tokenised Japanese": "吾輩 は 猫 で ある 。\nコンピューター を 使う 。\n",
    "tokenised Thai": "ประเทศไทย เป็น ประเทศ ที่ ตั้ง อยู่ ใน เอเชีย\n",
    "Korean": "대한민국은 민주공화국이다. 대한민국의 주권은 국민에게 있다.\n",
    "a quotation in Chinese": "The novel begins: 我们都是中国人，今天天气很好。他说 . It goes on in English .\n",
    "German": "Donaudampfschifffahrtsgesellschaftskapitän\nRindfleischetikettierungsüberwachungsgesetz\n",
    "addresses": "https://example.com/a/very/long/address?with=numbers&and=more\n" * 20,
    "short lines": "yes\nno\n\nOh !\n",
    "headlines": "MAN BITES DOG\nDow 5 < 10 % , Nasdaq > 3\n",
    "a table": "year\tsum\tplace\n1984\t3.5\tRome\n1985\t-\tOslo\n" * 20,
    "numbers": "1\n2\n3.5\n" * 20,
    "tweets": "@user lol <3 <3 </3 :) #fun\nRT @x: {so true}\n" * 20,
    "code": '#include <vector>\nstd::map<std::string, List<T>> x = {{"a", 1}};\nif (a</b/.test(c)) { y(); }\n{\n}\n'
    * 20,
    "Python": 'x = {"a": 1}\n[1, 2]\nprint(x)\n' * 20,
    "marks of words": "He said <unk> to <unk> .\n<s> a </s>\n" * 20,
    "one tag of many words": "Write <b>bold</b> so .\n" + "It rained all day .\n" * 200,
    "one object among text": '{"a": 1}\nIt rained .\n',
    "nothing": "\n \n",
}


@pytest.mark.parametrize("name", SPACELESS)
def test_text_without_spaces(name: str) -> None:
    assert "text without spaces between words" in str(describe_unsuitable(SPACELESS[name].split("\n")))


@pytest.mark.parametrize("name", HTML)
def test_markup(name: str) -> None:
    assert "HTML or XML" in str(describe_unsuitable(HTML[name].split("\n")))


@pytest.mark.parametrize("name", SUITABLE)
def test_other_text_passes(name: str) -> None:
    lines = SUITABLE[name].split("\n")
    assert describe_unsuitable(lines) is None
    assert not is_json_lines(lines)


def test_json_lines_are_objects() -> None:
    lines = [json.dumps({"text": f"a {number}"}) for number in range(200)]
    assert is_json_lines(["", *lines])
    assert is_json_lines([*lines[:100], "text"]), "a hundred are enough"
    assert not is_json_lines([*lines[:99], "text"])
    assert not is_json_lines(['["a"]', '"b"', "1"])
    assert not is_json_lines(["[" * 100_000])


def test_each_kind_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    chinese, page = SPACELESS["Chinese"].split("\n"), HTML["a page"].split("\n")
    check_suitable([(Path(name), chinese) for name in "abcde"] + [(Path("f"), page), (Path("g"), ["It rained ."])])
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("warning: a, b, c and 2 more: this looks like text without spaces between words")
    assert second.startswith("warning: f: this looks like HTML")
    with pytest.raises(InputError, match="h holds JSON lines, not text: give a file of the text in them"):
        check_suitable([(Path("h"), ['{"text": "It rained ."}'])])
