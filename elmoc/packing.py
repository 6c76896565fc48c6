"""Packing: how a model and its word vectors become one small model directory.

Vectors of fastText keep rows of their first words and of n-grams, those of a teacher
rows of their most frequent words and of all pieces. Each source of joined vectors is
packed by itself. One that was packed before is packed again beside a teacher, which
tells how often words occur.

Letters: V words of the fastText file, E width of word vectors, P projection, M
codebooks.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch import Tensor, nn

from elmoc.errors import InputError, human_bytes, say
from elmoc.model import ElmoC
from elmoc.model_directory import ModelDirectory, OutputLayerRecord
from elmoc.weights import contiguous, packed_weights, unpacked_weights
from elmoc.word_vectors.coded_rows import CodedRows
from elmoc.word_vectors.compact import CompactVectors, Ngrams
from elmoc.word_vectors.fasttext import FastTextVectors
from elmoc.word_vectors.joined import JoinedVectors
from elmoc.word_vectors.pieces import Pieces
from elmoc.word_vectors.product_quantisation import (
    ENTRIES,
    quantise,
    require_faiss,
)
from elmoc.word_vectors.sources import WordVectors

# More than config.json, the card and the headers of tensors take.
_OTHER_BYTES = 64_000
# This share of the mean squared weight counts for every direction of word vectors, so
# that no direction is given up because this encoder does not read it.
_LEAST_WEIGHT = 0.03
# The share of n-grams in the room for vectors; the codes of an n-gram for each number
# of its vector; and the fewest codes of a word: with less room, fewer words get a row.
_NGRAM_SHARE = 0.4
_NGRAM_CODES = 1 / 6
_WORD_CODES = 1 / 4
# Bytes of a row beside its codes: a float16 norm, and the 64-bit hash of a word or the
# 32-bit number of an n-gram. Pieces are in the order of their numbers.
_WORD_BYTES = 10
_PIECE_BYTES = 2
_NGRAM_BYTES = 6
# Words whose n-grams are counted at once.
_BLOCK_WORDS = 1 << 14
# Numbers that one code stands for, at most: of more it says too little.
_MOST_NUMBERS = 12


def code_numbers(size: int) -> list[int]:
    """The numbers of codes that a vector of E numbers can have, each for 2 to 12 of
    them.

    Raises:
        InputError: there is none.
    """
    found = [
        number
        for number in range(1, size // 2 + 1)
        if size % number == 0 and size / number <= _MOST_NUMBERS
    ]
    if not found:
        raise InputError(
            f"word vectors of {size} numbers cannot be divided into equal parts of 2 "
            f"to {_MOST_NUMBERS} numbers, and are not packed"
        )
    return found


def row_counts(
    words: int, ngrams: int, size: int, room: int
) -> tuple[int, int, int, int]:
    """How many words and n-grams get a row, and of how many codes.

    Args:
        words, ngrams: the numbers of those that there are.
        size: E.
        room: bytes for all vectors.

    Returns:
        Words, codes of a word, n-grams, codes of an n-gram.

    Raises:
        InputError: the room is too little.
    """
    # Matrix, codebooks, mean and `rest`, once of words and once of n-grams.
    room -= 2 * (2 * size * (size + ENTRIES) + 8 * size)
    codes = code_numbers(size)
    ngram_codes = min(codes, key=lambda number: abs(number - size * _NGRAM_CODES))
    word_codes = min(codes, key=lambda number: abs(number - size * _WORD_CODES))
    ngram_bytes = ngram_codes + _NGRAM_BYTES
    ngrams = min(int(room * _NGRAM_SHARE) // ngram_bytes, ngrams)
    left = room - ngrams * ngram_bytes
    # Once all words have a row, the room is for more codes.
    fitting = [number for number in codes if words * (number + _WORD_BYTES) <= left]
    word_codes = max([word_codes, *fitting])
    words = min(left // (word_codes + _WORD_BYTES), words)
    if min(words, ngrams) < ENTRIES:
        raise InputError(
            f"--size is too small: {human_bytes(max(0, room))} are left for word "
            "vectors"
        )
    return words, word_codes, ngrams, ngram_codes


def encoder_metric(model: ModelDirectory) -> np.ndarray:
    """float64 [E, E]: G with xGxᵀ = the squared length of what a raw vector x adds to
    the input projections.
    """
    size = model.word_vectors.size
    transform = model.transform.matrix
    matrix = np.eye(size) if transform is None else transform.astype(np.float64)
    total = np.zeros((size, size))
    for direction in model.encoder.directions:
        layer = model.encoder.direction(direction).input_layer
        read = matrix  # [E, P]
        if isinstance(layer, nn.Sequential):
            weight = layer.get_parameter("projection.weight")
            read = matrix @ weight.detach().double().numpy().T
        total += read @ read.T
    return total + _LEAST_WEIGHT * np.trace(total) / size * np.eye(size)


def code_rows(
    rows: np.ndarray, weights: np.ndarray, metric: np.ndarray, codebooks: int
) -> CodedRows:
    """Product quantisation of rows [n, E], where it costs the encoder least.

    The mean is subtracted, and the axes are turned to the principal ones of what is
    left as `metric` [E, E], C of G = CCᵀ, sees it, dealt out so that the products of
    variances of all codebooks are alike (Ge et al. 2013, Section 4). `weights` [n] is
    how much each row counts.
    """
    share = (weights / weights.sum()).astype(np.float32)
    mean = share @ rows
    centred = rows - mean
    covariance = metric.T @ ((centred * share[:, None]).T @ centred) @ metric
    # Variances ascend.
    variances, axes = np.linalg.eigh(covariance)
    # In each round every codebook gets an axis, in turns from the first and the last.
    rounds = np.arange(len(variances)).reshape(-1, codebooks)
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
    vectors: WordVectors,
    metric: np.ndarray,
    room: int,
    teacher: CompactVectors | None = None,
) -> CompactVectors | JoinedVectors:
    """The packed form of word vectors. Its numbers are printed.

    Args:
        vectors: of fastText, of a teacher, or several of them joined.
        metric: see `encoder_metric`.
        room: bytes that the packed vectors take at most.
        teacher: whose vectors stand beside them, if any do.

    Raises:
        InputError: the vectors are of another kind, or the room is too little.
    """
    if isinstance(vectors, JoinedVectors):
        return _pack_joined(vectors, metric, room)
    shape = np.linalg.cholesky(metric)
    if isinstance(vectors, FastTextVectors) and vectors.header.has_ngrams:
        return pack_fasttext(vectors, shape, room)
    if isinstance(vectors, CompactVectors) and vectors.counts is not None:
        return pack_teacher(vectors, shape, room)
    if (
        isinstance(vectors, CompactVectors)
        and isinstance(vectors.parts, Ngrams)
        and teacher is not None
    ):
        return pack_again(vectors, vectors.parts, teacher, shape, room)
    raise InputError(
        "pack takes models that read a fastText .bin file with n-grams, or vectors of "
        f"a teacher, not {vectors.origin}"
    )


def _pack_joined(joined: JoinedVectors, metric: np.ndarray, room: int) -> JoinedVectors:
    """Each source packed by itself, in a share of the room by its width."""
    packed = []
    start = 0
    stored = [part for part in joined.parts if isinstance(part, CompactVectors)]
    teacher = next((part for part in stored if part.counts is not None), None)
    for part, scale in zip(joined.parts, joined.scales, strict=True):
        block = slice(start, start + part.size)
        start += part.size
        share = room * part.size // joined.size
        own_metric = scale**2 * metric[block, block]
        packed.append(pack_vectors(part, own_metric, share, teacher))
    return JoinedVectors(packed, joined.scales)


def pack_teacher(
    teacher: CompactVectors, metric: np.ndarray, room: int
) -> CompactVectors:
    """The compact vectors of a teacher: its most frequent words, and all pieces.

    Args:
        teacher: with counts and pieces.
        metric: lower triangle, C of G = CCᵀ.
        room: bytes that the vectors take at most.
    """
    pieces = teacher.parts
    assert isinstance(pieces, Pieces), "vectors with counts have pieces"
    assert teacher.counts is not None, "the caller has looked"
    size = teacher.size
    # Matrix, codebooks and mean, once of words and once of pieces; the tokeniser.
    room -= 2 * (2 * size * (size + ENTRIES) + 4 * size) + len(pieces.tokenizer)
    room -= pieces.composition.nbytes
    codes = min(code_numbers(size), key=lambda number: abs(number - size * _WORD_CODES))
    room -= len(pieces.rows) * (codes + _PIECE_BYTES)
    number = min(room // (codes + _WORD_BYTES), len(teacher.hashes))
    if min(number, len(pieces.rows)) < ENTRIES:
        raise InputError("--size is too small for the vectors of the teacher")
    # Rows are in the order of their hashes.
    kept = np.sort(np.argsort(-teacher.counts, kind="stable")[:number])
    weights = np.sqrt(np.maximum(teacher.counts[kept], 1))
    rows = code_rows(teacher.rows.vectors(kept), weights, metric, codes)
    raw = pieces.rows.vectors(np.arange(len(pieces.rows)))
    coded = code_rows(raw, np.ones(len(raw)), metric, codes)
    of_pieces = Pieces(pieces.tokenizer, coded, pieces.composition)
    say(f"{number:,} words and {len(raw):,} pieces of {codes} bytes")
    return CompactVectors(teacher.hashes[kept], rows, of_pieces, about=teacher.about)


def pack_again(
    packed: CompactVectors,
    ngrams: Ngrams,
    teacher: CompactVectors,
    metric: np.ndarray,
    room: int,
) -> CompactVectors:
    """Packed vectors of fastText in less room: the words that a teacher's corpus has
    most often, and the n-grams that the encoder reads most of.

    Args:
        packed: their rows of words.
        ngrams: theirs.
        teacher: with counts.
        metric: lower triangle, C of G = CCᵀ.
        room: bytes that the vectors take at most.
    """
    assert teacher.counts is not None, "the caller has looked"
    _, rows, places = np.intersect1d(
        packed.hashes, teacher.hashes, assume_unique=True, return_indices=True
    )
    number, word_codes, ngram_number, ngram_codes = row_counts(
        len(rows), len(ngrams.buckets), packed.size, room
    )
    counts = teacher.counts[places]
    frequent = np.sort(np.argsort(-counts, kind="stable")[:number])
    kept = rows[frequent]
    weights = np.sqrt(np.maximum(counts[frequent], 1))
    of_words = code_rows(packed.rows.vectors(kept), weights, metric, word_codes)
    raw = ngrams.rows.vectors(np.arange(len(ngrams.buckets)))
    lengths = np.linalg.norm(raw @ metric.astype(np.float32), axis=1)
    long = np.sort(np.argsort(-lengths, kind="stable")[:ngram_number])
    coded = code_rows(raw[long], np.ones(len(long)), metric, ngram_codes)
    of_ngrams = replace(ngrams, buckets=ngrams.buckets[long], rows=coded)
    say(f"{number:,} words of {word_codes} bytes, {len(long):,} n-grams")
    return CompactVectors(packed.hashes[kept], of_words, of_ngrams)


def pack_fasttext(
    fasttext: FastTextVectors, metric: np.ndarray, room: int
) -> CompactVectors:
    """The compact vectors of a fastText file: its first words, each coded whole, and
    its n-grams. Their numbers are printed.

    The n-grams that would be missed most have a row: by count × squared length of the
    part of a vector that the encoder reads.

    Args:
        fasttext: the file.
        metric: lower triangle, C of G = CCᵀ.
        room: bytes that the vectors take at most.
    """
    words, counts, ngram_rows = fasttext.contents()
    kind = fasttext.header.ngrams
    # How often each n-gram occurs in the words, however often these occur.
    in_words = np.zeros(kind.buckets)
    for start in range(0, len(words), _BLOCK_WORDS):
        _, ngrams_of_words = kind.of_words(words[start : start + _BLOCK_WORDS])
        in_words += np.bincount(ngrams_of_words, minlength=kind.buckets)
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
    # The mean of the others stands for each of them.
    pruned = counts.astype(np.float32)
    pruned[kept] = 0
    of_ngrams = Ngrams(
        kind,
        buckets=used[kept].astype(np.int32),
        rows=code_rows(raw[kept], np.sqrt(counts[kept]), metric, ngram_codes),
        rest=(pruned @ raw / max(1, pruned.sum())).astype(np.float32),
    )
    say(f"{number:,} words of {word_codes} bytes, {ngrams:,} n-grams of {ngram_codes}")
    return CompactVectors.of_words(words, rows, of_ngrams)


def packed_model(
    elmo: ElmoC,
    weights: Mapping[str, Tensor],
    vectors: CompactVectors | JoinedVectors,
) -> ElmoC:
    """The model with packed weights and with compact vectors, as its directory will be
    read.
    """
    parent = elmo.directory
    encoder = deepcopy(elmo.encoder)
    folder = Path(parent.path or "")
    unpacked, weight_type = unpacked_weights(weights)
    encoder.load_weights(unpacked)
    # What was packed, and the type of matrices now.
    packed = {
        "parent": str(folder.parent if folder.name == "model" else folder),
        "model": elmo.fingerprint,
        "word_vectors": parent.word_vectors.file_name,
        "word_vectors_fingerprint": parent.word_vectors.fingerprint,
        "weights": weight_type,
    }
    return ElmoC(
        replace(
            parent,
            encoder=encoder,
            output_layer=OutputLayerRecord(parent.output_layer.config, None),
            word_vectors=replace(parent.word_vectors, fingerprint=vectors.fingerprint),
            training=parent.training | {"packed": packed},
            stored_vectors=vectors,
            weight_type=weight_type,
            path=None,
        ),
        vectors,
    )


def pack(elmo: ElmoC, size: int, *, weight_type: str) -> ElmoC:
    """The model in `size` bytes, as its directory is to be written. Its parts are
    printed.

    Args:
        elmo: a model that reads a fastText file with n-grams, vectors of a teacher, or
            both.
        size: bytes of all files of the directory, at most.
        weight_type: of the encoder's matrices: `int8` or `float16`.

    Raises:
        InputError: the model has other word vectors, or the size is too small.
    """
    require_faiss()
    weights = packed_weights(contiguous(elmo.encoder.weights()), weight_type)
    parts: list[Tensor | np.ndarray] = [
        *weights.values(),
        *elmo.directory.transform.arrays.values(),
    ]
    encoder_bytes = sum(each.nbytes for each in parts)
    say(f"encoder in {weight_type}: {human_bytes(encoder_bytes)}")
    vectors = pack_vectors(
        elmo.word_vectors,
        metric=encoder_metric(elmo.directory),
        room=size - encoder_bytes - _OTHER_BYTES,
    )
    return packed_model(elmo, weights, vectors)
