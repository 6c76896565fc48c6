"""Linear output layers: what do the layers that predict the vector of the next word have in common?

A target whose vector is all zeros has no direction: it is masked. Letters: P projection, E width of vectors.
"""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from elmoc.corpus import Corpus
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import Loss, OutputLayer, OutputLayerSettings

# Norms are bounded from below, as in `F.cosine_similarity`, so that a vector of zeros has finite gradients.
NORM = 1e-8
# The score of a type that is no candidate; finite, so that a window without any candidate has finite gradients.
NO_CANDIDATE = -1e9


@dataclass(frozen=True)
class LinearSettings(OutputLayerSettings):
    """The settings of layers that predict vectors of the table `data.target_vectors`."""

    reads_target_vectors: ClassVar[bool] = True

    def record(self, *, corpus: Corpus, targets: LexiconTable) -> dict[str, Any]:
        """The target vectors by origin and fingerprint, and how they were processed."""
        return {"kind": self.kind, **asdict(targets.source)}


class LinearOutput(OutputLayer):
    """ŷ_t = W_y out_t + b_y (Li et al. 2019, footnote 2): from top layer states [..., P] to vectors [..., E]."""

    def __init__(self, projection_size: int, vector_size: int) -> None:
        super().__init__()
        linear = nn.Linear(projection_size, vector_size)
        self.weight, self.bias = linear.weight, linear.bias  # [E, P], [E]

    def predict(self, states: Tensor) -> Tensor:
        """Top layer states [..., P] → predicted vectors, float32 [..., E]."""
        return F.linear(states, self.weight, self.bias).float()


def unit(vectors: Tensor) -> Tensor:
    """Vectors [..., E] divided by their lengths."""
    return F.normalize(vectors, dim=-1, eps=NORM)


def sum_of_known(losses: Tensor, targets: Tensor) -> Loss:
    """Losses [...] summed over the targets [..., E] that have a vector."""
    known = targets.any(dim=-1)  # [...]
    counted = known.sum()
    return Loss((losses * known).sum(), counted, known.numel() - counted)
