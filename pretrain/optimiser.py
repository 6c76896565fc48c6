"""The optimiser: how the weights of a direction follow its gradients, and their average over the updates."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim import Adagrad, AdamW, Optimizer

from elmoc.settings import setting

# updates between two that the average takes in: weights move little meanwhile, and each costs half an Adam step
EVERY = 10


@dataclass(frozen=True)
class OptimiserConfig:
    """AdamW with a bound on the gradient norm of each direction (they are separate models) and of each shared part.

    beta1: decay of Adam's mean of the gradient.
    beta2: decay of Adam's mean of its square.
    epsilon: what Adam adds to the root of that.
    gradient_norm: the bound.
    weight_decay: an update at the rate r multiplies matrices, not biases or layer norms, by 1 − r · weight_decay.
    average: export an average of the weights whose mean age is this share of the updates so far (0: the last weights).
    """

    beta1: float = setting(0.9, least=0, below=1)
    beta2: float = setting(0.999, least=0, below=1)
    epsilon: float = setting(1e-6, above=0, most=1e3)
    gradient_norm: float = setting(1.0, above=0)
    weight_decay: float = setting(0.0, least=0, most=1e3)
    average: float = setting(0.0, least=0, most=0.5)


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


class WeightAverage:
    """The average of a direction's weights over its updates, in which newer ones weigh more.

    After update t the weights after update k count as the power k^(1/share − 2) (Karras et al. 2024, *Analyzing and
    improving the training dynamics of diffusion models*, Section 3.1): their mean age is `share` · t whatever t is, so
    that neither the length of the run nor its first, poor weights matter. A share of 1/2 is the plain mean.

    Args:
        parameters: the weights; the average begins as what they are now.
        share: above 0 and at most 1/2.
    """

    def __init__(self, parameters: Sequence[Tensor], share: float) -> None:
        self._parameters = parameters
        self._power = 1 / share - 1
        self.tensors = [parameter.detach().clone() for parameter in parameters]

    @torch.no_grad()
    def add(self, update: int) -> None:
        """Take in the weights after update `update` (from 1): all of the first ten, and every tenth from there on."""
        if update > EVERY and update % EVERY:
            return
        before = update - (EVERY if update > EVERY else 1)
        share = 1 - (before / update) ** self._power
        for average, parameter in zip(self.tensors, self._parameters, strict=True):
            average.lerp_(parameter, share)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The weights are their average as long as this lasts, and are then what they were before."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for average, parameter in zip(self.tensors, self._parameters, strict=True):
            kept = parameter.clone()
            parameter.copy_(average)
            average.copy_(kept)
