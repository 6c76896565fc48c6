"""Scripts: text without spaces between words is found by its script, unless spaces divide it all the same."""

import re
import unicodedata

import pytest
import regex
from elmoc.text.scripts import UNSPACED, unspaced_problem
from elmoc.text.tokenizer import looks_tokenised

# Raw text with its words divided by |.
WORDS = {
    "Chinese": "昨天|晚上|下|了|一|场|大|雨|。|\n|路上|很|滑|。",
    "Japanese": "私|は|昨日|、|東京|の|コンピューター|会社|で|働き|まし|た|。",
    "Thai": "แม่|ซื้อ|ปลา|ที่|ตลาด|ทุก|เช้า|และ|ทำ|อาหาร|ให้|ลูก",
    "Lao": "ຂ້ອຍ|ໄປ|ຕະຫຼາດ|ກັບ|ແມ່|ຂອງ|ຂ້ອຍ|ທຸກ|ມື້",
    "Khmer": "ខ្ញុំ|ទៅ|ផ្សារ|ជាមួយ|ម្ដាយ|របស់|ខ្ញុំ|រាល់|ថ្ងៃ",
    "Burmese": "ကျွန်တော်|သည်|မနက်|တိုင်း|ကော်ဖီ|သောက်|သည်|။",
    "Tibetan": "ང་|ཁྲོམ་|ལ་|འགྲོ་|གི་|ཡོད|། |ཁོང་|སློབ་གྲྭ་|ལ་|ཕེབས་|སོང",
}


@pytest.mark.parametrize("language", WORDS)
def test_divided_and_undivided_text(language: str) -> None:
    words = WORDS[language]
    for raw in (words.replace("|", ""), words.replace("|", "") + " The rest is English, as it happens."):
        assert unspaced_problem(raw).split("such as '")[1][:5] in raw
    for space in (" ", "\u200b"):
        assert not unspaced_problem(words.replace("|", space))
    assert looks_tokenised(words.replace("|", " "))


def test_phrases_are_not_words() -> None:
    text = "ကျွန်တော်သည် မနက်တိုင်း ကော်ဖီသောက်သည်။ ထို့နောက် အလုပ်သို့ သွားသည်။ ညနေတွင် အိမ်ပြန်သည်။"
    assert "ICU" in unspaced_problem(text)


def test_letters_are_those_of_unicode() -> None:
    scripts = "Thai Lao Tibetan Myanmar Khmer Tai_Le New_Tai_Lue Tai_Tham Tai_Viet Ahom Han Hiragana Katakana Bopomofo"
    own = regex.compile("|".join(rf"\p{{Script={script}}}" for script in scripts.split()))
    for number in range(0x10000):
        is_letter = unicodedata.category(chr(number)) in ("Lo", "Mn", "Mc")
        if is_letter and regex.match(r"\p{Script=Common}|\p{Script=Inherited}", chr(number)) is None:
            assert bool(re.match(f"[{UNSPACED}]", chr(number))) == bool(own.match(chr(number))), hex(number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 + 2 = 3",
        "The characters 山 and 川 mean mountain and river.\nNo more of them are needed here.",
        "Он живёт в городе Осака (大阪), где много мостов.",
        "어제 저녁에 비가 많이 왔다. 길이 미끄러웠다.",
        "राम घर गया। सीता वहाँ थी।",
    ],
)
def test_other_text(text: str) -> None:
    assert not unspaced_problem(text)
