"""The loop that both learners train by: Adam at a fixed rate, in parts after each of which a run can be stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn

from elmoc.errors import InputError, reading
from elmoc.files.writing import atomic_path
from elmoc.process import progress_bar

# Steps of a part, after which the error is measured (Shu and Nakayama 2018, Section 5.1).
PART = 1_000


def learn(
    model: nn.Module,
    loss: Callable[[Generator], Tensor],
    error: Callable[[], float],
    *,
    steps: int,
    rate: float,
    seed: int,
    state: Path,
    settings: dict[str, Any],
) -> None:
    """Minimise a loss, and leave the model with the weights of the part that has the least error.

    Args:
        model: whose parameters with gradients are trained.
        loss: of a batch, a scalar, of which all that is random is drawn from the generator.
        error: that of the model as it is.
        steps, rate: of Adam, whose other values are PyTorch's.
        seed: of the generators, one a part, so that a run that is resumed ends as one that was not stopped.
        state: the file from which a run goes on, written after each part; whoever calls removes it.
        settings: what the run was told, and of which data: another run's state is an `InputError`.
    """
    optimiser = torch.optim.Adam([each for each in model.parameters() if each.requires_grad], lr=rate)
    done, least, best = 0, error(), copied(model)
    if state.exists():
        with reading(state):
            before = torch.load(state, weights_only=True)
            if before["settings"] != settings:
                raise InputError("it is what a run with other settings or vectors left: remove it")
            done, least, best = before["done"], before["least"], before["best"]
            model.load_state_dict(before["model"])
            optimiser.load_state_dict(before["optimiser"])
    with progress_bar(total=steps, initial=done, desc=f"learning {state.stem}", unit="step") as bar:
        while done < steps:
            generator = Generator().manual_seed(seed * 2**32 + done)
            model.train()
            for _ in range(min(PART, steps - done)):
                optimiser.zero_grad(set_to_none=True)
                loss(generator).backward()
                optimiser.step()
                bar.update()
            done += min(PART, steps - done)
            model.eval()
            if (found := error()) < least:
                least, best = found, copied(model)
            bar.set_postfix_str(f"error {found:.4g}, least {least:.4g}", refresh=False)
            with atomic_path(state, sync=False) as partial:
                now = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "best": best}
                torch.save(now | {"done": done, "least": least, "settings": settings}, partial)
    model.load_state_dict(best)


def copied(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model as they are now."""
    return {name: weight.clone() for name, weight in model.state_dict().items()}
