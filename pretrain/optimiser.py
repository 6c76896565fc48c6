"""The optimiser: how the weights of a direction follow its gradients."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Adagrad, AdamW, Optimizer

from elmoc.settings import setting


@dataclass(frozen=True)
class OptimiserConfig:
    """AdamW with a bound on the gradient norm of each direction (they are separate models) and of each shared part.

    beta1: decay of Adam's mean of the gradient.
    beta2: decay of Adam's mean of its square.
    epsilon: what Adam adds to the root of that.
    gradient_norm: the bound.
    weight_decay: an update at the rate r multiplies matrices, not biases or layer norms, by 1 − r · weight_decay.
    """

    beta1: float = setting(0.9, least=0, below=1)
    beta2: float = setting(0.999, least=0, below=1)
    epsilon: float = setting(1e-6, above=0, most=1e3)
    gradient_norm: float = setting(1.0, above=0)
    weight_decay: float = setting(0.0, least=0, most=1e3)


def new_optimiser(parameters: Sequence[Tensor], config: OptimiserConfig, device: torch.device) -> AdamW:
    """The optimiser of the weights of a direction. Those that decay are a group of their own, where there are any."""
    groups: dict[float, list[Tensor]] = {}
    for parameter in parameters:
        groups.setdefault(config.weight_decay if parameter.ndim > 1 else 0.0, []).append(parameter)
    on_gpu = device.type == "cuda"
    return AdamW(
        [{"params": members, "weight_decay": decay} for decay, members in groups.items()],
        lr=torch.zeros((), device=device) if on_gpu else 0.0,  # set before every update
        capturable=on_gpu,
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
    )


def new_adagrad(parameters: Sequence[Tensor], *, rate_factor: float, accumulator: float) -> Adagrad:
    """Adagrad (Duchi et al. 2011) for weights with sparse gradients: rows without a gradient stay as they are.

    Args:
        parameters: the weights.
        rate_factor: how many times the learning rate of the schedule its own is.
        accumulator: what the sum of squares of the gradients begins with.
    """
    torch.sparse.check_sparse_tensor_invariants.disable()  # which is the default; saying so avoids a warning
    optimiser = Adagrad(parameters, lr=0.0, initial_accumulator_value=accumulator)  # the rate is set every time
    for group in optimiser.param_groups:
        group["rate_factor"] = rate_factor
    return optimiser


def set_rate(optimiser: Optimizer, rate: float) -> None:
    """Have an optimiser update at a learning rate of the schedule."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate * group.get("rate_factor", 1.0)


def clip_gradients(parameters: Sequence[Tensor], most: float) -> Tensor:
    """Scale gradients, dense or sparse and coalesced, down to the norm `most`; their norm before that, a scalar."""
    gradients = [values_of(parameter) for parameter in parameters]
    norm = torch.stack([torch.linalg.vector_norm(gradient) for gradient in gradients]).norm()
    for gradient in gradients:
        gradient.mul_((most / (norm + 1e-6)).clamp(max=1))
    return norm


def values_of(parameter: Tensor) -> Tensor:
    """The numbers of a parameter's gradient; of a sparse one, which has to be coalesced, those of its rows."""
    gradient = parameter.grad
    assert gradient is not None
    return gradient._values() if gradient.is_sparse else gradient
