"""Vector projection: the input layer that reads frozen word vectors (Li et al. 2019, Section 4.1)."""

from torch import Tensor, nn

from elmoc.input_layers import InputLayer


class VectorProjection(InputLayer):
    """a_t = LayerNorm(W_in x_t + b_in), from word vectors x_t of E numbers to P."""

    def __init__(self, *, word_vector_size: int, projection_size: int) -> None:
        super().__init__()
        self.projection = nn.Linear(word_vector_size, projection_size)
        self.norm = nn.LayerNorm(projection_size)

    def forward(self, words: Tensor) -> Tensor:
        """Word vectors [B, T, E] → [B, T, P]."""
        normalised: Tensor = self.norm(self.projection(words))
        return normalised
