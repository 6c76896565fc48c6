"""The fused recurrence: its outputs, final states and every gradient are the plain one's, whatever runs its kernels."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial

import pytest
import torch
from elmoc.encoders.bidirectional import DirectionEncoder, EncoderConfig
from elmoc.encoders.fused_recurrence import fused_recurrence
from elmoc.encoders.lstm import LstmSizes, LstmStack
from elmoc.encoders.recurrence import LSTMState, Recurrence, RecurrenceOptions, RecurrenceWeights, plain_recurrence
from tests.elmoc.kernels.kinds import KERNELS
from tests.elmoc.kernels.reference import ReferenceKernels
from torch import Tensor

INPUT, PROJECTION, CELL = 20, 18, 37  # no multiples of what fits into a register
CASES = {
    "paper": {},
    "clips that bite": {"cell_clip": 0.4, "projection_clip": 0.3},
    "no clips": {"cell_clip": 0.0, "projection_clip": 0.0},
    "no norm": {"norm": False, "cell_clip": 0.5},
    "no dropout": {"mask": False},
    "one step": {"time": 1},
    "one stream": {"batch": 1},
    "one step of one stream": {"time": 1, "batch": 1},
}


def run(
    recurrence: Recurrence,
    *,
    dtype: torch.dtype = torch.float32,
    autocast: bool = False,
    batch: int = 7,
    time: int = 5,
    norm: bool = True,
    mask: bool = True,
    cell_clip: float = 3.0,
    projection_clip: float = 3.0,
) -> dict[str, Tensor]:
    """Outputs, final state, and the gradients of all that goes in, by name."""
    torch.manual_seed(0)
    shapes = {
        "inputs": (batch, time, INPUT),
        "hidden": (batch, PROJECTION),
        "cell": (batch, CELL),
        "input weight": (4 * CELL, INPUT),
        "hidden weight": (4 * CELL, PROJECTION),
        "bias": (4 * CELL,),
        "projection weight": (PROJECTION, CELL),
    }
    shapes |= {"norm weight": (PROJECTION,), "norm bias": (PROJECTION,)} if norm else {}
    values = {name: (0.4 * torch.randn(shape, dtype=torch.float64)).to(dtype) for name, shape in shapes.items()}
    for value in values.values():
        value.requires_grad_()
    drawn = torch.bernoulli(torch.full((batch, PROJECTION), 0.8)).to(dtype) / 0.8
    weights = [value for name, value in values.items() if name not in ("inputs", "hidden", "cell")]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        outputs, final = recurrence(
            values["inputs"],
            LSTMState(values["hidden"], values["cell"]),
            RecurrenceWeights(*weights) if norm else RecurrenceWeights(*weights, None, None),
            RecurrenceOptions(
                cell_clip=cell_clip,
                projection_clip=projection_clip,
                norm_epsilon=1e-5,
                dropout_mask=drawn if mask else None,
            ),
        )
    weighting = torch.randn(outputs.shape, dtype=torch.float64).to(dtype)
    loss = (outputs * weighting).sum() + (final.hidden * weighting[:, 0]).sum() + final.cell.float().sin().sum()
    loss.backward()
    gradients = {f"gradient of {name}": value.grad for name, value in values.items()}
    return {"outputs": outputs, "final hidden": final.hidden, "final cell": final.cell} | gradients


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_it_is_the_plain_one_in_float32(case: str, kernels: str) -> None:
    fused = run(partial(fused_recurrence, kernels=KERNELS[kernels](torch.float32)), **CASES[case])
    for name, expected in run(plain_recurrence, **CASES[case]).items():
        assert expected.abs().max() > 1e-4, name
        torch.testing.assert_close(fused[name], expected, atol=2e-5, rtol=1e-4, msg=lambda text, name=name: name + text)


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_plain_one_in_float64(case: str) -> None:
    fused = run(partial(fused_recurrence, kernels=ReferenceKernels()), dtype=torch.float64, **CASES[case])
    for name, expected in run(plain_recurrence, dtype=torch.float64, **CASES[case]).items():
        torch.testing.assert_close(fused[name], expected, atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_in_bf16_it_is_no_further_from_float32_than_the_plain_one_under_autocast(case: str, kernels: str) -> None:
    exact = run(plain_recurrence, **CASES[case])
    plain = run(plain_recurrence, autocast=True, **CASES[case])
    fused = run(partial(fused_recurrence, kernels=KERNELS[kernels](torch.bfloat16)), autocast=True, **CASES[case])
    for name, expected in exact.items():
        assert fused[name].dtype == torch.float32, "weights, states and their gradients stay in float32"
        error, allowed = ((each[name].float() - expected).norm() / expected.norm() for each in (fused, plain))
        more = 3 if kernels == "Triton" else 1.5  # its interpreter cuts to bf16 instead of rounding
        assert error < max(more * allowed, 0.004), f"{name}: {error:.4f}, plain {allowed:.4f}"


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")  # NumPy's, in Triton's interpreter
@pytest.mark.parametrize("kernels", KERNELS)
def test_a_value_that_is_not_finite_is_seen(kernels: str) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        recurrence = partial(fused_recurrence, kernels=KERNELS[kernels](dtype))
        for value in (float("nan"), float("inf")):
            weights = RecurrenceWeights(*(torch.ones(shape) for shape in ((8, 3), (8, 3), (8,), (3, 2), (3,), (3,))))
            with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
                outputs, _ = recurrence(
                    torch.full((1, 2, 3), value) * torch.tensor([1.0, -1.0, 1.0]),
                    LSTMState(torch.zeros(1, 3), torch.zeros(1, 2)),
                    weights,
                    RecurrenceOptions(3.0, 3.0, norm_epsilon=1e-5, dropout_mask=None),
                )
            assert outputs.isnan().any()


def encoder_of(*, fast: bool) -> DirectionEncoder:
    sizes = LstmSizes(projection_size=6, cell_size=5, dropout=0.0)
    input_layer = EncoderConfig(sizes, word_vector_size=4).build_input_layer()
    return DirectionEncoder(input_layer, LstmStack(sizes, fast=fast))


def test_gradients_do_not_depend_on_how_weights_are_stored() -> None:
    torch.manual_seed(0)
    stack, inputs = encoder_of(fast=True).encoder, torch.randn(7, 5, 6)

    def gradients(store: Callable[[Tensor], Tensor], streams: int = 7) -> list[Tensor]:
        own = deepcopy(stack)
        for weight in own.parameters():
            weight.data = store(weight.data) if weight.dim() == 2 else weight.data
        with torch.autocast("cpu", torch.bfloat16):
            own(inputs[:streams]).layer_states[-1].float().square().sum().backward()
        return [weight.grad.float() for weight in own.parameters()]

    for store in (Tensor.bfloat16, lambda weight: weight.t().contiguous().t()):
        torch.testing.assert_close(gradients(store), gradients(Tensor.clone), atol=0.05, rtol=0.05)
    assert not any(each.any() for each in gradients(Tensor.clone, streams=0))


def test_windows_after_each_other_do_not_disturb_one_another() -> None:
    """Several windows may be open at once."""
    torch.manual_seed(0)
    encoder, vectors = encoder_of(fast=True), torch.randn(3, 2, 4, 4)
    alone = []
    for window in vectors:
        encoder.zero_grad()
        encoder(window).layer_states[-1].square().sum().backward()
        alone.append(encoder.encoder.layers[0].hidden_weight.grad.clone())
    encoder.zero_grad()
    losses = [encoder(window).layer_states[-1].square().sum() for window in vectors]
    with torch.no_grad():
        encoder(vectors[0, :1])  # of another size, without a backward pass
    for loss in reversed(losses):
        loss.backward()
    torch.testing.assert_close(encoder.encoder.layers[0].hidden_weight.grad, sum(alone))


def test_a_second_backward_pass_and_a_changed_weight_are_errors() -> None:
    encoder = encoder_of(fast=True)
    loss = encoder(torch.randn(2, 3, 4)).layer_states[-1].sum()
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    loss = encoder(torch.randn(2, 3, 4)).layer_states[-1].sum()
    with torch.no_grad():
        encoder.encoder.layers[1].projection_weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_trained_by_a_fused_optimiser_it_ends_where_the_plain_one_does() -> None:
    """A fused optimiser does not change the version of a weight: nothing may be kept from one window to the next."""
    ends = []
    for fast in (False, True):
        torch.manual_seed(0)
        encoder = encoder_of(fast=fast)
        optimiser = torch.optim.Adam(encoder.parameters(), lr=0.02, fused=True)
        vectors, wanted, state = torch.randn(2, 3, 4), torch.randn(2, 3, 6), None
        for _ in range(20):
            output = encoder(vectors, state)
            (output.layer_states[-1] - wanted).square().mean().backward()
            optimiser.step()
            optimiser.zero_grad()
            state = output.state.map(torch.Tensor.detach)
        ends.append(encoder.state_dict())
    torch.testing.assert_close(*ends, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize(("weights", "autocast"), [(torch.bfloat16, False), (torch.float64, True)])
def test_compiled_kernels_are_for_weights_in_float32_alone(weights: torch.dtype, autocast: bool) -> None:
    results = run(fused_recurrence, dtype=weights, autocast=autocast)
    exact = run(plain_recurrence, dtype=torch.float64)
    for name, expected in exact.items():
        assert results[name].dtype == weights
        assert (results[name].double() - expected).norm() < 0.1 * expected.norm(), name
