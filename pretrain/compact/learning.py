"""The loop that both learners train by: Adam at a fixed rate, in parts after each of which the error is measured."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from elmoc.process import progress_bar
from elmoc.settings import setting

# Steps of a part, after which the error is measured (Shu and Nakayama 2018, Section 5.1).
PART = 1_000
# Between the seeds of the parts of two runs: PyTorch's generator takes the last 32 bits of a seed alone.
SEEDS_APART = 15_485_863


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """What both learners are told."""

    batch_size: int = setting(128, help="words of an update", least=1)
    learning_rate: float = setting(1e-4, help="of Adam", above=0, most=1)
    seed: int = setting(1, help="of all that is random", least=0, below=2**31)


def learn(
    model: nn.Module,
    loss: Callable[[Generator], Tensor],
    error: Callable[[], float],
    settings: LearnerSettings,
    steps: int,
) -> None:
    """Minimise a loss, and leave the model with the weights of the part that has the least error.

    Args:
        model: whose parameters with gradients are trained.
        loss: of a batch, a scalar, of which all that is random is drawn from the generator; a part has its own one.
        error: of the model with its present weights.
        settings: learning rate and seed.
        steps: updates.
    """
    optimiser = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], settings.learning_rate)
    least, best = error(), copied(model)
    with progress_bar(total=steps, desc="learning", unit="step") as bar:
        for done in range(0, steps, PART):
            generator = Generator().manual_seed(settings.seed * SEEDS_APART + done)
            for _ in range(min(PART, steps - done)):
                optimiser.zero_grad(set_to_none=True)
                loss(generator).backward()
                optimiser.step()
                bar.update()
            if (found := error()) < least:
                least, best = found, copied(model)
            bar.set_postfix_str(f"error {found:.4g}, least {least:.4g}", refresh=False)
    model.load_state_dict(best)


def copied(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model as they are now."""
    return {name: weight.clone() for name, weight in model.state_dict().items()}


def squared_distance(vectors: Tensor, others: Tensor) -> Tensor:
    """The scalar mean over words of ‖e − ẽ‖², of vectors and their reconstructions [n, E]: the loss of both papers."""
    return (vectors - others).square().sum(dim=1).mean()
