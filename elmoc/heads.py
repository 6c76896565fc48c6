"""What maps the top layer state to the space of the target vectors?

Features never need a head. It is kept beside the model so that training can go on.
"""

from torch import nn

from elmoc.encoders.lstm import direction_name


class ContinuousHeads(nn.Module):
    """ŷ_t = W_y out_t + b_y, one head a direction (Li et al. 2019, footnote 2 and Eq. 2).

    Args:
        directions: the directions that have a head.
        projection_size: P.
        target_size: E of the target vectors.
    """

    def __init__(self, *, directions: tuple[str, ...], projection_size: int, target_size: int) -> None:
        super().__init__()
        for direction in directions:
            self.add_module(direction_name(direction), nn.Linear(projection_size, target_size))

    def direction(self, name: str) -> nn.Linear:
        """The head of one direction: [..., P] → predictions [..., E]."""
        module = getattr(self, direction_name(name))
        assert isinstance(module, nn.Linear)
        return module
