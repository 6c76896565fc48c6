"""Layer states without autograd: from zero state, or with the state carried from one
sentence to the next.

Letters: B sentences of a batch, T time, M words of all sentences, E word-vector width,
P projection, L layers.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from elmoc.batches import length_bucketed
from elmoc.devices import Precision, autocast
from elmoc.encoders import EncoderOutput, EncoderState, PreparedEncoder, SentenceWords
from elmoc.encoders.bidirectional import BidirectionalEncoder

# Words of a padded batch, where the encoder's own `forward` runs: layer states of this
# number fill a GPU, and take 150 MB at the paper's size.
_PADDED_WORDS = 16384
# Words that an input layer reads at once, at least. Libraries add up the products of
# fewer rows in another order, and in bf16 a difference in the last bit grows.
_LEAST_WORDS = 64
# The state of each direction, by its name, that is carried from one sentence to the
# next; empty is zero state.
CarriedState = dict[str, EncoderState]


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
            with torch.inference_mode(), self._autocast():
                return self.encoder(
                    vectors.to(self.device), lengths.to(self.device)
                ).float()
        batch, time = vectors.shape[:2]
        layers = self.encoder.config.sizes.layers + 1
        width = self.encoder.width
        states = torch.empty(batch, layers, time, width)
        self._run_all(
            vectors.flatten(0, 1),
            self._padded_words(batch, time, lengths, width),
            states,
        )
        return states

    def sentences(self, vectors: Tensor, lengths: Tensor) -> list[Tensor]:
        """Layer states of whole sentences from zero state: for each float32 [L + 1, n,
        2P], on the CPU.

        The fastest way to compute many: sentences of any lengths, in any order, without
            padding.

        Args:
            vectors: [M, E], all sentences one behind the other, each with its `<s>` and
                `</s>`.
            lengths: int [B], `<s>` and `</s>` counted, M together.
        """
        if not self._prepared:
            return self._padded_batches(vectors, lengths)
        layers = self.encoder.config.sizes.layers + 1
        width = self.encoder.width
        # the states of a sentence lie together, [L + 1, n, 2P], behind the states of the
        # sentences before it
        lengths = lengths.long()
        first = lengths.cumsum(0) - lengths
        strides = (lengths * width).repeat_interleave(lengths)
        begins = (first * width).repeat_interleave(lengths)
        places = torch.arange(len(vectors)) * width + (layers - 1) * begins
        states = torch.empty(len(vectors) * layers * width)
        self._run_all(vectors, SentenceWords(first, lengths, places, strides), states)
        sizes = (lengths * (layers * width)).tolist()
        return [each.view(layers, -1, width) for each in states.split(sizes)]

    def run(
        self,
        direction: str,
        vectors: Tensor,
        state: EncoderState | None = None,
        *,
        lengths: Tensor,
    ) -> EncoderOutput:
        """One direction over a window, with its state carried.

        Args:
            vectors: [B, T, E], in reading order, padded at the end.
            state: that after the window before; None is the state before any word.
            lengths: int [B].
        """
        if not self._prepared:
            vectors = vectors.to(self.device)
            lengths = lengths.to(self.device)
            encoder = self.encoder.direction(direction)
            with torch.inference_mode(), self._autocast():
                output = encoder(vectors, state, lengths=lengths)
            exact = [layer.float() for layer in output.layer_states]
            return EncoderOutput(exact, output.state)
        sizes = self.encoder.config.sizes
        batch, time = vectors.shape[:2]
        states = torch.zeros(batch, sizes.layers + 1, time, sizes.projection_size)
        words = self._padded_words(batch, time, lengths, sizes.projection_size)
        inputs = self._input_states(direction, vectors.flatten(0, 1), words, states)
        with torch.inference_mode():
            after = self._prepared[direction](
                inputs,
                words,
                states,
                state=state,
                carry=True,
                backward=False,
                threads=torch.get_num_threads(),
            )
        assert after is not None, "the state was asked for"
        return EncoderOutput(list(states.unbind(1)), after)

    def _padded_words(
        self, batch: int, time: int, lengths: Tensor, width: int
    ) -> SentenceWords:
        """The words of [B, T] whose layer states are [B, L + 1, T, width]."""
        first = torch.arange(batch) * time
        before = first.repeat_interleave(time) * self.encoder.config.sizes.layers
        rows = torch.arange(batch * time) + before
        strides = torch.full((batch * time,), time * width)
        lengths = lengths.long().clamp(0, time)
        return SentenceWords(first, lengths, rows * width, strides)

    def _run_all(self, vectors: Tensor, words: SentenceWords, states: Tensor) -> None:
        """Put the layer states of words with vectors [M, E] into `states`, all
        directions side by side.
        """
        directions = self.encoder.directions
        size = self.encoder.config.sizes.projection_size
        # each direction has its own cores, and its threads wait for none of another
        workers = min(len(directions), torch.get_num_threads())
        threads = torch.get_num_threads() // workers
        with torch.inference_mode(), ThreadPoolExecutor(workers) as pool:
            runs = []
            for number, direction in enumerate(directions):
                own = words._replace(places=words.places + number * size)
                inputs = self._input_states(direction, vectors, own, states)
                # the mode belongs to a thread, and the pool's threads are not in it
                prepared = torch.inference_mode()(self._prepared[direction])
                backward = direction == "backward"
                run = pool.submit(
                    prepared, inputs, own, states, backward=backward, threads=threads
                )
                runs.append(run)
            for run in runs:
                run.result()

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

    def _padded_batches(self, vectors: Tensor, lengths: Tensor) -> list[Tensor]:
        """`sentences` in padded batches of similar length."""
        pieces = vectors.to(self.device).split(lengths.tolist())
        states: list[Tensor] = [vectors] * len(pieces)
        words = (lengths - 2).tolist()
        for batch in length_bucketed(words, _PADDED_WORDS, len(pieces)):
            chosen = [pieces[index] for index in batch]
            padded = torch.nn.utils.rnn.pad_sequence(chosen, batch_first=True)
            made = []
            for index, each in zip(batch, self(padded, lengths[batch]), strict=True):
                made.append(each[:, : len(pieces[index])])
            # one copy to main memory for all, in which the padding stays behind
            sizes = [each.numel() for each in made]
            flat = torch.cat([each.flatten() for each in made]).cpu().split(sizes)
            for index, each, own in zip(batch, made, flat, strict=True):
                states[index] = own.view(each.shape)
        return states

    def _autocast(self) -> torch.autocast:
        return autocast(self.device, self.precision)


def encode_next(
    inference: InferenceEncoder,
    ids: Sequence[Tensor],
    table: Tensor,
    carried: CarriedState,
) -> list[Tensor]:
    """Layer states [L + 1, n, 2P] of sentences without `<s>` and `</s>`, each read from
    its row of a state.

    Args:
        ids: int64 [n + 2] of each sentence, `<s>` and `</s>` included.
        table: the word vectors [types, E] of ids.
        carried: the state of each direction before the sentences, in its first B rows;
            it becomes the state after them.
    """
    lengths = torch.tensor([len(each) for each in ids])
    halves = []
    for direction in inference.encoder.directions:
        backward = direction == "backward"
        read = [each.flip(0) for each in ids] if backward else ids
        # [B, T]
        padded = torch.nn.utils.rnn.pad_sequence(list(read), batch_first=True)
        state = carried.get(direction)
        if state is not None:
            state = state.map(lambda tensor: tensor[: len(ids)])
        output = inference.run(direction, table[padded], state, lengths=lengths)
        carried[direction] = output.state
        # [B, L + 1, T, P]
        states = torch.stack(output.layer_states, dim=1).cpu()
        half = []
        for each, length in zip(states, lengths.tolist(), strict=True):
            own = each[:, :length]
            half.append(own.flip(1) if backward else own)
        halves.append(half)
    return [
        torch.cat(each, dim=-1)[:, 1:-1].clone() for each in zip(*halves, strict=True)
    ]
