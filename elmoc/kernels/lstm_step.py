"""Kernels of the fused recurrence: the four that run between the matrix products of an
LSTM step.

This is their interface; `cpu` and `gpu` have compiled ones, the tests have them in
PyTorch. Every kernel handles one step of all streams; its tensors stand in the named
tuple of its own name, which says which of them it writes.
Letters: B streams, P projection, C cell. S is the type that activations are stored in
(bfloat16, float32, float64), A that of weights, cell state and layer normalisation
(float32, float64).

The gradient of a clip is that of `torch.clamp`, which lets gradients through at the
limit itself. The projection is kept as it was before its clip, so its gradient passes
where |u| <= limit. The cell is kept after its clip alone: a value at the limit counts
as clipped (one that was there before is too rare to matter), so its gradient passes
where |c| < limit.

The first tensors of all four stand alike: the second has the rows and columns that the
kernel computes, and where rows of a tensor may lie apart, those of the third do.
"""

from typing import NamedTuple, Protocol

from torch import Tensor

from elmoc.encoders.recurrence import RecurrenceOptions, RecurrenceWeights


class GatesForward(NamedTuple):
    """i, f, g, o, c_t and σ(o)·tanh(c_t) from the recurrent product."""

    # S [B, 4C]: W_x a_t + W_h h_{t-1}, without the bias; may be `gates` itself
    preactivation: Tensor
    cell_before: Tensor  # A [B, C]: c_{t-1}
    gates: Tensor  # S [B, 4C], written: after σ and tanh
    cell: Tensor  # A [B, C], written: c_t
    gated_cell: Tensor  # S [B, C], written: σ(o)·tanh(c_t)


class OutputForward(NamedTuple):
    """h_t from the projection."""

    projected: Tensor  # S [B, P]: W_p (σ(o)·tanh(c_t)), before the clip
    outputs: Tensor  # A [B, P], written: h_t
    hidden: Tensor  # S [B, P], rows may lie apart, written: h_t
    moments: Tensor  # A [B, 2], written: mean and 1/deviation of the clipped projection


class OutputBackward(NamedTuple):
    """The mirror of `OutputForward`."""

    grad_outputs: Tensor  # A [B, P]
    # A [B, P], perhaps overwritten: at the last step, what reaches h_t from after the
    # window
    grad_hidden: Tensor
    # S [B, P], rows may lie apart: what reaches h_t from the next step; None at the
    # last step
    grad_next: Tensor | None
    projected: Tensor  # S [B, P]
    moments: Tensor  # A [B, 2]
    grad_projected: Tensor  # S [B, P], written
    grad_norm: Tensor  # A [parts of the norm, 2, P], added to


class GatesBackward(NamedTuple):
    """The mirror of `GatesForward`."""

    grad_gated_cell: Tensor  # S [B, C]
    cell: Tensor  # A [B, C]: c_t
    cell_before: Tensor  # A [B, C]: c_{t-1}
    # S [B, 4C], read as after σ and tanh, written: the gradient of the pre-activation
    gates: Tensor
    gated_cell: Tensor  # S [B, C], written again, so that it need not be kept
    grad_cell: Tensor  # A [B, C], updated: what reaches c_t, then what reaches c_{t-1}
    grad_bias: Tensor  # A [parts of the bias, 4C], added to


StepTensors = GatesForward | OutputForward | OutputBackward | GatesBackward
# The name of each kernel, by its tensors.
KERNELS: dict[type[StepTensors], str] = {
    GatesForward: "gates_forward",
    OutputForward: "output_forward",
    OutputBackward: "output_backward",
    GatesBackward: "gates_backward",
}


class StepKernels(Protocol):
    """The four kernels of a step, and the product behind the last one."""

    description: str  # what runs, as a run's description prints it

    def parts(self, streams: int) -> tuple[int, int]:
        """The numbers of partial sums of the gradients of the norm and of the bias."""

    def run(
        self,
        weights: RecurrenceWeights,
        options: RecurrenceOptions,
        tensors: StepTensors,
    ) -> None:
        """Run the kernel of these tensors.

        Args:
            weights: of the layer, in A.
            options: of the window; the dropout mask is in A, contiguous and on the
                device.
            tensors: of the step.
        """

    def put_weight_gradient(
        self, grad: Tensor, inputs: Tensor, outs: list[Tensor]
    ) -> None:
        """See `matmul.put_weight_gradient`, which serves where nothing is faster."""
