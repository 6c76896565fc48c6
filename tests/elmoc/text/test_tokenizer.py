"""Tokenizer: raw text becomes Penn-like words and sentences."""

import random
import re

import pytest
import regex
from elmoc.text.tokenizer import (
    looks_tokenised,
    looks_wrapped,
    sentence_splitter,
    tokenise_paragraph,
    tokenise_sentence,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from elmoc.text import tokenizer


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello, world!", "Hello , world !"),
        ("I cannot, won't and don't.", "I can not , wo n't and do n't ."),
        ("“I don’t know,” he said—‘maybe’.", "\" I do n't know , \" he said — ' maybe ' ."),
        ("Wait… what?", "Wait … what ?"),
        ("It costs $1,234.50 at 10:30.", "It costs $ 1,234.50 at 10:30 ."),
        ("(See www.example.org/x.)", "( See www.example.org/x . )"),
        ("Mail me@example.org; or visit http://a.b/c?d=1,2.", "Mail me@example.org ; or visit http://a.b/c?d=1,2 ."),
        ("He said ``no.''", 'He said " no . "'),
        ("She said ''yes'' and ``no''.", 'She said " yes " and " no " .'),
        ("the dogs' bowl, O'Neil's", "the dogs ' bowl , O'Neil 's"),
        ("<s> no mark </s>", "< s > no mark < /s >"),
        (" \t ", ""),
        ("Où est l'école ? Là-bas.", "Où est l'école ? Là-bas ."),
        ("¿Qué hora es, Juan? ¡Las dos!", "¿ Qué hora es , Juan ? ¡ Las dos !"),
        ("यह घर है।", "यह घर है ।"),
        ("هل أنت هنا؟ نعم، أنا هنا؛ حسنا.", "هل أنت هنا ؟ نعم ، أنا هنا ؛ حسنا ."),
        ("ይህ ቤት ነው። እሺ፣ ነው።", "ይህ ቤት ነው ። እሺ ፣ ነው ።"),
        ("النسبة ١،٥ تقريبا، أو ٢.", "النسبة ١،٥ تقريبا ، أو ٢ ."),
        ("देखो http://a.b/c।", "देखो http://a.b/c ।"),
        ("\ufeffThe \ufeff“end”.", 'The " end " .'),
        ('צה"ל יצא מארה"ב, אמר ד"ר כהן.', 'צה"ל יצא מארה"ב , אמר ד"ר כהן .'),
        ("צה”ל, ארה״ב־צה״ל ומנכ“לית", 'צה"ל , ארה"ב־צה"ל ומנכ"לית'),
        ('הַתַּנַ"ךְ הוא "ספר".', 'הַתַּנַ"ךְ הוא " ספר " .'),
        ('קראתי ב"הארץ" וב־״הארץ״ http://a.b/c כ"ה', 'קראתי ב " הארץ " וב־ " הארץ " http://a.b/c כ"ה'),
        ("»Wer weiß?«", "» Wer weiß ? «"),
        ("«Oui.» ‹Non.›", "« Oui. » ‹ Non . ›"),
        ("‚Schon gut.‘", "' Schon gut . '"),
        ("She left.[12] (So it is.)*", "She left. [ 12 ] ( So it is . ) *"),
        ("The <num> of <user>", "The <num> of <user>"),
        (
            "Q&amp;A, S&P 500 &lt;b&gt; 5&nbsp;&euro; &amp;quot;x&amp;quot; &#x27;y&#39;",
            "Q&A , S&P 500 <b> 5 € \" x \" ' y '",
        ),
        ("rock&reggae; &copy; M&S; it", "rock&reggae ; © M&S ; it"),
        ("F# and C++ (:-D) ;) ^_^ x:(y)", "F# and C++ ( :-D ) ;) ^_^ x : ( y )"),
        ("@ann_b: #Zürich2024! #5 @ 3", "@ann_b : #Zürich2024 ! # 5 @ 3"),
        ("so nice😀👍🏽 👩‍🚀", "so nice 😀 👍🏽 👩‍🚀"),
        ("'em in the '90s; I'm gonna", "'em in the '90s ; I 'm gon na"),
        ("ไทย\u200bคำ", "ไทย คำ"),
        ("Una cel·la, dues ce\u0387les; об’єм і м’яч.", "Una cel·la , dues ce\u0387les ; об'єм і м'яч ."),
        ("Ήρθε· έφυγε\u0387 «Πότε\u037e»", "Ήρθε · έφυγε \u0387 « Πότε \u037e »"),
        ("Ո՞վ է։ ቤት፡ነው፡፡ ܒܝܬܐ܂", "Ո՞վ է ։ ቤት ፡ ነው ፡፡ ܒܝܬܐ ܂"),
    ],
)
def test_words(text: str, words: str) -> None:
    assert tokenise_sentence(text) == words.split()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("यह घर है। वह नहीं है॥ हाँ।", ["यह घर है ।", "वह नहीं है ॥", "हाँ ।"]),
        ("آپ کیسے ہیں؟ میں ٹھیک ہوں۔ اچھا!", ["آپ کیسے ہیں ؟", "میں ٹھیک ہوں ۔", "اچھا !"]),
        ("ይህ ቤት ነው። ነው፧ እሺ፣ ነው።", ["ይህ ቤት ነው ።", "ነው ፧", "እሺ ፣ ነው ።"]),
        ("Սա տուն է։ Այո։", ["Սա տուն է ։", "Այո ։"]),
        ("Ո՞ւր ես գնում: Տուն:", ["Ո՞ւր ես գնում :", "Տուն :"]),
        ("Πού μένεις; Στην Αθήνα! Πότε\u0301; Αύριο!", ["Πού μένεις ;", "Στην Αθήνα !", "Πότε\u0301 ;", "Αύριο !"]),
        ("እዚህ ነው፡፡ መቼ ነው:: ነገ።", ["እዚህ ነው ፡፡", "መቼ ነው : :", "ነገ ።"]),
        ("ខ្ញុំ មក។ គាត់ ទៅ៕ ល្អ!", ["ខ្ញុំ មក ។", "គាត់ ទៅ ៕", "ល្អ !"]),
        ("ང་ འགྲོ། ཁོང་ ཕེབས།", ["ང་ འགྲོ །", "ཁོང་ ཕེབས །"]),
        ("ܐܢܐ ܐܙܠ܂ ܐܝܟܐ؟ ܠܒܝܬܐ܁", ["ܐܢܐ ܐܙܠ ܂", "ܐܝܟܐ ؟", "ܠܒܝܬܐ ܁"]),
    ],
)
def test_sentences_of_other_scripts(text: str, sentences: list[str]) -> None:
    """They end at the marks of the script, and how they stand shows whether text is tokenised, or wrapped."""
    for sample in ("", text * (tokenizer.SMALLEST_TRAINING_TEXT // len(text) + 1)):
        split = sentence_splitter(sample)
        assert [" ".join(words) for words in tokenise_paragraph(text, split)] == sentences
    assert not looks_tokenised(text)
    assert not looks_tokenised("राम घर गया । वह थक गया था, इसलिए सो गया । फिर उठा ।"), "raw text may have it apart"
    assert [tokenise_sentence(sentence) for sentence in sentences] == [sentence.split() for sentence in sentences]
    line = f"{text.split()[0]} " * 8 + text
    assert looks_wrapped(["x" * 60 + ". x"] * 9)
    assert not looks_wrapped([line[-70:]] * 9)


FRENCH_DIALOGUE = "Il est arrivé hier. Elle, non. Pourquoi pas ? Rien ! « Viens ! » dit-elle ; il rit : « Moi ? »"


@pytest.mark.parametrize(
    "text",
    [
        FRENCH_DIALOGUE,
        re.sub(r" (?=[?!;:])", "\u00a0", FRENCH_DIALOGUE),
        re.sub(r" (?=[?!;])", "\u202f", FRENCH_DIALOGUE),
        "Tu viens ?\nOui, j'arrive !\nOù es-tu ?\nQuoi ?\nMais oui !\nIci.",
        'Il crie : " Viens ! " Elle, non.',
        "Er kam bzw. ging, wie man sagt. Warum nicht? „Komm!“, sagte er.",
        "Why not? He came, and went.",
    ],
)
def test_raw_text_is_seen_as_such(text: str) -> None:
    """French sets some marks apart in raw text, too."""
    assert not looks_tokenised(text)
    assert not looks_tokenised("\n".join([text] * 20))


@pytest.mark.parametrize(
    "text",
    [
        "Il est arrivé hier .\nElle , non .\nPourquoi pas ?\n« Viens ! » dit-elle ;",
        "Pourquoi pas ?\nQui est là ?\nViens !",
        "Er kam bzw. ging , wie Hr. Doll sagt .\nWarum nicht ?",
        "Warum nicht ?\nKomm !",
        "Why not ?\nWho is it , Mr. Smith ?\nIt 's me !",
        "Why not ?\nWho is it ?",
        '" Yes "\n" No "',
        'צה"ל יצא מארה"ב , אמר ד"ר כהן ב " הארץ " .',
    ],
)
def test_tokenised_text_is_seen_as_such(text: str) -> None:
    """Short questions without commas are, too."""
    assert looks_tokenised(text)
    assert looks_tokenised("\n".join([text] * 20))
    assert [tokenise_sentence(line) for line in text.split("\n")] == [line.split() for line in text.split("\n")]


@pytest.mark.parametrize(
    "text",
    [
        "See Nr. 7 and Vol. 2 there.|Then go.",
        "Cf. Fig. 3 or op. 27 now.|No, no.|Six came.",
        "A Ph.D. student from the U.S. came.|He is an M.A. now.",
        "Am 17. Oktober kam der 2. Brief an.|Es war 1990.|Dann nichts.",
        "1. First of all we begin.|Then we end.",
        "He came at 5 p.m.|The door was shut.",
        "»Ja!« »Nein.« Er ging.".replace("« ", "«|"),
        '"Why?" he asked.|"No."|She left... quietly.',
        "It is so.[3]|He left.",
        "Ο κ. Νίκος είπε: «Γιατί; ρώτησε.»|Δεν ξέρω, π.χ. πότε.",
        "The word λόγος; and more.|A; B: C; d.",
        "डॉ. वर्मा ४.५ किमी चले।|प्रो. राय रुके।",
        "डॉ वर्मा चले.|राय रुके.",
        "পৃ. ১২ দেখুন।|শেষ।",
        "ڈاکٹر. خان ۲.۵ بجے آئے۔|وہ گئے۔",
        "سافر أ. خالد.|متى يعود؟|غدا.",
    ],
)
def test_where_sentences_end(text: str) -> None:
    split = sentence_splitter("")
    assert [part.strip() for part in split(text.replace("|", " "))] == text.split("|")


def test_ends_are_those_of_unicode() -> None:
    characters = "".join(map(chr, range(128, 1 << 16)))
    for known, prop in ((tokenizer._OTHER_ENDS, "Sentence_Terminal"), (tokenizer._MARKS, "Terminal_Punctuation")):
        found = set(re.findall(f"[{known}]", characters))
        assert found >= set(regex.findall(rf"\p{{{prop}}}", characters))
        assert found <= {*"…¿¡·", *regex.findall(r"\p{Terminal_Punctuation}", characters)}


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Mr. [**Known. Name 12**] came.", ["Mr. [**Known._Name_12**] came ."]),
        ("On ((DAY)). She saw ((DAY))'s [((NAME))].", ["On ((DAY)) .", "She saw ((DAY)) 's [ ((NAME)) ] ."]),
        ("((A B)). ((C)) [**x! Y**]! No.", ["((A_B)) .", "((C)) [**x!_Y**] !", "No ."]),
        ("X\uffff [**a ((b)) c**] don't.", ["X [**a_((b))_c**] do n't ."]),
        ("&lt;&lt;AT&amp;T>>, no.", ["<<AT&T>> , no ."]),
        ("<<a ((b>> c)) d)).", ["<<a_((b>> c ) ) d ) ) ."]),
        ("Z-z Y, ((z-z y)), z-< y.", ["Z-z_Y , ((z-z_y)) , z- < y ."]),
    ],
)
def test_what_is_kept(text: str, sentences: list[str]) -> None:
    patterns = [r"\(\(.*?\)\)|q*", r"\[\*\*.*?\*\*\]", "(?P<n><)<.*?>>", r"(?i)(?P<n>z)-\1 y", "Z-z"]
    keep = list(map(re.compile, patterns))
    assert [" ".join(words) for words in tokenise_paragraph(text, sentence_splitter(""), keep)] == sentences
    assert " ".join(tokenise_sentence(sentences[0].replace("_", " "), keep)) == sentences[0]
    assert tokenise_sentence("X\uffff is no word.") == ["X\uffff", "is", "no", "word", "."]


def test_long_rows_of_marks_take_no_square_of_their_length() -> None:
    split = sentence_splitter("")
    for text in (
        "." * 200_000 + "x",
        "?!" * 100_000 + "x",
        "።" * 100_000,
        "λ;" * 100_000,
        "a.)" * 60_000,
        "#" * 200_000,
        ":" * 200_000,
        "a'" * 90_000,
    ):
        assert split(text)[0]
        assert tokenise_sentence(text)


def test_abbreviations_are_learned_from_the_text() -> None:
    generator = random.Random(0)
    words = [f"{one}{two}{three}" for one in "bdfgklm" for two in "aeiou" for three in ("n", "rt", "st", "ll")]

    def sentence() -> str:
        chosen = generator.choices(words, k=8)
        return " ".join([chosen[0].title(), *chosen[1:4], *generator.choice([["bzgl.", "Miete"], ["x"]]), *chosen[4:]])

    text = "".join(f"{sentence()}. " for _ in range(1500))
    learned = tokenise_paragraph("Ban bzgl. Garten dell. Kort ist da.", sentence_splitter(text))
    assert learned == [["Ban", "bzgl.", "Garten", "dell", "."], ["Kort", "ist", "da", "."]]
    assert len(tokenise_paragraph("Ban bzgl. Garten dell. Kort ist da.", sentence_splitter(""))) == 3


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["a", "é1", ".", "+", "-", "@", "_", " ", "www.", "http://", '"', ")", "/"]), max_size=40)
)
def test_addresses_are_those_of_the_plain_pattern(parts: list[str]) -> None:
    """The plain pattern is the one without a limit, which takes the square of the length."""
    text = "".join(parts)
    plain = re.compile(tokenizer._TOKEN.pattern.replace("{1,64}", "+"))
    assert tokenizer._TOKEN.findall(text) == plain.findall(text)
