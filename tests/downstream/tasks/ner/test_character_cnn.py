"""The character CNN: the convolution of each word, blind to padding."""

import pytest
import torch
from downstream.inputs.sentence import make_sentence
from downstream.tasks.ner.character_cnn import MOST_CHARACTERS, CharacterCnn


def sentence(text: str) -> object:
    return make_sentence(text.split(), file="f", line=1)


def cnn(widths: tuple[int, ...] = (3,)) -> CharacterCnn:
    torch.manual_seed(0)
    return CharacterCnn(characters="abcxyz", size=4, filters=5, widths=widths)


@pytest.mark.parametrize("word", ["a", "abc", "yazbx", "a?c"])
@pytest.mark.parametrize("widths", [(3,), (3, 4, 5)])
def test_a_word_is_the_maximum_over_its_windows(word: str, widths: tuple[int, ...]) -> None:
    module = cnn(widths)
    known = {character: row for row, character in enumerate("abcxyz", 4)}
    ids = [1, *(known.get(character, 3) for character in word), 2]
    embedded = module.embedding.weight[ids]
    expected = []
    for place, width in enumerate(widths):
        convolution = getattr(module.encoder, f"conv_layer_{place}")
        for kernel, bias in zip(convolution.weight, convolution.bias, strict=True):  # kernel [size, width]
            windows = [embedded[start : start + width] for start in range(len(ids) - width + 1)]
            values = [float(((window.T * kernel).sum() + bias).detach()) for window in windows]
            expected.append(max([0.0, *values]) if values else 0.0)
    (output,) = module([sentence(word)])
    assert output[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_padding_and_company_change_nothing() -> None:
    module = cnn((3, 4))
    together = module([sentence("abc x"), sentence("yyyyyyyyy"), sentence("x q abc")])
    assert together.shape == (3, 3, 10)
    assert together[0, 2:].abs().sum() == together[1, 1:].abs().sum() == 0
    torch.testing.assert_close(together[0, :2], module([sentence("abc x")])[0])
    torch.testing.assert_close(together[2, 2], together[0, 0])


def test_a_word_of_a_million_characters_is_cut() -> None:
    long, cut = (sentence("ab" * length) for length in (500_000, MOST_CHARACTERS // 2))
    layer = cnn()
    assert torch.equal(layer([long]), layer([cut]))
