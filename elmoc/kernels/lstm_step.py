"""The pointwise half of an LSTM step: the interface of its four kernels, which run between the matrix products.

`reference` has them in PyTorch; `cpu` and `gpu` compiled ones with the same methods; `choose` gives the
fastest there are.
Every kernel handles one step of all streams and writes into tensors that it is given.
Letters: B streams, P projection, C cell. S is the type that activations are stored in (bfloat16, float32, float64), A
that of weights, cell state and layer normalisation (float32, float64).
"""

from typing import NamedTuple, Protocol

from torch import Tensor


class LayerConstants(NamedTuple):
    """What stays the same for all steps of a window."""

    bias: Tensor
    """A [4C]"""
    norm_weight: Tensor | None
    """A [P]; None switches layer normalisation off"""
    norm_bias: Tensor | None
    """A [P]"""
    mask: Tensor | None
    """A [B, P]: dropout"""
    lengths: Tensor | None
    """int64 [B]: a stream whose length is no more than `step` stands still (see `plain_recurrence`)"""
    cell_clip: float
    projection_clip: float
    norm_epsilon: float


class StepKernels(Protocol):
    """The four kernels of a step."""

    description: str
    """What runs, for people."""

    def parts(self, streams: int) -> tuple[int, int]:
        """How many partial sums of the gradients of the norm and of the bias are kept."""
        ...

    def gates_forward(
        self,
        layer: LayerConstants,
        step: int,
        raw: Tensor,
        cell_before: Tensor,
        gates: Tensor,
        cell: Tensor,
        memory: Tensor,
    ) -> None:
        """i, f, g, o, c_t and σ(o)·tanh(c_t) from the recurrent product.

        raw          S [B, 4C]: W_x a_t + W_h h_{t-1}; may be `gates` itself
        cell_before  A [B, C]
        gates        S [B, 4C], written: after σ and tanh
        cell         A [B, C], written
        memory       S [B, C], written: σ(o)·tanh(c_t)
        """
        ...

    def output_forward(
        self,
        layer: LayerConstants,
        step: int,
        raw: Tensor,
        hidden_before: Tensor,
        hidden: Tensor,
        moments: Tensor,
        outputs: Tensor,
    ) -> None:
        """h_t from the projection.

        raw            S [B, P]: W_p (σ(o)·tanh(c_t))
        hidden_before  S [B, P], rows may lie apart
        hidden         S [B, P], rows as far apart, written
        moments        A [B, 2], written: mean and 1/deviation of the clipped projection
        outputs        A [B, P], written: h_t, zero where a stream has ended
        """
        ...

    def output_backward(
        self,
        layer: LayerConstants,
        step: int,
        grad_outputs: Tensor,
        grad_hidden: Tensor,
        grad_next: Tensor | None,
        raw: Tensor,
        moments: Tensor,
        grad_raw: Tensor,
        grad_norm: Tensor,
    ) -> None:
        """The mirror of `output_forward`.

        grad_outputs  A [B, P]
        grad_hidden   A [B, P], updated: what reaches h_t from the steps after it
        grad_next     S [B, P], rows may lie apart: what the next step's product adds to that; None at the last step
        grad_raw      S [B, P], written
        grad_norm     A [parts of the norm, 2, P], added to
        """
        ...

    def gates_backward(
        self,
        layer: LayerConstants,
        step: int,
        grad_memory: Tensor,
        cell: Tensor,
        cell_before: Tensor,
        gates: Tensor,
        memory: Tensor,
        grad_cell: Tensor,
        grad_bias: Tensor,
    ) -> None:
        """The mirror of `gates_forward`.

        grad_memory  S [B, C]
        gates        S [B, 4C], read as after σ and tanh, written: the gradient before them
        memory       S [B, C], written again, so that nobody has to keep it
        grad_cell    A [B, C], updated: what reaches c_t, then what reaches c_{t-1}
        grad_bias    A [parts of the bias, 4C], added to
        """
        ...
