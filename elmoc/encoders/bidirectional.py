"""The bidirectional encoder: one encoder and input layer a direction, without any weight in common.

`InferenceEncoder` makes layer states without autograd, in a chosen precision: from zero state, or with the state
carried from one sentence to the next.
Letters: B sentences of a batch, T time, E word-vector width, P projection, L layers.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from elmoc.encoders import (
    DIRECTIONS,
    Encoder,
    EncoderOutput,
    EncoderSizes,
    EncoderState,
    PreparedEncoder,
    SentenceWords,
)
from elmoc.encoders.lstm import LstmSizes
from elmoc.encoders.plain_lstm import PlainLstmSizes
from elmoc.encoders.transformer import TransformerSizes
from elmoc.errors import InputError, reading
from elmoc.files import MOST_RECORD_BYTES
from elmoc.files.checksums import fingerprint
from elmoc.files.records import convert

# All encoders, by their names in configs and model directories.
ENCODERS: dict[str, type[EncoderSizes]] = {sizes.kind: sizes for sizes in (LstmSizes, PlainLstmSizes, TransformerSizes)}
_PADDED_WORDS = 16384  # of a padded batch, where only the encoder's own `forward` runs
# Words that an input layer reads at once, at least. Libraries add up the products of fewer rows in another order, and
# in bf16 a difference in the last bit grows.
_LEAST_WORDS = 64
# The state of each direction, by its name, that is carried from one sentence to the next; empty is zero state.
CarriedState = dict[str, EncoderState]


class VectorProjection(nn.Module):
    """a_t = LayerNorm(W_in x_t + b_in), from word vectors x_t of E numbers to P (Li et al. 2019, Section 4.1)."""

    def __init__(self, *, word_vector_size: int, projection_size: int) -> None:
        super().__init__()
        self.projection = nn.Linear(word_vector_size, projection_size)
        self.norm = nn.LayerNorm(projection_size)

    def forward(self, words: Tensor) -> Tensor:
        """Word vectors [B, T, E] → [B, T, P]."""
        normalised: Tensor = self.norm(self.projection(words))
        return normalised


@dataclass(frozen=True)
class EncoderConfig:
    """An encoder whole: its own settings, and the width of the word vectors that it reads."""

    sizes: EncoderSizes = field(default_factory=LstmSizes)
    word_vector_size: int = 300

    def __post_init__(self) -> None:
        width = self.sizes.projection_size
        if self.sizes.input_layer == "identity" and self.word_vector_size != width:
            raise InputError(
                f"encoder.input_layer is identity, but encoder.projection_size is {width} and the word vectors have "
                f"{self.word_vector_size} numbers"
            )

    def build_input_layer(self) -> nn.Module:
        """What makes layer 0 [B, T, P] of word vectors [B, T, E] in a direction, with random weights."""
        if self.sizes.input_layer == "identity":  # word vectors have the encoder's width, as in the original ELMo
            return nn.Identity()
        return VectorProjection(word_vector_size=self.word_vector_size, projection_size=self.sizes.projection_size)

    def to_dict(self) -> dict[str, Any]:
        """As a model directory has it."""
        return {"kind": self.sizes.kind, **asdict(self.sizes), "word_vector_size": self.word_vector_size}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, word_vector_size: int, where: str) -> "EncoderConfig":
        """From the `encoder` object of a model directory `where`, which has `word_vector_size`, too."""
        with reading(where):
            sizes = dict(values)
            kind = sizes.pop("kind")
            if kind not in ENCODERS:
                raise InputError(f"unknown encoder.kind {kind!r} (known: {', '.join(ENCODERS)})")
            if sizes.pop("word_vector_size") != word_vector_size:
                raise InputError("encoder.word_vector_size must be the size of the word vectors")
            return cls(convert(sizes, ENCODERS[kind], where=where, prefix="encoder."), word_vector_size)


class DirectionEncoder(nn.Module):
    """One direction: an input layer and an encoder. It reads its words in its own reading order."""

    def __init__(self, input_layer: nn.Module, encoder: Encoder) -> None:
        super().__init__()
        self.input_layer = input_layer
        self.encoder = encoder

    def forward(self, words: Tensor, state: EncoderState | None = None, **options: Any) -> EncoderOutput:
        """words [B, T, E], in reading order → layer states and state; the options go to `Encoder`."""
        output: EncoderOutput = self.encoder(self.input_layer(words), state, **options)
        return output


class BidirectionalEncoder(nn.Module):
    """The directions of a model, a `DirectionEncoder` each; `fast` equals the reference up to rounding."""

    def __init__(self, config: EncoderConfig, *, directions: tuple[str, ...] = DIRECTIONS, fast: bool = False) -> None:
        super().__init__()
        self.config = config
        self.directions = directions
        for direction in directions:
            self.add_module(
                direction_name(direction), DirectionEncoder(config.build_input_layer(), config.sizes.build(fast=fast))
            )

    def direction(self, name: str) -> DirectionEncoder:
        """The encoder of one direction."""
        module = getattr(self, direction_name(name))
        assert isinstance(module, DirectionEncoder)
        return module

    @property
    def width(self) -> int:
        """The width of the layer states: 2P, or P for a model of one direction."""
        return len(self.directions) * self.config.sizes.projection_size

    def forward(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Layer states of whole sentences from zero state.

        Args:
            vectors: [B, T, E], sentences with their `<s>` and `</s>`, padded at the end.
            lengths: int [B], `<s>` and `</s>` counted.

        Returns:
            [B, L + 1, T, 2P] (forward ‖ backward), aligned with `vectors`; what stands past a length means nothing.
        """
        # padding stands at the end in both reading orders, so it never reaches a word
        states = []
        for direction in self.directions:
            backward = direction == "backward"
            read = reverse_padded(vectors, lengths) if backward else vectors
            layers = self.direction(direction)(read).layer_states
            aligned = [reverse_padded(layer, lengths) if backward else layer for layer in layers]
            states.append(torch.stack(aligned, dim=1))  # [B, L + 1, T, P]
        return torch.cat(states, dim=-1)

    def weights(self) -> dict[str, Tensor]:
        """The weights by the names of model files and checkpoints, which do not change with the modules of the code.

        `forward_lm.input_layer.norm.weight` of the module is `forward_lm.input_norm.weight` of a file, and
        `forward_lm.encoder.layers.0.bias` is `forward_lm.layers.0.bias`.
        """
        return {_file_name(name): tensor for name, tensor in self.state_dict().items()}

    def fingerprint(self) -> str:
        """A content hash of the weights."""
        weights = sorted(self.weights().items())
        return fingerprint(
            name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes() for name, tensor in weights
        )

    def load_weights(self, weights: Mapping[str, Tensor], *, assign: bool = False) -> None:
        """Take over weights by their names in files, copied, or with `assign` as they are.

        Raises `InputError` when one is missing, unknown, or of another shape or type.
        """
        own = self.state_dict()
        check_weights(weights, {_file_name(name): tensor for name, tensor in own.items()})
        self.load_state_dict({name: weights[_file_name(name)] for name in own}, assign=assign)


def check_weights(weights: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Raise an `InputError` unless weights have the names, shapes and types of the `expected` ones."""
    for what, names in (("lacks", expected.keys() - weights.keys()), ("has unknown", weights.keys() - expected.keys())):
        if names:
            raise InputError(f"{what} tensors: {', '.join(sorted(names)[:3])}{', …' if len(names) > 3 else ''}")
    for name, tensor in weights.items():
        if tensor.shape != expected[name].shape:
            shapes = list(tensor.shape), list(expected[name].shape)
            raise InputError(f"{name} has the shape {shapes[0]}, where {shapes[1]} is expected")
        if tensor.dtype != expected[name].dtype:
            raise InputError(f"{name} has the type {tensor.dtype}, where {expected[name].dtype} is expected")


def read_tensors(path: Path | str) -> tuple[dict[str, str], dict[str, Tensor]]:
    """The metadata and the tensors of a safetensors file, all of finite numbers; for callers within `reading(path)`."""
    with open(path, "rb") as start:
        if int.from_bytes(start.read(8), "little") > MOST_RECORD_BYTES:
            raise InputError(f"its header is larger than {MOST_RECORD_BYTES >> 20} MiB")
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = file.metadata() or {}
    check_finite(tensors)
    return metadata, tensors


def check_finite(weights: Mapping[str, Tensor]) -> None:
    """Raise an `InputError` for a weight with a number that is NaN or infinite."""
    for name, tensor in weights.items():
        if tensor.is_floating_point() and tensor.numel():
            least, largest = tensor.aminmax()  # NaN where there is any
            if not (least.isfinite() and largest.isfinite()):
                raise InputError(f"{name} has a number that is not finite")


def _file_name(name: str) -> str:
    return name.replace(".input_layer.", ".input_", 1).replace(".encoder.", ".", 1)


def direction_name(direction: str) -> str:
    """The module (and so the parameter prefix) of a direction; a bare `forward` is taken in every module."""
    return f"{direction}_lm"


def reverse_padded(values: Tensor, lengths: Tensor) -> Tensor:
    """[B, T, …] with the first `lengths[b]` steps of every row reversed and the padding left where it is."""
    steps = torch.arange(values.shape[1], device=values.device)  # [T]
    lengths = lengths.unsqueeze(1)  # [B, 1]
    source = torch.where(steps < lengths, lengths - 1 - steps, steps)  # [B, T]
    return values[torch.arange(len(values), device=values.device).unsqueeze(1), source]


class InferenceEncoder:
    """A bidirectional encoder prepared for inference; its weights must not change while it is in use.

    Factors of matrix products are of `dtype`, float32 or bfloat16.
    """

    def __init__(self, encoder: BidirectionalEncoder, *, dtype: torch.dtype = torch.float32) -> None:
        self.encoder = encoder.eval()
        self.dtype = dtype
        self.device = next(encoder.parameters()).device
        # for each direction, or, where only its `forward` runs, for none
        self._prepared: dict[str, PreparedEncoder] = {
            direction: prepared
            for direction in encoder.directions
            if (prepared := encoder.direction(direction).encoder.prepare(dtype)) is not None
        }

    def __call__(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Layer states of whole sentences from zero state: float32 [B, L + 1, T, 2P], on the device.

        Args:
            vectors: [B, T, E], sentences with their `<s>` and `</s>`, padded at the end.
            lengths: int [B], `<s>` and `</s>` counted; what stands past a length means nothing in the result.
        """
        if not self._prepared:
            with torch.inference_mode(), self._autocast():
                return self.encoder(vectors.to(self.device), lengths.to(self.device)).float()
        batch, time = vectors.shape[:2]
        layers, width = self.encoder.config.sizes.layers + 1, self.encoder.width
        states = torch.empty(batch, layers, time, width)
        self._run_all(vectors.flatten(0, 1), self._padded_words(batch, time, lengths, width), states)
        return states

    def sentences(self, vectors: Tensor, lengths: Tensor) -> list[Tensor]:
        """Layer states of whole sentences from zero state: for each float32 [L + 1, n, 2P], on the CPU.

        The fastest way to compute many: sentences of any lengths, in any order, without padding.

        Args:
            vectors: [M, E], all sentences one behind the other, each with its `<s>` and `</s>`.
            lengths: int [B], `<s>` and `</s>` counted, M together.
        """
        if not self._prepared:
            return self._padded_batches(vectors, lengths)
        layers, width = self.encoder.config.sizes.layers + 1, self.encoder.width
        lengths = lengths.long()
        first = lengths.cumsum(0) - lengths
        strides = (lengths * width).repeat_interleave(lengths)  # [M]
        places = torch.arange(len(vectors)) * width + (layers - 1) * (first * width).repeat_interleave(lengths)
        states = torch.empty(len(vectors) * layers * width)
        self._run_all(vectors, SentenceWords(first, lengths, places, strides), states)
        sizes = (lengths * (layers * width)).tolist()
        return [each.view(layers, -1, width) for each in states.split(sizes)]

    def run(
        self, direction: str, vectors: Tensor, state: EncoderState | None = None, *, lengths: Tensor
    ) -> EncoderOutput:
        """One direction over a window, with its state carried.

        Args:
            vectors: [B, T, E], in reading order, padded at the end.
            state: that after the window before; None is the state before any word.
            lengths: int [B].
        """
        if not self._prepared:
            vectors, lengths = vectors.to(self.device), lengths.to(self.device)
            with torch.inference_mode(), self._autocast():
                output = self.encoder.direction(direction)(vectors, state, lengths=lengths)
            return EncoderOutput([layer.float() for layer in output.layer_states], output.state)
        sizes = self.encoder.config.sizes
        batch, time = vectors.shape[:2]
        states = torch.zeros(batch, sizes.layers + 1, time, sizes.projection_size)
        words = self._padded_words(batch, time, lengths, sizes.projection_size)
        inputs = self._input_states(direction, vectors.flatten(0, 1), words, states)
        with torch.inference_mode():
            after = self._prepared[direction](
                inputs, words, states, state=state, carry=True, backward=False, threads=torch.get_num_threads()
            )
        assert after is not None, "the state was asked for"
        return EncoderOutput(list(states.unbind(1)), after)

    def _padded_words(self, batch: int, time: int, lengths: Tensor, width: int) -> SentenceWords:
        """The words of [B, T] whose layer states are [B, L + 1, T, width]."""
        first = torch.arange(batch) * time
        rows = torch.arange(batch * time) + first.repeat_interleave(time) * self.encoder.config.sizes.layers
        strides = torch.full((batch * time,), time * width)
        return SentenceWords(first, lengths.long().clamp(0, time), rows * width, strides)

    def _run_all(self, vectors: Tensor, words: SentenceWords, states: Tensor) -> None:
        """Put the layer states of words with vectors [M, E] into `states`, all directions side by side."""
        directions, size = self.encoder.directions, self.encoder.config.sizes.projection_size
        # each direction has its own cores, and its threads wait for nobody else's
        workers = min(len(directions), torch.get_num_threads())
        threads = torch.get_num_threads() // workers
        with torch.inference_mode(), ThreadPoolExecutor(workers) as pool:
            runs = []
            for number, direction in enumerate(directions):
                own = words._replace(places=words.places + number * size)
                inputs = self._input_states(direction, vectors, own, states)
                prepared = torch.inference_mode()(self._prepared[direction])  # the mode of its own thread
                runs.append(
                    pool.submit(prepared, inputs, own, states, backward=direction == "backward", threads=threads)
                )
            for run in runs:
                run.result()

    def _input_states(self, direction: str, vectors: Tensor, words: SentenceWords, states: Tensor) -> Tensor:
        """What the encoder of a direction reads [M, P], put into layer 0 of its states."""
        with torch.inference_mode():
            spare = torch.zeros(max(0, _LEAST_WORDS - len(vectors)), vectors.shape[1])
            read = torch.cat((vectors, spare)).unsqueeze(0)
            inputs: Tensor = self.encoder.direction(direction).input_layer(read).squeeze(0)[: len(vectors)]
            size = inputs.shape[1]
            states.view(-1, size).index_copy_(0, words.places // size, inputs)
        return inputs

    def _padded_batches(self, vectors: Tensor, lengths: Tensor) -> list[Tensor]:
        """`sentences` in padded batches of similar length."""
        pieces = vectors.split(lengths.tolist())
        states: list[Tensor] = [vectors] * len(pieces)
        for batch in length_bucketed([len(piece) - 2 for piece in pieces], _PADDED_WORDS, len(pieces)):
            padded = torch.nn.utils.rnn.pad_sequence([pieces[index] for index in batch], batch_first=True)
            for index, each in zip(batch, self(padded, lengths[batch]).cpu(), strict=True):
                states[index] = each[:, : len(pieces[index])].clone()  # the rest of the batch is free again
        return states

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)


def encode_next(
    inference: InferenceEncoder, ids: Sequence[Tensor], table: Tensor, carried: CarriedState
) -> list[Tensor]:
    """Layer states [L + 1, n, 2P] of sentences without `<s>` and `</s>`, each read from its row of a state.

    Args:
        ids: int64 [n + 2] of each sentence, `<s>` and `</s>` included.
        table: the word vectors [types, E] of ids.
        carried: the states before the sentences, in their first B rows, which become those after them.
    """
    lengths = torch.tensor([len(each) for each in ids])
    halves = []
    for direction in inference.encoder.directions:
        backward, state = direction == "backward", carried.get(direction)
        read = [each.flip(0) if backward else each for each in ids]
        padded = torch.nn.utils.rnn.pad_sequence(read, batch_first=True)  # [B, T]
        if state is not None:
            state = state.map(lambda tensor: tensor[: len(ids)])
        output = inference.run(direction, table[padded], state, lengths=lengths)
        carried[direction] = output.state
        states = torch.stack(output.layer_states, dim=1).cpu()  # [B, L + 1, T, P]
        whole = [each[:, :length] for each, length in zip(states, lengths.tolist(), strict=True)]
        halves.append([each.flip(1) if backward else each for each in whole])
    return [torch.cat(each, dim=-1)[:, 1:-1].clone() for each in zip(*halves, strict=True)]


def length_bucketed(
    lengths: Sequence[int], batch_words: int, batch_size: int, *, padded: bool = True
) -> Iterator[list[int]]:
    """Indices of sentences in batches of similar length, longest first.

    A batch holds at most `batch_words` words (boundaries included, and those that pad its sentences to the longest if
    it is `padded`) and `batch_size` sentences, but always one.
    """
    batch: list[int] = []
    words = longest = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        longest = longest or lengths[index] + 2
        more = longest if padded else lengths[index] + 2
        if batch and (words + more > batch_words or len(batch) == batch_size):
            yield batch
            batch, words, longest = [], 0, lengths[index] + 2
            more = longest
        batch.append(index)
        words += more
    if batch:
        yield batch
