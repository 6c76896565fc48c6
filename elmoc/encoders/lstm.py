"""The LSTM encoder: layers with projection, and layer normalisation and dropout inside
the recurrence.

Letters: B streams or sentences of a batch, T time, P projection, C cell, L layers.
Source: Li et al. 2019, Section 4.1 (ELMo's LSTM with projection, layer norm after the
projection).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import torch
from msgspec import Meta
from torch import Tensor, nn

from elmoc.devices import factor_dtype
from elmoc.encoders import Encoder, EncoderOutput, EncoderSizes, EncoderState
from elmoc.encoders.fused_recurrence import choose_kernels, fused_recurrence
from elmoc.encoders.lstm_inference import Kernel, LstmInference, inference_kernels
from elmoc.encoders.recurrence import (
    LSTMState,
    Recurrence,
    RecurrenceOptions,
    RecurrenceWeights,
    plain_recurrence,
)
from elmoc.settings import Precision


@dataclass(frozen=True, kw_only=True)
class LstmSizes(EncoderSizes):
    """The settings of an LSTM encoder; the defaults are those of `elmo_c.toml`."""

    kind: ClassVar[str] = "lstm"

    cell_size: Annotated[
        int, Meta(ge=1, le=2**20, description="C, the width of the cell state")
    ] = 4096
    cell_clip: Annotated[
        float, Meta(ge=0, le=1e30, description="bound of the cell state (0: none)")
    ] = 3.0
    projection_clip: Annotated[
        float, Meta(ge=0, le=1e30, description="bound of the projected state (0: none)")
    ] = 3.0
    layer_norm: Annotated[
        bool,
        Meta(
            description="whether projected states are layer-normalised, inside the "
            "recurrence"
        ),
    ] = True
    residual: Annotated[
        bool, Meta(description="whether each layer from the second on adds its input")
    ] = True

    def build(self, *, fast: bool) -> "LstmStack":
        return LstmStack(self, fast=fast)

    @property
    def description(self) -> str:
        return (
            f"{self.layers} LSTM layers, projection {self.projection_size}, "
            f"cell {self.cell_size}"
        )


class ProjectedLstmLayer(nn.Module):
    """An LSTM layer with projection, clips, and layer normalisation and dropout inside
    the recurrence.

    A clip of 0 is none. Without `layer_norm` the layer equals AllenNLP's
    `LstmCellWithProjection`.
    """

    def __init__(self, sizes: LstmSizes, *, recurrence: Recurrence) -> None:
        super().__init__()
        self.sizes = sizes
        self.recurrence = recurrence
        cell = sizes.cell_size
        projection = sizes.projection_size
        # W_x and W_h, gates in the order i, f, g, o
        self.input_weight = nn.Parameter(
            torch.empty(4 * cell, projection, dtype=torch.float32)
        )
        # not by `empty_like`, which loads SymPy for an encoder without memory
        self.hidden_weight = nn.Parameter(
            torch.empty(4 * cell, projection, dtype=torch.float32)
        )
        self.bias = nn.Parameter(torch.zeros(4 * cell))
        # W_p
        self.projection_weight = nn.Parameter(
            torch.empty(projection, cell, dtype=torch.float32)
        )
        self.norm = nn.LayerNorm(projection) if sizes.layer_norm else None
        with torch.no_grad():
            # W_x and W_h are orthogonal gate by gate, and W_p is uniform in ±1/√C. The
            # forget gate begins open.
            for weight in (self.input_weight, self.hidden_weight):
                for gate in weight.chunk(4):
                    nn.init.orthogonal_(gate)
            self.bias[cell : 2 * cell] = 1.0
            nn.init.uniform_(self.projection_weight, -(cell**-0.5), cell**-0.5)

    def forward(
        self,
        inputs: Tensor,
        state: LSTMState | None = None,
        *,
        dropout_mask: Tensor | None = None,
    ) -> tuple[Tensor, LSTMState]:
        """One window.

        Args:
            inputs: [B, T, P].
            state: before the first step; None is zero state.
            dropout_mask: see `RecurrenceOptions`.

        Returns:
            The outputs [B, T, P], and the state after the last step.
        """
        if state is None:
            state = LSTMState(
                self.bias.new_zeros(len(inputs), self.sizes.projection_size),
                self.bias.new_zeros(len(inputs), self.sizes.cell_size),
            )
        return self.recurrence(
            inputs,
            state,
            self.weights(),
            self.options(dropout_mask=dropout_mask),
        )

    def weights(self) -> RecurrenceWeights:
        """The weights for the recurrence."""
        return RecurrenceWeights(
            self.input_weight,
            self.hidden_weight,
            self.bias,
            self.projection_weight,
            None if self.norm is None else self.norm.weight,
            None if self.norm is None else self.norm.bias,
        )

    def options(self, *, dropout_mask: Tensor | None = None) -> RecurrenceOptions:
        """The options for the recurrence over a window."""
        return RecurrenceOptions(
            cell_clip=self.sizes.cell_clip,
            projection_clip=self.sizes.projection_clip,
            norm_epsilon=0.0 if self.norm is None else self.norm.eps,
            dropout_mask=dropout_mask,
        )


class LstmStack(Encoder):
    """A stack of LSTM layers, with a residual connection around every layer but the
    first.

    Args:
        sizes: the settings of the encoder.
        fast: whether layers step through time by the fused recurrence, instead of the
            plain one.
    """

    def __init__(self, sizes: LstmSizes, *, fast: bool = False) -> None:
        super().__init__(sizes)
        self.residual = sizes.residual
        self.fast = fast
        self.graphable = fast
        self.layers: Any = nn.ModuleList(
            ProjectedLstmLayer(
                sizes, recurrence=fused_recurrence if fast else plain_recurrence
            )
            for _ in range(sizes.layers)
        )

    def implementation(self, device: torch.device, precision: Precision) -> str:
        if not self.fast:
            return "the plain recurrence"
        kernels = choose_kernels(device.type, factor_dtype(precision), torch.float32)
        if isinstance(kernels, str):
            return f"the plain recurrence, because {kernels}"
        return f"the fused recurrence (between its products: {kernels.description})"

    def _inference_kernel(self, precision: Precision) -> Kernel | None:
        """The compiled kernel of inference, where there is one for the precision and
        the weights are float32 on the CPU.
        """
        weight = next(self.parameters())
        on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
        return (
            inference_kernels(factor_dtype(precision)) if self.fast and on_cpu else None
        )

    def is_prepared_for(self, precision: Precision) -> bool:
        return self._inference_kernel(precision) is not None

    def prepare(self, precision: Precision) -> LstmInference | None:
        run = self._inference_kernel(precision)
        if run is None:
            return None
        return LstmInference(
            [(layer.weights(), layer.options()) for layer in self.layers],
            residual=self.residual,
            dtype=factor_dtype(precision),
            run=run,
        )

    def forward(
        self,
        inputs: Tensor,
        state: EncoderState | None = None,
        *,
        dropout_masks: Sequence[Tensor | None] | None = None,
    ) -> EncoderOutput:
        """See `Encoder`; the state of a layer is an `LSTMState`."""
        masks = dropout_masks or self.draw_dropout_masks(*inputs.shape[:2])
        layer_states = [inputs]
        new_state = []
        for index, layer in enumerate(self.layers):
            before = None if state is None else LSTMState._make(state.layers[index])
            outputs, after = layer(inputs, before, dropout_mask=masks[index])
            if self.residual and index > 0:
                outputs = outputs + inputs
            layer_states.append(outputs)
            new_state.append(after)
            inputs = outputs
        return EncoderOutput(layer_states, EncoderState(tuple(new_state)))
