"""Inference: layer states of sentences without autograd, each from zero state.

Letters: B sentences of a batch, T time, M words of all sentences, E word-vector width,
P projection, L layers.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from elmoc.batches import length_bucketed
from elmoc.devices import CPU, autocast
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.errors import InputError
from elmoc.settings import Precision

# Words of a padded batch, where the encoder's own `forward` runs: layer states of this
# number fill a GPU, and take 150 MB at the paper's size.
_PADDED_WORDS = 16384
# Words that an input layer reads at once, at least. Libraries add up the products of
# fewer rows in another order, and in bf16 a difference in the last bit grows.
_LEAST_WORDS = 64


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
        if precision == "int8" and not self._prepared:
            raise InputError(
                "precision int8 needs an encoder of kind lstm on a CPU with AVX2, and "
                "compiled kernels: use auto, float32 or bf16"
            )

    def sentences(
        self,
        vectors: Tensor,
        lengths: Tensor,
        *,
        device: torch.device = CPU,
    ) -> list[Tensor]:
        """Layer states of whole sentences: for each float32 [L + 1, n, 2P].

        This is the fastest way to compute many: sentences of any lengths, in any order,
        without padding.

        Args:
            vectors: [M, E], all sentences one behind the other, each with its `<s>` and
                `</s>`.
            lengths: int [B], `<s>` and `</s>` counted, M together.
            device: where the states are wanted.
        """
        lengths = lengths.long()
        if not self._prepared:
            return self._padded_batches(vectors, lengths, device)
        sizes = self.encoder.config.sizes
        states = torch.empty(
            (sizes.layers + 1, len(vectors), self.encoder.width),
            dtype=torch.float32,
            device=CPU,
        )
        spare = vectors.new_zeros(max(0, _LEAST_WORDS - len(vectors)), vectors.shape[1])
        read = torch.cat((vectors, spare)).unsqueeze(0)
        # each direction has its own cores, and its threads wait for none of another
        workers = min(len(self._prepared), torch.get_num_threads())
        threads = torch.get_num_threads() // workers
        with torch.inference_mode(), ThreadPoolExecutor(workers) as pool:
            runs = []
            for (direction, prepared), own in zip(
                self._prepared.items(),
                states.split(sizes.projection_size, dim=2),
                strict=True,
            ):
                input_layer = self.encoder.direction(direction).input_layer
                # in float32, whatever a user's own autocast says
                with autocast(CPU, "float32"):
                    own[0] = input_layer(read)[0, : len(vectors)]
                run = pool.submit(
                    # the mode belongs to a thread, and the pool's threads are not in it
                    torch.inference_mode()(prepared),
                    own,
                    lengths,
                    backward=direction == "backward",
                    threads=threads,
                )
                runs.append(run)
            for run in runs:
                run.result()
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
