"""Packing: how a model and its fastText file become one small model directory, and how
near it stays to them.

Letters: V words of the fastText file, E width of word vectors, P projection, M
codebooks.
"""

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from copy import deepcopy
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from elmoc.encoders.bidirectional import VectorProjection
from elmoc.errors import InputError, human_bytes, say
from elmoc.files.text import read_lines
from elmoc.model import ElmoC
from elmoc.model_directory import ModelDirectory, OutputLayerRecord
from elmoc.weights import contiguous, packed_weights, unpacked_weights
from elmoc.word_vectors.coded_rows import CodedRows
from elmoc.word_vectors.compact import CompactVectors, Ngrams
from elmoc.word_vectors.fasttext import Contents, FastTextVectors
from elmoc.word_vectors.ngrams import NgramKind
from elmoc.word_vectors.product_quantisation import (
    ENTRIES,
    SEED,
    quantise,
    require_faiss,
)

# More than config.json, the card and the headers of tensors take.
_OTHER_BYTES = 64_000
# What of the mean squared weight of a direction of word vectors counts in addition, so
# that no direction is given up because this encoder does not read it.
_LEAST_WEIGHT = 0.03
# The share of n-grams in the room for vectors; codes of an n-gram a number of its
# vector; and the fewest of a word: of less room, fewer words get a row.
_NGRAM_SHARE = 0.4
_NGRAM_CODES = 1 / 6
_WORD_CODES = 1 / 4
# Bytes of a row beside its codes: a float16 norm, and the 64-bit hash of a word or the
# 32-bit number of an n-gram.
_WORD_BYTES = 10
_NGRAM_BYTES = 6
# Words whose n-grams are counted at once.
_BLOCK_WORDS = 1 << 14
# What is compared: about this number of words of each band of frequency, and sentences
# of a text, or made up.
_BAND_WORDS = 1000
_SENTENCES = 2000
_MADE_UP = 250
_BANDS = (0, 1_000, 10_000, 100_000)


def row_counts(
    words: int, ngrams: int, size: int, room: int
) -> tuple[int, int, int, int]:
    """How many words get a row and of how many codes each, the same of n-grams, in
    `room` bytes of vectors `size` wide.

    Args:
        words, ngrams: that there are.

    Raises `InputError` where the room is too little for any.
    """
    room -= 2 * (
        2 * size * (size + ENTRIES) + 8 * size
    )  # matrix, codebooks, means of words and of n-grams
    codes = [number for number in range(1, size // 2 + 1) if size % number == 0]
    ngram_codes = min(codes, key=lambda number: abs(number - size * _NGRAM_CODES))
    ngrams = min(int(room * _NGRAM_SHARE) // (ngram_codes + _NGRAM_BYTES), ngrams)
    of_words = room - ngrams * (ngram_codes + _NGRAM_BYTES)
    fitting = [number for number in codes if words * (number + _WORD_BYTES) <= of_words]
    word_codes = max(
        [*fitting, min(codes, key=lambda number: abs(number - size * _WORD_CODES))]
    )
    words = min(of_words // (word_codes + _WORD_BYTES), words)
    if min(words, ngrams) < ENTRIES:
        raise InputError(
            f"--size is too small: {human_bytes(max(0, room))} are left for word vectors"
        )
    return words, word_codes, ngrams, ngram_codes


def encoder_metric(model: ModelDirectory) -> np.ndarray:
    """float64 [E, E], lower triangle: C with ‖xC‖ = the length of what a raw vector x
    adds to the input projections.
    """
    size = model.word_vectors.size
    matrix = (
        np.eye(size)
        if model.transform.matrix is None
        else model.transform.matrix.astype(np.float64)
    )
    total = np.zeros((size, size))
    for direction in model.encoder.directions:
        layer = model.encoder.direction(direction).input_layer
        read = matrix  # [E, P]
        if isinstance(layer, VectorProjection):
            read = matrix @ layer.projection.weight.detach().double().numpy().T
        total += read @ read.T
    return np.linalg.cholesky(
        total + _LEAST_WEIGHT * np.trace(total) / size * np.eye(size)
    )


def code_rows(
    rows: np.ndarray, weights: np.ndarray, metric: np.ndarray, codebooks: int
) -> CodedRows:
    """Product quantisation of rows [n, E], where it costs the encoder least.

    The mean is subtracted, and the axes are turned to the principal ones of what is
    left as `metric` [E, E] sees it, dealt out so that the products of variances of all
    codebooks are alike (Ge et al. 2013, Section 4). `weights` [n] is how much each row
    counts.
    """
    share = (weights / weights.sum()).astype(np.float32)
    mean = share @ rows
    centred = rows - mean
    covariance = metric.T @ ((centred * share[:, None]).T @ centred) @ metric
    variances, axes = np.linalg.eigh(covariance)  # ascending
    rounds = np.arange(len(variances)).reshape(
        -1, codebooks
    )  # in each one, every codebook gets an axis
    rounds[1::2] = rounds[1::2, ::-1]
    axes = axes[:, rounds.T.reshape(-1)] / np.sqrt(variances.sum())
    matrix = np.linalg.inv(metric @ axes).astype(np.float16)
    turned = centred @ np.linalg.inv(matrix.astype(np.float64)).astype(np.float32)
    norms = np.linalg.norm(turned, axis=1, keepdims=True)
    turned /= np.maximum(norms, 1e-12)
    codes, learned = quantise(turned, weights, codebooks)
    return CodedRows(
        "concatenated",
        codes=codes,
        codebooks=learned,
        norms=norms[:, 0].astype(np.float16),
        matrix=matrix,
        mean=mean,
    )


def pack_vectors(
    fasttext: FastTextVectors, contents: Contents, metric: np.ndarray, room: int
) -> CompactVectors:
    """The compact vectors of a fastText file with these contents: its first words, each
    coded whole, and its n-grams.

    N-grams that would be missed most have a row: by count × squared length of what the
    encoder reads of a vector. They take `room` bytes at most; what they take is
    printed.
    """
    words, counts, ngram_rows = contents
    kind = NgramKind(
        fasttext.header.bucket, fasttext.header.shortest, fasttext.header.maxn
    )
    in_words = np.zeros(
        kind.buckets
    )  # how often each n-gram occurs in the words, however often these occur
    for start in range(0, len(words), _BLOCK_WORDS):
        in_words += np.bincount(
            kind.of_words(words[start : start + _BLOCK_WORDS])[1],
            minlength=kind.buckets,
        )
    used = np.flatnonzero(in_words)

    number, word_codes, ngrams, ngram_codes = row_counts(
        len(words), len(used), fasttext.size, room
    )
    words = words[:number]
    counts = np.maximum(counts[:number], 1)
    rows = code_rows(fasttext.lookup(words), np.sqrt(counts), metric, word_codes)

    counts = in_words[used]
    raw = np.array(ngram_rows[used], dtype=np.float32)
    lengths = np.linalg.norm(raw @ metric.astype(np.float32), axis=1)
    kept = np.sort(np.argsort(-counts * lengths**2, kind="stable")[:ngrams])
    pruned = counts.astype(np.float32)
    pruned[kept] = 0
    rest = pruned @ raw / max(1, pruned.sum())
    coded = code_rows(raw[kept], np.sqrt(counts[kept]), metric, ngram_codes)
    of_ngrams = Ngrams(
        kind, used[kept].astype(np.int32), coded, rest.astype(np.float32)
    )
    vectors = CompactVectors.of_words(words, rows, of_ngrams)
    sizes = Counter[str]()
    for name, tensor in vectors.tensors().items():
        sizes[name.partition(".")[0]] += tensor.nbytes
    say(f"{number:,} words of {word_codes} bytes: {human_bytes(sizes['words'])}")
    say(f"{ngrams:,} n-grams of {ngram_codes} bytes: {human_bytes(sizes['ngrams'])}")
    say(
        f"{number - len(vectors.hashes)} words share their hash, and so their row, with a more frequent one"
    )
    return vectors


def packed_model(
    elmo: ElmoC, weights: Mapping[str, Tensor], vectors: CompactVectors
) -> ElmoC:
    """The model with packed weights and with compact vectors, as its directory will be
    read.
    """
    parent = elmo.directory
    encoder = deepcopy(elmo.encoder)
    folder = Path(parent.path or "")
    unpacked, weight_type = unpacked_weights(weights)
    encoder.load_weights(unpacked)
    packed = {
        "parent": str(folder.parent if folder.name == "model" else folder),
        "model": elmo.fingerprint,
        "word_vectors": parent.word_vectors.file_name,
        "word_vectors_fingerprint": parent.word_vectors.fingerprint,
        "weights": weight_type,
    }
    directory = replace(
        parent,
        encoder=encoder,
        output_layer=OutputLayerRecord(parent.output_layer.config, None),
        word_vectors=replace(parent.word_vectors, fingerprint=vectors.fingerprint),
        training=parent.training | {"packed": packed},
        stored_vectors=vectors,
        weight_type=weight_type,
        path=None,
    )
    return ElmoC(directory, vectors)


def pack(elmo: ElmoC, size: int, *, weight_type: str, text: str | None) -> ElmoC:
    """The model in `size` bytes, as its directory is to be written; what it weighs and
    costs is printed.

    Args:
        elmo: a model that reads a fastText file with n-grams.
        size: of all files of the directory, at most.
        weight_type: of the encoder's matrices: `int8` or `float16`.
        text: a file of one tokenised sentence a line on which both models are compared;
            None is a text of words of the lexicon.

    Raises `InputError` for a model with other word vectors, and where the size is too
    small.
    """
    require_faiss()
    fasttext = elmo.word_vectors
    if (
        not isinstance(fasttext, FastTextVectors)
        or fasttext.header.maxn < fasttext.header.shortest
    ):
        raise InputError(
            f"pack takes models that read a fastText .bin file with n-grams, not {fasttext.origin}"
        )
    weights = packed_weights(contiguous(elmo.encoder.weights()), weight_type)
    encoder_bytes = sum(each.nbytes for each in weights.values())
    encoder_bytes += sum(
        array.nbytes for array in elmo.directory.transform.arrays.values()
    )
    say(f"encoder in {weight_type}: {human_bytes(encoder_bytes)}")
    contents = words, counts, _ = fasttext.contents()
    metric = encoder_metric(elmo.directory)
    room = size - encoder_bytes - _OTHER_BYTES
    packed = packed_model(elmo, weights, pack_vectors(fasttext, contents, metric, room))
    sentences = (
        [line.split() for line in islice(read_lines(text), _SENTENCES)]
        if text
        else sentences_of(words, counts)
    )
    say("mean cosine with the original")
    say("  of word vectors:")
    ends = pairwise((*_BANDS, len(words)))
    bands = {
        f"words {start + 1:,} to {min(end, len(words)):,}": words[start:end]
        for start, end in ends
    }
    bands["unseen words"] = sorted(
        {word for sentence in sentences for word in sentence}.difference(words)
    )
    for name, band in bands.items():
        if some := band[:: 1 + len(band) // _BAND_WORDS]:
            before, after = (
                torch.from_numpy(vectors.lookup(some))
                for vectors in (fasttext, packed.word_vectors)
            )
            known = before.any(dim=1)  # others have no direction
            say(f"    {name:24} {cosine_similarity(before, after)[known].mean():.4f}")
    say(
        f"  of layer states, on {text or 'words of the lexicon'}, by layer and their mean:"
    )
    for name, layers in compare_states(
        elmo, packed, sentences, frozenset(words)
    ).items():
        say(
            f"    {name:24} {' '.join(f'{each:.4f}' for each in layers.tolist())}  {layers.mean():.4f}"
        )
    return packed


def sentences_of(words: Sequence[str], counts: np.ndarray) -> list[list[str]]:
    """A text of words as often as they occur (int64 [V]); every twentieth is made of
    halves of two of them.
    """
    generator = np.random.Generator(np.random.Philox(key=SEED))
    sentences = []
    for numbers in generator.choice(
        len(words), size=(_MADE_UP, 21), p=counts / counts.sum()
    ).tolist():
        *some, first, last = (words[number] for number in numbers)
        sentences.append(
            [*some, first[: (len(first) + 1) // 2] + last[len(last) // 2 :]]
        )
    return sentences


def compare_states(
    original: ElmoC, packed: ElmoC, sentences: Sequence[Sequence[str]], seen: Set[str]
) -> dict[str, Tensor]:
    """The mean cosines [L + 1] of layer states of two models, of words that are `seen`
    and of all others.
    """
    found: dict[str, list[Tensor]] = {"words of the text": [], "unseen words": []}
    states = (model.embed_sentences(sentences) for model in (original, packed))
    for words, before, after in zip(sentences, *states, strict=True):
        for word, layers in zip(
            words, cosine_similarity(before, after, dim=-1).T, strict=True
        ):  # [n, L + 1]
            found["words of the text" if word in seen else "unseen words"].append(
                layers
            )
    return {
        name: torch.stack(layers).mean(dim=0)
        for name, layers in found.items()
        if layers
    }
