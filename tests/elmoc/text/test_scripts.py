"""Scripts: text without spaces between words is found by its script, unless spaces divide it all the same."""

import pytest
from elmoc.text.scripts import unspaced_part

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
        part = unspaced_part(raw)
        assert part is not None and not part.divided
        assert part.problem.split("such as '")[1][:5] in raw
    for space in (" ", "\u200b"):
        part = unspaced_part(words.replace("|", space))
        assert part is not None and part.divided and part.share > 0.5


def test_phrases_are_not_words() -> None:
    part = unspaced_part("ကျွန်တော်သည် မနက်တိုင်း ကော်ဖီသောက်သည်။ ထို့နောက် အလုပ်သို့ သွားသည်။ ညနေတွင် အိမ်ပြန်သည်။")
    assert part is not None and not part.divided and "ICU" in part.problem


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
    assert unspaced_part(text) is None
