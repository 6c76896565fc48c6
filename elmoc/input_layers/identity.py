"""Identity: the input layer of encoders whose word vectors have their own width, as in the original ELMo."""

from torch import Tensor

from elmoc.input_layers import InputLayer


class Identity(InputLayer):
    """Layer 0 is the word vector itself; there are no weights."""

    def forward(self, words: Tensor) -> Tensor:
        """Word vectors [B, T, P] → the same."""
        return words
