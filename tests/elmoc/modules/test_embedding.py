"""ElmoEmbedding: its values and gradients are those of the plain recurrence, sentence by sentence."""

import pickle
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.errors import InputError
from elmoc.model import with_encoder
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.sources import RandomVectors
from safetensors.torch import load_file, save_file
from torch import Tensor

from elmoc import ElmoC, ElmoEmbedding

SENTENCES = [["The", "cat", "sat", "."], [], ["a/b"], ["Zürich"] * 7]
WEIGHTS = [0.5, -0.3, 1.1]


def plain_representation(encoder: BidirectionalEncoder, elmo: ElmoC, sentence: list[str], weights: Tensor) -> Tensor:
    """[n, 2P] of one sentence alone, by the plain recurrence and a sum over layers."""
    words = ["<s>", *sentence, "</s>"]
    vectors = torch.from_numpy(elmo.directory.transform.lookup(words, elmo.word_vectors))
    states = encoder(vectors.unsqueeze(0), torch.tensor([len(words)]))[0, :, 1:-1]  # [L + 1, n, 2P]
    return sum(weight * layer for weight, layer in zip(weights.softmax(0), states, strict=True))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_values_and_gradients_are_those_of_the_plain_recurrence(
    elmo: ElmoC, model_path: Path, requires_grad: bool
) -> None:
    embedding = ElmoEmbedding(elmo, requires_grad=requires_grad, dropout=0.0, num_output_representations=2).eval()
    with torch.no_grad():
        for mix in embedding.mixes:
            mix.weights.copy_(torch.tensor(WEIGHTS))
            mix.gamma.fill_(1.5)
    (first, second), mask = embedding(SENTENCES)
    assert mask.tolist() == [[position < len(words) for position in range(7)] for words in SENTENCES]
    assert first.shape == (4, 7, embedding.output_size)
    assert torch.equal(first, second)
    assert not first[~mask].any(), "padding is zero"

    plain = read_model_directory(model_path).encoder
    weights = torch.tensor(WEIGHTS, requires_grad=True)
    expected = [1.5 * plain_representation(plain, elmo, words, weights) for words in SENTENCES]
    for row, words, states in zip(first, SENTENCES, expected, strict=True):
        torch.testing.assert_close(row[: len(words)], states, atol=1e-5, rtol=1e-5)

    torch.manual_seed(1)
    grad = torch.randn_like(first)
    (first * grad).sum().backward()
    sum((states * row[: len(states)]).sum() for states, row in zip(expected, grad, strict=True)).backward()
    torch.testing.assert_close(embedding.mixes[0].weights.grad, weights.grad, atol=1e-4, rtol=1e-4)
    assert embedding.mixes[1].weights.grad is None
    assert (embedding.states.encoder is not None) == requires_grad
    assert all(parameter.grad is None for parameter in elmo.encoder.parameters()), "the model itself never changes"
    if embedding.states.encoder is not None:
        ours, theirs = (dict(each.named_parameters()) for each in (embedding.states.encoder, plain))
        for name, parameter in theirs.items():
            torch.testing.assert_close(ours[name].grad, parameter.grad, atol=1e-4, rtol=1e-4, msg=name)


def test_modes_choose_the_dropouts(elmo: ElmoC) -> None:
    frozen, trained = (ElmoEmbedding(elmo, requires_grad=each, dropout=0.0) for each in (False, True))
    once, again = (frozen.train()(SENTENCES).representations[0] for _ in range(2))
    assert torch.equal(once, again), "a frozen encoder drops nothing"
    for _ in range(2):
        once, again = (trained(SENTENCES).representations[0] for _ in range(2))
        assert not torch.equal(once, again), "from the beginning, as every module is in training mode at first"
        trained.eval().train()
    torch.testing.assert_close(trained.eval()(SENTENCES).representations[0], frozen(SENTENCES).representations[0])
    kept = ElmoEmbedding(elmo, dropout=0.5).train()([["x"] * 50]).representations[0] != 0
    assert 0.3 < kept.float().mean() < 0.7


def test_the_state_dict_holds_what_is_trained(elmo: ElmoC) -> None:
    frozen = ElmoEmbedding(elmo, num_output_representations=2)
    assert sorted(frozen.state_dict()) == [
        *("mixes.0.gamma", "mixes.0.weights", "mixes.1.gamma", "mixes.1.weights"),
        "states._extra_state",
    ]
    trained, other = (ElmoEmbedding(elmo, requires_grad=True, dropout=0.0).eval() for _ in range(2))
    other = pickle.loads(pickle.dumps(deepcopy(other)))
    with torch.no_grad():
        for parameter in trained.parameters():
            parameter.add_(0.1)
    before = other(SENTENCES).representations[0]
    other.load_state_dict(trained.state_dict(), strict=True)
    assert not torch.equal(before, other(SENTENCES).representations[0])
    assert torch.equal(trained(SENTENCES).representations[0], other(SENTENCES).representations[0])


MODELS = ("another", "vectors", "clipped", "centred")


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("saved", ["first frozen", "first trained"])
@pytest.mark.parametrize(
    "made",
    [*(f"{each} {how}" for each in MODELS for how in ("frozen", "trained")), "first frozen"],
)
def test_a_state_dict_names_what_it_lacks(elmo: ElmoC, tmp_path: Path, saved: str, made: str, strict: bool) -> None:
    """The encoder where it is frozen, and the word vectors, which a state dict never holds."""
    encoder = deepcopy(elmo.encoder)
    with torch.no_grad():
        next(encoder.parameters()).add_(1.0)
    vectors = ElmoC(elmo.directory, RandomVectors(seed=99, size=6))
    # The same weights that are clipped elsewhere.
    config = replace(encoder.config, sizes=replace(encoder.config.sizes, cell_clip=0.1))
    clipped = ElmoC(replace(elmo.directory, encoder=BidirectionalEncoder(config)), elmo.word_vectors)
    clipped.encoder.load_weights(elmo.encoder.weights())
    transform = replace(elmo.directory.transform, mean=torch.ones(6).numpy())
    centred = ElmoC(replace(elmo.directory, transform=transform), elmo.word_vectors)
    others = (with_encoder(elmo, encoder), vectors, clipped, centred)
    models = {"first": elmo} | dict(zip(MODELS, others, strict=True))
    chosen = [models[each.split()[0]] for each in (saved, made)]
    one, other = (ElmoEmbedding(chosen[i], requires_grad="trained" in each) for i, each in enumerate((saved, made)))
    save_file(one.state_dict(), tmp_path / "state.safetensors")
    state = load_file(tmp_path / "state.safetensors")
    if (saved, made) in (("first frozen", "first frozen"), ("first trained", "another trained")):
        other.load_state_dict(state, strict=strict)
        return
    names = [f"{each.word_vectors.fingerprint}.* settings {each.identity['settings']}" for each in chosen]
    with pytest.raises(InputError, match=".*encoder .*".join(names)):
        other.load_state_dict(state, strict=strict)


@pytest.mark.parametrize("weight_type", ["float32", "float16", "int8"])
def test_what_was_trained_on_can_be_saved(elmo: ElmoC, tmp_path: Path, weight_type: str) -> None:
    training = {"name": "Ada's"}
    record = training | {"held_out": {"cosine": 0.3}}
    elmo = ElmoC(replace(elmo.directory, weight_type=weight_type, training=record), elmo.word_vectors, "auto")
    embedding = ElmoEmbedding(elmo, requires_grad=True, dropout=0.0)
    with torch.no_grad():
        for parameter in embedding.states.parameters():
            parameter.add_(0.05)
    assert embedding.elmo.precision != "int8"
    with pytest.raises(InputError, match="int8 is for inference alone"):
        ElmoEmbedding(ElmoC(elmo.directory, elmo.word_vectors, "int8"), requires_grad=True)
    embedding.elmo.save_pretrained(tmp_path / "trained")
    back = ElmoC.from_pretrained(tmp_path / "trained", precision="float32")
    assert back.fingerprint == embedding.elmo.fingerprint != elmo.fingerprint
    assert back.directory.training == training, "without metrics of the weights before"
    expected = embedding.eval()([["cat", "sat"]]).representations[0][0]
    torch.testing.assert_close(back.embed(["cat", "sat"]).mean(0), expected, atol=1e-5, rtol=0)


def test_few_words(elmo: ElmoC) -> None:
    embedding = ElmoEmbedding(elmo, mix_weights=WEIGHTS)
    assert not any(parameter.requires_grad for parameter in embedding.parameters())
    for sentences, shape in (([], (0, 0, 10)), ([[]], (1, 0, 10)), ([[], []], (2, 0, 10))):
        [states], mask = embedding(sentences)
        assert (states.shape, mask.shape) == (shape, shape[:2])
    with pytest.raises(InputError, match="is not a list of sentences"):
        embedding(torch.ones(2, 3, 50, dtype=torch.long))


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_module_in_another_type_computes_in_it(elmo: ElmoC, requires_grad: bool) -> None:
    embedding = ElmoEmbedding(elmo, dropout=0.0, requires_grad=requires_grad).eval()
    [expected], _ = embedding(SENTENCES)
    [found], _ = embedding.bfloat16()(SENTENCES)
    assert found.dtype == torch.bfloat16
    assert embedding.double().elmo.embed(["cat"]).dtype == torch.float32
    torch.testing.assert_close(found.float(), expected, atol=0.05, rtol=0.05)
