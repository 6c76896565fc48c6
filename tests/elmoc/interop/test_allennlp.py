"""AllenNLP's contract: what its `Elmo` does with the object that it is given, by a small twin of `Elmo.forward`."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from allennlp_light.modules.scalar_mix import ScalarMix
from allennlp_light.nn.util import remove_sentence_boundaries
from elmoc.errors import InputError
from elmoc.interop.allennlp import ElmoBiLm, ElmoEmbedder, words_of
from torch import Tensor, nn

from elmoc import ElmoC, ElmoEmbedding

SENTENCES = [["The", "cat", "sat", "."], [], ["a/b", "Zürich", "日本語"]]


class Elmo(nn.Module):
    """What `allennlp.modules.elmo.Elmo` does with a `module` (AllenNLP 2.10), which no package holds that installs."""

    def __init__(self, module: ElmoBiLm, num_output_representations: int = 1, do_layer_norm: bool = False) -> None:
        super().__init__()
        self._elmo_lstm = module
        self._dropout = nn.Dropout(p=0.5)
        for k in range(num_output_representations):
            self.add_module(f"scalar_mix_{k}", ScalarMix(module.num_layers, do_layer_norm=do_layer_norm))
        self._count = num_output_representations

    def get_output_dim(self) -> int:
        return self._elmo_lstm.get_output_dim()

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict:
        shape = inputs.size()
        if len(shape) > 3:  # documents of sentences
            inputs = inputs.view(-1, *shape[-2:])
        output = self._elmo_lstm(inputs, word_inputs)
        representations = []
        for k in range(self._count):
            mixed = getattr(self, f"scalar_mix_{k}")(output["activations"], output["mask"])
            mixed, mask = remove_sentence_boundaries(mixed, output["mask"])
            representations.append(self._dropout(mixed))
        if len(shape) > 3:
            representations = [each.view(*shape[:-1], -1) for each in representations]
            mask = mask.view(shape[:-1])
        return {"elmo_representations": representations, "mask": mask}


def character_ids(sentences: list[list[str]], words: int = 0) -> Tensor:
    """int64 [B, T, 50], as `ELMoCharacterMapper.convert_word_to_char_ids` and the indexer's padding make them."""
    longest = max(words, *map(len, sentences))
    batch = torch.zeros(len(sentences), longest, 50, dtype=torch.int64)
    for row, sentence in enumerate(sentences):
        for column, word in enumerate(sentence):
            ids = [260] * 50
            ids[0] = 258
            if word in ("<S>", "</S>"):
                ids[1], ids[2] = (256 if word == "<S>" else 257), 259
            else:
                encoded = word.encode("utf-8", "ignore")[:48]
                ids[1 : 1 + len(encoded)] = encoded
                ids[1 + len(encoded)] = 259
            batch[row, column] = torch.tensor(ids) + 1
    return batch


@pytest.fixture
def elmo(model_path: Path) -> ElmoC:
    return ElmoC.from_pretrained(model_path)


@pytest.mark.parametrize("words", [0, 6])
def test_the_object_has_what_elmo_reads(elmo: ElmoC, words: int) -> None:
    module = ElmoBiLm(elmo)
    output = module(character_ids(SENTENCES, words))
    time = max(words, 4) + 2
    assert (module.num_layers, module.get_output_dim()) == (3, 10)
    assert [tuple(layer.shape) for layer in output["activations"]] == [(3, time, 10)] * 3
    assert output["mask"].tolist() == [[column < len(words) + 2 for column in range(time)] for words in SENTENCES]
    by_words = module(SENTENCES)
    assert all(map(torch.equal, by_words["activations"], (layer[:, :6] for layer in output["activations"])))
    for row, sentence in enumerate(SENTENCES):
        states = torch.stack([layer[row, 1 : len(sentence) + 1] for layer in output["activations"]])
        torch.testing.assert_close(states, elmo.embed(sentence), atol=1e-5, rtol=0)
    assert all(layer[0, 0].any() and layer[0, 5].any() for layer in output["activations"]), "boundaries have states"


@pytest.mark.parametrize("do_layer_norm", [False, True])
def test_elmo_gives_what_our_embedding_gives(elmo: ElmoC, do_layer_norm: bool) -> None:
    theirs = Elmo(ElmoBiLm(elmo), num_output_representations=2, do_layer_norm=do_layer_norm).eval()
    ours = ElmoEmbedding(elmo, num_output_representations=2, layer_norm=do_layer_norm).eval()
    expected, output = ours(SENTENCES), theirs(character_ids(SENTENCES))
    assert theirs.get_output_dim() == ours.output_size
    assert torch.equal(output["mask"], expected.mask)
    for mine, other in zip(expected.representations, output["elmo_representations"], strict=True):
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-5)
    documents = character_ids([*SENTENCES, ["x"]]).view(2, 2, 4, 50)
    assert theirs(documents)["elmo_representations"][0].shape == (2, 2, 4, 10)


def test_elmo_trains_the_encoder_where_asked(elmo: ElmoC) -> None:
    frozen, trained = (Elmo(ElmoBiLm(elmo, requires_grad=each)).eval() for each in (False, True))
    for module in (frozen, trained):
        module(character_ids(SENTENCES))["elmo_representations"][0].square().sum().backward()
    assert [name for name, each in frozen.named_parameters() if each.grad is None] == []
    assert not any("encoder" in name for name, _ in frozen.named_parameters())
    of_encoder = [each.grad for name, each in trained.named_parameters() if "encoder" in name]
    assert of_encoder
    assert all(gradient is not None for gradient in of_encoder)
    other = deepcopy(trained)
    other.load_state_dict(trained.state_dict())


def test_words_come_back_from_their_characters() -> None:
    assert words_of(character_ids(SENTENCES)) == SENTENCES
    assert words_of(character_ids([["<S>", "</S>", "<s>"]])) == [["<s>", "</s>", "<s>"]]
    [[back]] = words_of(character_ids([["é" * 30]]))
    assert back == "é" * 24, "48 bytes"


def test_a_character_cnn_gives_the_same_states_by_ids_where_these_end_inside_a_letter(imported: Path) -> None:
    letters = "éßñ€语ऄࠀ😀𐍈\U0010ffff"  # of two to four bytes, and the first and last ones of their kinds
    words = ["x" * most + letter * 20 for most in range(4) for letter in letters]
    module = ElmoBiLm(ElmoC.from_pretrained(imported))
    by_ids, by_words = module(character_ids([words])), module([words])
    for ids, tokens in zip(by_ids["activations"], by_words["activations"], strict=True):
        torch.testing.assert_close(ids, tokens, atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "change",
    [
        lambda ids: ids.flip(1),
        lambda ids: ids[:, :, 1:],
        lambda ids: torch.where(ids == 260, 261, ids),
        lambda ids: torch.where(ids == ord("c") + 1, 300, ids),
    ],
)
def test_other_ids_are_refused(elmo: ElmoC, change) -> None:
    with pytest.raises(InputError):
        ElmoBiLm(elmo)(change(character_ids([["cat"], ["cat", "sat"]])))


def test_the_embedder_gives_arrays(elmo: ElmoC) -> None:
    embedder = ElmoEmbedder(elmo)
    assert embedder.embed_sentence(["The", "cat"]).shape == (3, 2, 10)
    assert embedder.embed_sentence([]).shape == (3, 0, 10)
    assert embedder.embed_sentence([]).dtype == np.float32
    batch, stream = embedder.embed_batch(SENTENCES), embedder.embed_sentences(iter(SENTENCES), batch_size=2)
    for first, second, sentence in zip(batch, stream, SENTENCES, strict=True):
        np.testing.assert_allclose(first, elmo.embed(sentence).numpy(), atol=1e-5)
        np.testing.assert_allclose(second, first, atol=1e-5)
