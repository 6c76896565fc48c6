"""Words of task data: spelled as the pretraining text, and one word each."""

import pytest
from downstream.inputs.sentence import make_sentence, plain_word
from elmoc.text.tokenizer import tokenise_sentence


@pytest.mark.parametrize("space", [" ", "\u00a0", "\u2003", "\u3000", "\x85", "\u2028", "\x1c"])
def test_words_survive_a_text_that_is_split_on_white_space(space: str) -> None:
    for column in (f"a{space}b", f"{space}a", f"a{space}{space}b", space, ""):
        assert plain_word(column).split() == [plain_word(column)]


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        ("-LRB- a -RRB-", "( a )"),
        ("-lsb- -rcb-", "[ }"),
        ("`` quoted ''", '" quoted "'),
        ("“ it ’s ”", '" it \'s "'),
        ("don’t", "don't"),
        ('צה״ל צה”ל צה"ל ״', 'צה"ל צה"ל צה"ל "'),
        ("1\\/2 \\* and\\/or", "1/2 * and/or"),
        ("/. /?", ". ?"),
        ("’’ ‘‘ '’ \\/.", '" " " .'),
        ("He 's -- well - known !", "He 's -- well - known !"),
        ("-LRB-x http://a/b A.B.", "-LRB-x http://a/b A.B."),
    ],
)
def test_spellings(words: str, plain: str) -> None:
    sentence = make_sentence(words.split(), file="f", line=3)
    assert (" ".join(sentence.words), sentence.file, sentence.line) == (plain, "f", 3)
    assert make_sentence(sentence.words, file="f", line=3) == sentence, "plain words stay as they are"


def test_the_tokeniser_spells_brackets_and_quotes_alike() -> None:
    assert tokenise_sentence("“It’s (so)”") == list(
        make_sentence(["``", "It", "'s", "-LRB-", "so", "-RRB-", "''"], file="", line=1).words
    )
