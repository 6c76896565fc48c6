"""Trained words: the vector of a word is that of its row and of its letters, whatever stands beside it."""

import torch
from downstream.modules.trained_words import FILTER_WIDTH, TrainedWords, frequent


def test_vectors_are_those_of_a_plain_table_and_a_plain_convolution() -> None:
    torch.manual_seed(0)
    assert frequent("banana bread") == ["a", "b", "n"]
    words = TrainedWords(["ada", "met"], ["a", "b", "d", "A"], word_size=2, filters=5)
    sentences = [("Ada", "met", "b", "Ada"), ("unknown",)]
    found = words(sentences)
    assert found.shape == (2, 4, words.output_size)
    [convolution] = words.cnn._convolution_layers
    for sentence, row in zip(sentences, found, strict=True):
        for word, vector in zip(sentence, row, strict=False):
            own = words.words.weight[{"ada": 3, "met": 4}.get(word.lower(), 1)]
            rows = [2, *({"a": 3, "b": 4, "d": 5, "A": 6}.get(each, 1) for each in word), 2]
            letters = words.characters.weight[rows]
            places = [letters[start : start + FILTER_WIDTH].T for start in range(len(word))]
            scores = [(convolution.weight * each).sum(dim=(1, 2)) + convolution.bias for each in places]
            plain = torch.cat([own, torch.stack(scores).relu().amax(dim=0)])
            torch.testing.assert_close(vector, plain)
    assert not found[1, 1:].any(), "what stands after the end"
