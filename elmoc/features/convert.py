"""Converting: a feature file written again in another layout or type, or with fewer
layers, sentence by sentence.
"""

from collections.abc import Iterator
from pathlib import Path

from elmoc.errors import InputError, reading, shortened
from elmoc.features.layouts import LAYOUTS
from elmoc.features.layouts.interface import FeatureShape, converted
from elmoc.features.reader import FeatureFile
from elmoc.process import progress_bar
from elmoc.text.sentences import Sentence


def convert_features(
    source: Path | str,
    output: Path | str,
    *,
    layout: str,
    dtype: str | None = None,
    compress: bool = False,
    layers: str | None = None,
    command_line: str = "",
) -> bool:
    """Write the sentences of a feature file to another, in the same order; no more than
    one is in memory at a time.

    Args:
        source: the file, in any layout.
        output: the file to write; it must not exist.
        layout: one of `LAYOUTS`.
        dtype: of the numbers, `float32` or `float16`; by default the source's (float32
            if that is wider).
        compress: pack the numbers with gzip.
        layers: names of layers of the source, such as `0,2`; by default all.
        command_line: recorded in the file.

    Returns:
        False where the sentences of the output could be found by their words in this
        layout, but the words are unknown.

    Raises:
        InputError: a source that is damaged, or has not what the layout or the options
            need; numbers that are too large for the type; a disk without room.
    """
    with FeatureFile(source) as features:
        names = features.layer_names
        chosen = names if layers is None else layers.split(",")
        if layers is not None and (features.single or not set(chosen) <= set(names)):
            raise InputError(
                f"--layers {shortened(layers)}: {source} has the layers {', '.join(names)}"
            )
        places = (
            slice(None) if layers is None else [names.index(name) for name in chosen]
        )
        shape = FeatureShape(
            layers=len(chosen),
            width=features.width,
            dtype=dtype or ("float16" if features.dtype.itemsize == 2 else "float32"),
            single=features.single,
            words=features.tokens,
        )
        writer_class = LAYOUTS[layout]
        by_words = writer_class.found_by_words
        if writer_class.needs_documents and not features.documents:
            raise InputError(
                f"{source} does not say which documents its sentences are: dump them in this layout"
            )
        attributes = {
            name: value for name, value in features.attributes.items() if name != "dump"
        }
        attributes |= {"layers": chosen, "command_line": command_line}
        with (
            writer_class.open(
                output,
                attributes,
                shape=shape,
                compress=compress,
                sentence_map=features.has_map,
            ) as writer,
            progress_bar(
                total=len(features), unit=" sentences", unit_scale=True, desc="convert"
            ) as progress,
        ):
            for index, (states, sentence) in enumerate(
                zip(features, _sentences(features, by_words), strict=True)
            ):
                with reading(f"{source}, sentence {index}"):
                    states = converted(states[places], shape.dtype)
                writer.add(sentence, states)
                progress.update()
        return features.has_map or not by_words


def _sentences(features: FeatureFile, by_words: bool) -> Iterator[Sentence]:
    """The sentences of a file, with what it says of their words and documents.

    Of sentences with the same text the map has the last. The others get the text of the
    last sentence of the file, which comes after them, so that the map which is written
    is the same. Where sentences are to be found `by_words`, a map without that one is
    an `InputError`.
    """
    keys = {
        index: key for key, indices in features.documents.items() for index in indices
    }
    lines = (
        {index: line for line, index in features.lines.items()}
        if features.has_map
        else {}
    )
    last = lines.get(len(features) - 1, "")
    if by_words and features.has_map and len(features) - 1 not in lines:
        raise InputError(
            f"{features.path}: its map lacks the last sentence: choose another layout"
        )
    for index, words in enumerate(features.lengths.tolist()):
        yield Sentence(("",) * words, lines.get(index, last), keys.get(index))
