"""Inference: layer states of sentences without autograd, each from zero state.

Letters: B sentences of a batch, T time, M words of all sentences, E word-vector width,
P projection, L layers.
"""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from elmoc.batches import length_bucketed
from elmoc.devices import CPU, autocast
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.errors import InputError
from elmoc.settings import Precision

# Words of a padded batch, where the encoder's own `forward` runs: layer states of this
# number fill a GPU, and take 200 MB at the paper's size.
_PADDED_WORDS = 16384
# Word types whose layer 0 is made at once: 50 MB in float64 at the paper's size.
_WORDS_READ = 4096


class InferenceEncoder:
    """A bidirectional encoder prepared for inference; its weights must not change while
    it is in use.

    Args:
        encoder: with its weights, on the device that computes.
        precision: of the factors of matrix products, one that was chosen.

    Raises:
        InputError: the encoder does not compute in int8 here.
    """

    def __init__(
        self, encoder: BidirectionalEncoder, *, precision: Precision = "float32"
    ) -> None:
        self.encoder = encoder.eval()
        self.precision = precision
        self.device = next(encoder.parameters()).device
        # of each direction, or, where `forward` runs, of none
        self._prepared = {
            direction: prepared
            for direction in encoder.directions
            if (prepared := encoder.direction(direction).encoder.prepare(precision))
        }
        # In float64, so that layer 0 of a word is the same to the last bit whatever
        # words are read with it: libraries add up products in different orders.
        self._input_layers = [
            deepcopy(encoder.direction(direction).input_layer).double()
            for direction in self._prepared
        ]
        if precision == "int8" and not self._prepared:
            raise InputError(
                "precision int8 needs an encoder of kind lstm on a CPU with AVX2, and "
                "compiled kernels: use auto, float32 or bf16"
            )

    def read_words(self, vectors: Tensor) -> Tensor:
        """What `sentences` reads of words, which no other word changes: layer 0 of
        both directions, float32 [n, 2P]. Where the encoder's own `forward` runs, it is
        the word vectors.

        Args:
            vectors: [n, E], of n words.
        """
        if not self._prepared:
            return vectors
        made = []
        # whatever a user's own autocast says
        with torch.inference_mode(), autocast(CPU, "float32"):
            for some in vectors.split(_WORDS_READ):
                wide = some.double()
                layers = [read(wide).float() for read in self._input_layers]
                made.append(torch.cat(layers, dim=1))
        return torch.cat(made)

    def sentences(
        self,
        words: Tensor,
        lengths: Tensor,
        *,
        device: torch.device = CPU,
    ) -> list[Tensor]:
        """Layer states of whole sentences: for each float32 [L + 1, n, 2P].

        This is the fastest way to compute many: sentences of any lengths, in any order,
        without padding.

        Args:
            words: from `read_words`, M words of all sentences one behind the other,
                each with its `<s>` and `</s>`.
            lengths: int [B], `<s>` and `</s>` counted, M together.
            device: where the states are wanted.
        """
        lengths = lengths.long().contiguous()
        if not self._prepared:
            return self._padded_batches(words, lengths, device)
        sizes = self.encoder.config.sizes
        states = torch.empty(
            (sizes.layers + 1, len(words), self.encoder.width),
            dtype=torch.float32,
            device=CPU,
        )
        states[0] = words
        # each direction has its own cores, and its threads wait for none of another
        workers = min(len(self._prepared), torch.get_num_threads())
        threads = torch.get_num_threads() // workers

        # the mode belongs to a thread, and a pool's threads are not in it
        @torch.inference_mode()
        def read(direction: str, own: Tensor) -> None:
            self._prepared[direction](
                own, lengths, backward=direction == "backward", threads=threads
            )

        parts = states.split(sizes.projection_size, dim=2)
        if workers == 1:
            # to start a thread takes longer than a word
            list(map(read, self._prepared, parts))
        else:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(read, self._prepared, parts))
        return list(states.to(device).split(lengths.tolist(), dim=1))

    def _padded_batches(
        self,
        vectors: Tensor,
        lengths: Tensor,
        device: torch.device,
    ) -> list[Tensor]:
        """`sentences` by the encoder's own `forward`, in padded batches of similar
        length.
        """
        pieces = vectors.to(self.device).split(lengths.tolist())
        states: list[Tensor] = [vectors] * len(pieces)
        for batch in length_bucketed(
            (lengths - 2).tolist(), _PADDED_WORDS, len(pieces)
        ):
            padded = pad_sequence([pieces[index] for index in batch], batch_first=True)
            own = lengths[batch]
            with torch.inference_mode(), autocast(self.device, self.precision):
                read = self.encoder(padded, own.to(self.device))
            is_word = torch.arange(padded.shape[1], device=CPU) < own.unsqueeze(1)
            # [words, L + 1, 2P]: one copy for all, and padding stays behind
            made = read.float().transpose(1, 2)[is_word.to(self.device)].to(device)
            for index, each in zip(batch, made.split(own.tolist()), strict=True):
                states[index] = each.transpose(0, 1)
        return states
