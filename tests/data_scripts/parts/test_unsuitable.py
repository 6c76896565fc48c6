"""Unsuitable text: text without spaces, HTML, columns and JSON lines are noticed, and other text passes silently."""

import json
import re
from pathlib import Path

import pytest

from data_scripts.parts import unsuitable
from data_scripts.parts.unsuitable import check_suitable, describe_unsuitable, is_json_lines
from elmoc.errors import InputError
from elmoc.text.raw import sample_lines

SPACELESS = {
    "Chinese": "我们都是中国人，今天天气很好。他说：“明天会下雨吗？”\n大家都去公园散步。\n",
    "subtitles": "你好吗？\n我很好，谢谢你\n我们走吧，快一点\n",
    "Japanese": "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。\n",
    "Japanese of many loanwords": "コンピュータープログラムをアップデートしました。\nインターネットでテストした\n",
    "Burmese": "မြန်မာနိုင်ငံသည်အရှေ့တောင်အာရှတွင်တည်ရှိသောနိုင်ငံဖြစ်သည်။ ထိုနိုင်ငံ၌လူဦးရေများသည်။\n",
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
COLUMNS = {
    "a table": "year\tsum\tplace\n1984\t3.5\tRome\n1985\t-\tOslo\n" * 20,
    "CoNLL": "EU\tB-ORG\nrejects\tO\n.\tO\n\n" * 5,
    "CoNLL-U": "# sent_id = 1\n# text = It rained\n1\tIt\tPRON\t_\n2\trained\tVERB\t_\n\n" * 5,
    "labelled sentences": "sentence\tlabel\nIt rained .\t1\nA good film , all in all .\t3\nNo .\t0\n \tNo !\t1\n" * 3,
    "a title above": "sentences\n" + "It rained .\t1\n" * 5,
}
LABELLED = {
    "CoNLL-2003": "-DOCSTART- -X- O O\n\nEU NNP I-NP B-ORG\nrejects VBZ I-VP O\n. . O O\n\nIt PRP I-NP O\n",
    "two columns": "EU B-ORG\nrejects O\nthe O\ncall O\n. O\n\n" * 5,
    "CoNLL-2012": "#begin document (a); part 000\n"
    + "a/b   0  0     It  PRP  (TOP(S(NP*)  -  -  -  -  *  -\na/b   0  1  rained  VBD    (VP*))  rain 01  -  (V*)  -\n"
    * 15,
}
VECTORS = {
    "GloVe": "".join(f"word{number}" + " 0.25 -1.5 3 -1e-05 .5" * 5 + "\n" for number in range(20)),
    "fastText": "2 25\nthe" + " 0.25" * 25 + " \n, " + "-0.25 " * 25 + "\n",
    "with tabs": ("the" + "\t0.25" * 25 + "\n") * 9,
}
MISREAD = {
    "German": "schöne Grüße aus Köln , süß und weiß".encode().decode("latin-1"),
    "French": "l' été , il a été très gêné à la fête".encode().decode("cp1252"),
    "English": "“ It ’s , ” he said , “ a dog ’s ”".encode().decode("cp1252", "replace"),
    "Russian": "Он сказал , что пойдёт домой".encode().decode("latin-1"),
}
SUITABLE = {
    "tokenised Chinese": "我们 都 是 中国人 ， 今天 天气 很 好 。\n中华人民共和国 成立 了 。\n",
    "tokenised Japanese": "吾輩 は 猫 で ある 。\nコンピューター を 使う 。\n",
    "tokenised Japanese of many loanwords": "コンピューター を アップデート し インターネット アクセス\n",
    "a list of katakana words": "コンピューター\nインターネット\nスーパーマーケット\nエアー・コンディショナー\n",
    "tokenised Burmese": "ပြည်ထောင်စုသမ္မတမြန်မာနိုင်ငံတော် အစိုးရ အဖွဲ့\n",
    "a list of Burmese names": "ရန်ကုန်တိုင်းဒေသကြီး\nနေပြည်တော်\nမန္တလေးတိုင်းဒေသကြီး\n",
    "tokenised Thai": "ประเทศไทย เป็น ประเทศ ที่ ตั้ง อยู่ ใน เอเชีย\n",
    "Korean": "대한민국은 민주공화국이다. 대한민국의 주권은 국민에게 있다.\n",
    "a quotation in Chinese": "The novel begins: 我们都是中国人，今天天气很好。他说 . It goes on in English .\n",
    "German": "Donaudampfschifffahrtsgesellschaftskapitän\nRindfleischetikettierungsüberwachungsgesetz\n",
    "addresses": "https://example.com/a/very/long/address?with=numbers&and=more\n" * 20,
    "short lines": "yes\nno\n\nOh !\n",
    "headlines": "MAN BITES DOG\nDow 5 < 10 % , Nasdaq > 3\n",
    "indented text": "\tIt rained .\n\tA cat sat .\t\n" * 20,
    "a few tabs": "Name:\tA cat\nIt rained .\nAge:\t3\nA cat sat .\n" * 20,
    "words divided by tabs": "It\trained\t.\nA\tlarge\tcat\tsat\t.\nNo\t.\n" * 20,
    "results": "Rome 3 1 , Oslo 2 2\nA 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\nIt rained .\n" * 20,
    "Portuguese": "« AMANHÃ » , NÃO , « IRMû , «MANHû , “IRMÔ , IRMÃ… , Âmbar , CORAÇÃO\n" * 20,
    "Spanish": "ESPAÑA , «ESPAû , ¿ NIÑO ? , ¡SEÑOR!\n" * 20,
    "German in order": "schöne Grüße aus Köln , süß und weiß\n" * 20,
    "a quotation that was misread": "Ã¼ Ã¶ Ã¤ are ü ö ä .\n" + "It rained all day .\n" * 20,
    "numbers": "1\n2\n3.5\n" * 20,
    "groups of blood": "He has O\nShe has B\nHis group is O\nIt rained .\n" * 20,
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


@pytest.mark.parametrize("name", COLUMNS)
def test_columns(name: str) -> None:
    assert "columns with tabs between them" in (said := str(describe_unsuitable(COLUMNS[name].split("\n"))))
    assert "`python -m downstream sentences TASK FILE`" in said


@pytest.mark.parametrize("name", LABELLED)
def test_words_with_labels(name: str) -> None:
    assert "a word and its labels on each line" in (said := str(describe_unsuitable(LABELLED[name].split("\n"))))
    assert "`python -m downstream sentences TASK FILE`" in said


@pytest.mark.parametrize("name", VECTORS)
def test_word_vectors(name: str) -> None:
    assert "word vectors, a word and its numbers on each line" in str(describe_unsuitable(VECTORS[name].split("\n")))


@pytest.mark.parametrize("name", MISREAD)
def test_text_that_was_read_as_latin(name: str) -> None:
    assert "UTF-8 that was read as Latin-1" in str(describe_unsuitable([MISREAD[name]] * 20))


@pytest.mark.parametrize("name", SUITABLE)
def test_other_text_passes(name: str) -> None:
    lines = SUITABLE[name].split("\n")
    assert describe_unsuitable(lines) is None
    assert not is_json_lines(lines, characters=10_000)


def test_words_are_looked_at_one_by_one_only_of_such_a_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus may be of ten thousand files, each of which is looked at."""
    calls = 0

    class Counting:
        def __init__(self, pattern: re.Pattern[str]) -> None:
            self._pattern = pattern

        def __getattr__(self, name: str) -> object:
            nonlocal calls
            calls += 1
            return getattr(self._pattern, name)

    scripts = tuple((Counting(pattern), longest) for pattern, longest in unsuitable._SCRIPTS_WITHOUT_SPACES)
    monkeypatch.setattr(unsuitable, "_SCRIPTS_WITHOUT_SPACES", scripts)
    assert describe_unsuitable(["The novel begins : 我们 ."] * 1000) is None
    assert calls <= 2 * len(scripts)


def test_json_lines_are_objects() -> None:
    lines = [json.dumps({"text": f"a {number}"}) for number in range(200)]
    assert is_json_lines(["", *lines], characters=100)
    assert is_json_lines([*lines[:100], "text"], characters=100), "a hundred are enough"
    assert not is_json_lines([*lines[:99], "text"], characters=100)
    assert not is_json_lines(['["a"]', '"b"', "1"], characters=100)
    assert not is_json_lines(["[" * 100_000], characters=100_000)


@pytest.mark.parametrize("start", ['{"text": "', ' { "text": "'])
def test_an_object_that_is_cut_is_an_object(tmp_path: Path, start: str) -> None:
    (tmp_path / "a").write_text(f'{{"text": "A cat sat ."}}\n{start}{"It rained . " * 100}"}}\n')
    assert is_json_lines(sample := sample_lines(tmp_path / "a", 500), characters=500)
    assert not is_json_lines(sample, characters=501), "it was not cut"
    assert not is_json_lines([sample[0], "It rained . " * 50], characters=600)


def test_each_kind_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    chinese, page = SPACELESS["Chinese"].split("\n"), HTML["a page"].split("\n")
    samples = [(Path(name), chinese) for name in "abcde"] + [(Path("f"), page), (Path("g"), ["It rained ."])]
    check_suitable(samples, characters=100)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("warning: a, b, c and 2 more: this looks like text without spaces between words")
    assert second.startswith("warning: f: this looks like HTML")
    with pytest.raises(InputError, match="h holds JSON lines, not text: give a file of the text in them"):
        check_suitable([(Path("h"), ['{"text": "It rained ."}'])], characters=100)
