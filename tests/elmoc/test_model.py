"""The sentence encoder: sentences become layer states, each as if it stood alone."""

from pathlib import Path

import numpy as np
import pytest
import torch

from elmoc import load_model
from elmoc.devices import checked_device
from elmoc.encoders.fused_recurrence import FusedRecurrence
from elmoc.encoders.recurrence import plain_recurrence
from elmoc.errors import InputError
from elmoc.model import SentenceEncoder, length_bucketed
from elmoc.model_directory import read_model_directory
from elmoc.word_vectors.sources import RandomVectors
from tests.references import encode_one
from tests.tiny import tiny_model

SENTENCES = [["The", "cat", "sat", "."], [], ["a/b", "Zürich"], ["."], ["The", "cat", "sat", "."], ["x"] * 30]


def test_two_lines_give_layer_states(model_path: Path) -> None:
    model = load_model(model_path)
    states = model.layer_states(SENTENCES)
    assert [tuple(state.shape) for state in states] == [(3, len(words), 10) for words in SENTENCES]
    assert all(state.dtype == torch.float32 for state in states)
    assert states[1].shape == (3, 0, 10), "an empty sentence has no words"
    torch.testing.assert_close(states[0], states[4])
    assert model.layer_states([]) == []


def test_states_that_are_not_finite_are_refused(model_path: Path) -> None:
    model = load_model(model_path)
    with torch.no_grad():
        model.encoder.direction("forward").input_layer.norm.weight.fill_(3e38)
    with pytest.raises(InputError, match=f"{model_path} gives layer states that are not finite"):
        model.layer_states(SENTENCES)


def test_words_stand_between_boundaries_and_vectors_are_looked_up(model_path: Path) -> None:
    trained = tiny_model()
    words = ["The", "cat", "sat"]
    vectors = np.concatenate(
        [
            trained.transform.boundary[:1],
            RandomVectors(seed=3, size=6).lookup(words),
            trained.transform.boundary[1:],
        ]
    ).astype(np.float64)
    expected = []
    for direction in ("forward", "backward"):
        step = 1 if direction == "forward" else -1
        prefix = f"{direction}_lm."
        weights = {
            name.removeprefix(prefix): value.double().numpy()
            for name, value in trained.encoder.weights().items()
            if name.startswith(prefix)
        }
        layers = encode_one(vectors[::step], weights, layers=2, cell_clip=3.0, projection_clip=3.0)
        expected.append(np.stack(layers)[:, ::step][:, 1:-1])
    (states,) = load_model(model_path).layer_states([words])
    np.testing.assert_allclose(states.numpy(), np.concatenate(expected, axis=-1), atol=1e-5)


def test_states_are_those_of_the_plain_recurrence(model_path: Path) -> None:
    fused = load_model(model_path)
    plain = SentenceEncoder(
        encoder=read_model_directory(model_path).encoder,
        transform=fused.transform,
        word_vectors=fused.word_vectors,
        fingerprint=fused.fingerprint,
    )
    recurrences = [type(model.encoder.forward_lm.encoder.layers[0].recurrence) for model in (fused, plain)]
    assert recurrences == [FusedRecurrence, type(plain_recurrence)]
    for batch_words in (4096, 20):  # padded together, and (nearly) alone
        expected = plain.layer_states(SENTENCES, batch_words=batch_words)
        for ours, theirs in zip(fused.layer_states(SENTENCES, batch_words=batch_words), expected, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_order_and_batch_size_change_nothing(model_path: Path) -> None:
    model = load_model(model_path)
    expected = model.layer_states(SENTENCES)
    for batch_words, batch_size in ((1, 64), (4096, 1), (12, 3), (4096, 2)):
        order = torch.randperm(len(SENTENCES), generator=torch.Generator().manual_seed(batch_words)).tolist()
        states = model.layer_states([SENTENCES[i] for i in order], batch_words=batch_words, batch_size=batch_size)
        for index, state in zip(order, states, strict=True):
            torch.testing.assert_close(state, expected[index], atol=1e-5, rtol=0)


def test_batches_keep_to_their_limits_and_lose_nothing() -> None:
    lengths = [5, 1, 9, 3, 3, 40, 0, 2]
    batches = list(length_bucketed(lengths, batch_words=20, batch_size=3))
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * (max(lengths[index] for index in batch) + 2)
        assert len(batch) <= 3
        assert padded <= 20 or len(batch) == 1
    assert [len(batch) for batch in batches] == [1, 1, 2, 3, 1], "longest first, as full as may be"


def test_progress_counts_the_words(model_path: Path) -> None:
    counted: list[int] = []
    load_model(model_path).layer_states(SENTENCES, batch_size=2, progress=counted.append)
    assert len(counted) == 3
    assert sum(counted) == sum(map(len, SENTENCES))


@pytest.mark.parametrize("device", ["gpu", "cuda:99", "", "cpu:x", "cpu:256", "meta", "mps", "cuda:-1", "cuda:1\n"])
def test_a_device_that_is_not_there_is_named(device: str) -> None:
    with pytest.raises(InputError, match=r"is not a device|is not there"):
        checked_device(device)


def test_numbers_of_devices_do_not_wrap_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert torch.device("cuda:257").index == 1, "what PyTorch makes of it"
    assert checked_device("cuda:1") == torch.device("cuda:1")
    with pytest.raises(InputError, match="cuda:257 is not there, PyTorch sees 2 CUDA devices"):
        checked_device("cuda:257")
