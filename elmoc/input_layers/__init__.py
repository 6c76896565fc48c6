"""Input layers: the interface of the trainable layer between the words and an encoder."""

from abc import ABC, abstractmethod

from torch import Tensor, nn


class InputLayer(nn.Module, ABC):
    """The trainable part between the words of a window and the first layer of an encoder."""

    @abstractmethod
    def forward(self, words: Tensor) -> Tensor:
        """The words of a window, such as their frozen vectors [B, T, E] → [B, T, P], layer 0 of the layer states."""
