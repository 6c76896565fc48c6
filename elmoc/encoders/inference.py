"""Inference: layer states without autograd, from zero state, or with the state carried
from one sentence to the next.

Letters: B sentences of a batch, T time, M words of all sentences, E word-vector width,
P projection, L layers.
"""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from elmoc.batches import length_bucketed
from elmoc.devices import Precision, autocast
from elmoc.encoders import CarriedState, PreparedEncoder, SentenceWords
from elmoc.encoders.bidirectional import BidirectionalEncoder

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
    """

    def __init__(
        self, encoder: BidirectionalEncoder, *, precision: Precision = "float32"
    ) -> None:
        self.encoder = encoder.eval()
        self.precision = precision
        self.device = next(encoder.parameters()).device
        # of each direction, or, where `forward` runs, of none
        self._prepared: dict[str, PreparedEncoder] = {}
        for direction in encoder.directions:
            prepared = encoder.direction(direction).encoder.prepare(precision)
            if prepared is not None:
                self._prepared[direction] = prepared

    def __call__(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Layer states of whole sentences from zero state: float32 [B, L + 1, T, 2P],
        on the device.

        Args:
            vectors: [B, T, E], sentences with their `<s>` and `</s>`, padded at the
                end.
            lengths: int [B], `<s>` and `</s>` counted; what stands past a length means
                nothing in the result.
        """
        if not self._prepared:
            return self._forward(vectors, lengths)
        batch, time = vectors.shape[:2]
        layers = self.encoder.config.sizes.layers + 1
        width = self.encoder.width
        # the states of a sentence are [L + 1, T, 2P], one behind the other
        first = torch.arange(batch) * time
        begins = first.repeat_interleave(time) * (layers - 1)
        places = (torch.arange(batch * time) + begins) * width
        strides = torch.full((batch * time,), time * width)
        lengths = lengths.long().clamp(0, time)
        words = SentenceWords(first, lengths, places, strides)
        states = torch.empty(batch, layers, time, width)
        self._run_all(vectors.flatten(0, 1), words, states)
        return states

    def sentences(
        self, vectors: Tensor, lengths: Tensor, carried: CarriedState | None = None
    ) -> list[Tensor]:
        """Layer states of whole sentences: for each float32 [L + 1, n, 2P], on the CPU.

        This is the fastest way to compute many: sentences of any lengths, in any order,
        without padding.

        Args:
            vectors: [M, E], all sentences one behind the other, each with its `<s>` and
                `</s>`.
            lengths: int [B], `<s>` and `</s>` counted, M together.
            carried: the state before each sentence in its first B rows, which becomes
                the state after it; None reads every sentence from zero state.
        """
        if carried is not None:
            for direction, state in carried.items():
                carried[direction] = state.map(lambda tensor: tensor[: len(lengths)])
        if not self._prepared:
            return self._padded_batches(vectors, lengths, carried)
        layers = self.encoder.config.sizes.layers + 1
        width = self.encoder.width
        # the states of a sentence are [L + 1, n, 2P], one behind the other
        lengths = lengths.long()
        first = lengths.cumsum(0) - lengths
        strides = (lengths * width).repeat_interleave(lengths)
        begins = (first * width).repeat_interleave(lengths)
        places = torch.arange(len(vectors)) * width + (layers - 1) * begins
        states = torch.empty(len(vectors) * layers * width)
        words = SentenceWords(first, lengths, places, strides)
        self._run_all(vectors, words, states, carried)
        sizes = (lengths * (layers * width)).tolist()
        return [each.view(layers, -1, width) for each in states.split(sizes)]

    def _run_all(
        self,
        vectors: Tensor,
        words: SentenceWords,
        states: Tensor,
        carried: CarriedState | None = None,
    ) -> None:
        """Put the layer states of words with vectors [M, E] into `states`, all
        directions side by side.
        """
        directions = self.encoder.directions
        size = self.encoder.config.sizes.projection_size
        # each direction has its own cores, and its threads wait for none of another
        workers = min(len(directions), torch.get_num_threads())
        threads = torch.get_num_threads() // workers
        with torch.inference_mode(), ThreadPoolExecutor(workers) as pool:
            runs = {}
            for number, direction in enumerate(directions):
                own = words._replace(places=words.places + number * size)
                inputs = self._input_states(direction, vectors, own, states)
                # the mode belongs to a thread, and the pool's threads are not in it
                prepared = torch.inference_mode()(self._prepared[direction])
                runs[direction] = pool.submit(
                    prepared,
                    inputs,
                    own,
                    states,
                    state=None if carried is None else carried.get(direction),
                    carry=carried is not None,
                    backward=direction == "backward",
                    threads=threads,
                )
            for direction, run in runs.items():
                after = run.result()
                if carried is not None:
                    assert after is not None, "the state was asked for"
                    carried[direction] = after

    def _input_states(
        self, direction: str, vectors: Tensor, words: SentenceWords, states: Tensor
    ) -> Tensor:
        """The input of a direction's encoder [M, P], which is put into layer 0 of its
        states, too.
        """
        input_layer = self.encoder.direction(direction).input_layer
        with torch.inference_mode():
            spare = torch.zeros(max(0, _LEAST_WORDS - len(vectors)), vectors.shape[1])
            read = torch.cat((vectors, spare)).unsqueeze(0)
            inputs: Tensor = input_layer(read).squeeze(0)[: len(vectors)]
            size = inputs.shape[1]
            states.view(-1, size).index_copy_(0, words.places // size, inputs)
        return inputs

    def _padded_batches(
        self, vectors: Tensor, lengths: Tensor, carried: CarriedState | None
    ) -> list[Tensor]:
        """`sentences` in padded batches of similar length; of a state there is one
        batch, in the order of its rows.
        """
        pieces = vectors.to(self.device).split(lengths.tolist())
        states: list[Tensor] = [vectors] * len(pieces)
        batches = [list(range(len(pieces)))]
        if carried is None:
            words = (lengths - 2).tolist()
            batches = list(length_bucketed(words, _PADDED_WORDS, len(pieces)))
        for batch in batches:
            chosen = [pieces[index] for index in batch]
            padded = torch.nn.utils.rnn.pad_sequence(chosen, batch_first=True)
            read = self._forward(padded, lengths[batch], carried)
            made = []
            for index, each in zip(batch, read, strict=True):
                made.append(each[:, : len(pieces[index])])
            # one copy to main memory for all, in which the padding stays behind
            sizes = [each.numel() for each in made]
            flat = torch.cat([each.flatten() for each in made]).cpu().split(sizes)
            for index, each, own in zip(batch, made, flat, strict=True):
                states[index] = own.view(each.shape)
        return states

    def _forward(
        self, vectors: Tensor, lengths: Tensor, carried: CarriedState | None = None
    ) -> Tensor:
        """Float32 [B, L + 1, T, 2P] by the encoder's own `forward`."""
        vectors = vectors.to(self.device)
        lengths = lengths.to(self.device)
        with torch.inference_mode(), autocast(self.device, self.precision):
            states: Tensor = self.encoder(vectors, lengths, carried)
        return states.float()
