"""The sentence encoder: sentences become layer states, each as if it stood alone."""

import multiprocessing
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from elmoc.errors import InputError

from elmoc import ElmoC, ElmoEmbedding

SENTENCES = [["The", "cat", "sat", "."], [], ["a/b", "Zürich"], ["."], ["The", "cat", "sat", "."], ["x"] * 30]


def test_states_that_are_not_finite_are_refused(model_path: Path) -> None:
    model = ElmoC.from_pretrained(model_path, precision="float32")
    with torch.no_grad():
        model.encoder.direction("forward").input_layer.norm.weight.fill_(3e38)
    with pytest.raises(InputError, match=str(model_path)):
        ElmoC(model.directory, model.word_vectors).embed_batch(SENTENCES[:3])


def test_models_of_the_same_weights_and_other_clips_are_others(model_path: Path) -> None:
    one, other = (ElmoC.from_pretrained(model_path, precision="float32") for _ in range(2))
    for name in ("dropout", "cell_clip"):
        object.__setattr__(other.encoder.config.sizes, name, 0.25)
        assert (other.identity == one.identity) == (name == "dropout"), "dropout is for training alone"


def test_progress_is_told_of_every_word(elmo: ElmoC) -> None:
    counted: list[int] = []
    assert elmo.encode(elmo.look_up([]), progress=counted.append) == counted == []
    elmo.encode(elmo.look_up([["w"] * 23, ["cat"]]), batch_words=4, progress=counted.append)
    assert counted == [23, 1]


def test_each_word_type_is_looked_up_once_and_those_without_a_vector_are_named(elmo: ElmoC) -> None:
    asked: list[str] = []
    lookup = elmo.word_vectors.lookup

    def counting(words: Sequence[str]) -> np.ndarray:
        asked.extend(words)
        vectors = lookup(words)
        vectors[[word == "nowhere" for word in words]] = 0
        return vectors

    elmo.word_vectors.lookup = counting  # type: ignore[method-assign]
    for _ in range(2):
        elmo.embed_batch([*SENTENCES, ["nowhere", "cat"]])
    assert sorted(asked) == sorted({"<s>", "</s>", "nowhere"}.union(*SENTENCES))
    assert list(elmo.unknown_words) == ["nowhere"]


def test_a_forked_process_computes_without_the_threads_of_its_parent(elmo: ElmoC) -> None:
    sentences = [["The", "cat"] * 60] * 60
    torch.set_num_threads(2)
    expected = elmo.embed_batch(sentences)[0]
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=lambda: queue.put((elmo.embed_batch(sentences)[0].numpy(), torch.get_num_threads())))
    child.start()
    child.join(200)
    child.kill()
    assert child.exitcode == 0, "it waits for threads that are not there"
    states, used = queue.get()
    np.testing.assert_allclose(states, expected.numpy(), atol=1e-5)
    assert (used, torch.get_num_threads()) == (1, 2)


TOKEN = type("Token", (), {"__repr__": lambda self: "The"})()
TABLE = type("Table", (), {"ndim": 2, "__iter__": lambda self: iter(["word", "tag"])})()
# What people give for the words of a sentence, and what of it is named.
WRONG_WORDS = {
    "string": ("The cat", "'The cat' (str)"),
    "bytes": (b"The", "b'The' (bytes)"),
    "tokens": ([TOKEN, TOKEN], "word 1 of [The, The] is The (Token)"),
    "missing": (["The", None], "word 2 of ['The', None] is None (NoneType)"),
    "missing in an array": (np.array(["The", np.nan], dtype=object), "nan (float)"),
    "encoded": (["a", b"b"], "b'b' (bytes)"),
    "too deep": ([["The"], ["cat"]], "['The'] (list)"),
    "nothing": (None, "None (NoneType)"),
    "a dictionary": ({"The": 1}, "{'The': 1} (dict)"),
    "a set": ({"The"}, "{'The'} (set)"),
    "a table": (TABLE, "(Table)"),
    "one word in an array": (np.array("The"), "array('The'"),
    "ids": (torch.ones(2, 50), "(Tensor)"),
    "empty": (["a", ""], "a word of ['a', ''] is empty"),
    "with the end of a line": (["a", "b\n"], "begins or ends with white space: take that out"),
    "too long": (["a"] * 40_001, "40,001 words, more than 40,000: divide it into sentences"),
}


@pytest.mark.parametrize(("given", "named"), WRONG_WORDS.values(), ids=WRONG_WORDS)
def test_a_sentence_is_a_list_of_strings_at_every_door(elmo: ElmoC, given: Any, named: str) -> None:
    doors: list[tuple[Callable[..., object], Any, str]] = [
        (elmo.embed, given, "sentence 1: "),
        (elmo.embed_batch, [["a"], given], "sentence 2: "),
        (lambda sentences: list(elmo.embed_sentences(iter(sentences))), [["a"], [], given], "sentence 3: "),
        *((ElmoEmbedding(elmo, requires_grad=each), [["a"], given], "sentence 2: ") for each in (False, True)),
    ]
    for door, value, place in doors:
        with pytest.raises(InputError, match=f"^{place}.*{re.escape(named)}"):
            door(value)


@pytest.mark.parametrize("given", [None, 7, "cat", b"cat", {"cat": 1}, ["cat"], [["a"], "b"], np.array("cat"), [7]])
def test_a_batch_is_a_list_of_sentences(elmo: ElmoC, given: Any) -> None:
    for door in (elmo.embed_batch, lambda x: list(elmo.embed_sentences(x)), ElmoEmbedding(elmo)):
        with pytest.raises(InputError, match=r"is not a list of (words|sentences): a sentence is a list of"):
            door(given)


def test_anything_like_a_list_of_strings_is_a_sentence(elmo: ElmoC) -> None:
    expected = elmo.embed(["The", "cat"])
    for given in (("The", "cat"), np.array(["The", "cat"]), np.array(["The", "cat"], object), iter(["The", "cat"])):
        assert torch.equal(elmo.embed(given), expected)  # type: ignore[arg-type]
    for batch in (np.array([["The", "cat"]]), iter([("The", "cat")])):
        assert torch.equal(elmo.embed_batch(batch)[0], expected)  # type: ignore[arg-type]


def test_it_says_its_sizes_and_where_it_computes(elmo: ElmoC) -> None:
    first, second, third = repr(elmo).splitlines()
    assert elmo.fingerprint in first
    assert second.endswith("; layer states [3, n, 10]")
    assert third == " float32 on cpu>"
    public = " ".join(sorted(name for name in vars(ElmoC) if not name.startswith("_")))
    assert public == "embed embed_batch embed_sentences embed_texts from_pretrained save_pretrained to"
