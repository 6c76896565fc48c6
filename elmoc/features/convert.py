"""Converting: a feature file written again in another layout or type, or with fewer layers, sentence by sentence."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from elmoc.errors import InputError, shortened
from elmoc.features.input import SentenceInput
from elmoc.features.layout_names import LAYOUT_NAMES
from elmoc.features.layouts.sentence import FeatureShape, Sentence
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import converted, write_features
from elmoc.files.writing import refuse_existing, require_space
from elmoc.progress import progress_bar


def convert_features(
    source: Path | str,
    output: Path | str,
    *,
    layout: str,
    dtype: str | None = None,
    compress: bool = False,
    layers: str | None = None,
    documents: Path | str | None = None,
    command_line: str = "",
) -> bool:
    """Write the sentences of a feature file to another, in the same order; no more than one is in memory at a time.

    Args:
        source: the file, in any layout.
        output: the file to write; it must not exist.
        layout: one of `LAYOUTS`.
        dtype: of the numbers, `float32` or `float16`; by default that of the source (float32 of a wider one).
        compress: pack the numbers with gzip.
        layers: names of layers of the source, such as `0,2`; by default all.
        documents: a jsonlines file that says which documents the sentences are, see `SentenceInput`.
        command_line: recorded in the file.

    Returns:
        whether the sentences of the output can be found by their words.

    Raises:
        InputError: a source that is damaged, or has not what the layout or the options need; numbers that are too large
            for the type; a disk without room.
    """
    refuse_existing(output)
    with FeatureFile(source) as features:
        chosen, names = _chosen_layers(features, layers)
        shape = FeatureShape(
            layers=len(names),
            width=features.width,
            dtype=dtype or ("float16" if features.dtype.itemsize == 2 else "float32"),
            single=chosen is None and features.single,
            words=features.tokens,
        )
        if not compress:
            require_space(output, features.tokens * math.prod(shape.of(1)) * np.dtype(shape.dtype).itemsize)
        by_words = LAYOUT_NAMES[layout].found_by_words
        if documents is None and LAYOUT_NAMES[layout].needs_documents and not features.documents:
            raise InputError(f"{source} does not say which documents its sentences are: give --documents")
        attributes = {name: value for name, value in features.attributes.items() if name != "dump"}
        have_words = features.has_map or documents is not None
        sentences = _sentences(features, by_words) if documents is None else _documents(features, documents, by_words)
        with (
            write_features(
                output,
                attributes | {"layers": names, "command_line": command_line},
                shape=shape,
                layout=layout,
                compress=compress,
                sentence_map=have_words,
            ) as writer,
            progress_bar(total=len(features), unit=" sentences", unit_scale=True, desc="convert") as progress,
        ):
            for index, sentence in enumerate(sentences):
                states = features[index]
                try:
                    states = converted(states if chosen is None else states[chosen], shape.dtype)
                except InputError as error:
                    raise InputError(f"{source}, sentence {index}: {error}") from None
                writer.add(sentence, states)
                progress.update()
    return have_words and by_words


def _chosen_layers(features: FeatureFile, layers: str | None) -> tuple[list[int] | None, list[str]]:
    """Which layers of the file, None for all as they are, and the names of those."""
    names = features.layer_names
    if layers is None:
        return None, names
    wanted = layers.split(",")
    if features.single or not set(wanted) <= set(names):
        has = "one layer, without an axis of layers" if features.single else f"the layers {', '.join(names)}"
        raise InputError(
            f"{features.path} has {has}; --layers {shortened(layers)} cannot be taken from it: choose others"
        )
    return [names.index(name) for name in wanted], wanted


def _sentences(features: FeatureFile, by_words: bool) -> Iterator[Sentence]:
    """The sentences of a file, with what it says of their words and documents.

    Of sentences with the same text the map has the last. The others get the text of the last sentence of the file,
    which comes after them, so that the map which is written is the same. Where sentences are to be found `by_words`, a
    map without that one is an `InputError`.
    """
    keys = {index: key for key, indices in features.documents.items() for index in indices}
    lines = {index: line for line, index in features.lines.items()} if features.has_map else {}
    last = lines.get(len(features) - 1, "")
    if by_words and features.has_map and len(features) - 1 not in lines:
        raise InputError(
            f"{features.path}: its map lacks the last of the {len(features):,} sentences, so that not all of them have "
            "a text: give --documents, or choose a layout without a map"
        )
    for index, words in enumerate(features.lengths.tolist()):
        yield Sentence(("",) * words, lines.get(index, last), keys.get(index))


def _documents(features: FeatureFile, path: Path | str, by_words: bool) -> Iterator[Sentence]:
    """The sentences of a file as the documents in `path` have them, which have to be the same."""
    lengths, lines = features.lengths, {}
    if features.has_map:
        lines = {index: line for line, index in features.lines.items()}
    index = -1
    for index, line in enumerate(SentenceInput(path, documents=True)):
        sentence, what = line.sentence, f"{path}, {line.where}"
        if index == len(lengths):
            raise InputError(f"{what} is more than the {index:,} sentences of {features.path}")
        if len(sentence.tokens) != lengths[index]:
            raise InputError(
                f"{what} has {len(sentence.tokens)} words, but sentence {index} of {features.path} {lengths[index]}: "
                "give the documents that were dumped"
            )
        if index in lines and lines[index].split() != sentence.line.split():
            raise InputError(
                f'{what} is "{shortened(sentence.line)}", but sentence {index} of {features.path} is '
                f'"{shortened(lines[index])}": give the documents that were dumped'
            )
        if by_words and not sentence.is_divided:
            raise InputError(
                f"{what} has a word with white space in it, so that it cannot be found by its words: take the white "
                "space out, or choose another layout"
            )
        yield sentence
    if index + 1 < len(lengths):
        raise InputError(f"{path} ends after {index + 1:,} sentences, but {features.path} has {len(lengths):,}")
