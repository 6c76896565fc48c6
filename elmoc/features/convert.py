"""Converting: a feature file written again in another layout or type, or with fewer
layers, sentence by sentence.
"""

from collections.abc import Iterator
from pathlib import Path

from elmoc.errors import InputError, reading, shortened
from elmoc.features.hdf5_output import converted
from elmoc.features.layouts import Entry, FeatureShape
from elmoc.features.layouts.choose import LAYOUTS
from elmoc.features.options import LayoutName, NumberType
from elmoc.features.reader import FeatureFile
from elmoc.process import progress_bar


def convert_features(
    source: Path | str,
    output: Path | str,
    *,
    layout: LayoutName,
    dtype: NumberType | None = None,
    compress: bool = False,
    layers: str | None = None,
    command_line: str = "",
) -> bool:
    """Write the sentences of a feature file to another, in the same order; no more than
    one is in memory at a time.

    Args:
        source: the file, in any layout.
        output: the file to write; it must not exist.
        layout: of the output.
        dtype: of the numbers; by default the source's (float32 if that is wider).
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
    target = LAYOUTS[layout]
    with FeatureFile(source) as features:
        names = features.layer_names
        chosen = names if layers is None else layers.split(",")
        if layers is not None and (features.single or not set(chosen) <= set(names)):
            raise InputError(
                f"--layers {shortened(layers)}: {source} has the layers "
                f"{', '.join(names)}"
            )
        if target.needs_documents and not features.documents:
            raise InputError(
                f"{source} does not say which documents its sentences are: dump them "
                "in this layout"
            )
        if dtype is None:
            dtype = "float16" if features.dtype.itemsize == 2 else "float32"
        shape = FeatureShape(
            layers=len(chosen),
            width=features.width,
            dtype=dtype,
            single=features.single,
            words=features.tokens,
        )
        attributes = dict(features.attributes)
        # Another dump would write another file.
        attributes.pop("dump", None)
        attributes["layers"] = chosen
        attributes["command_line"] = command_line
        with (
            target.open(
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
            entries = _entries(features, target.found_by_words)
            for index, entry in enumerate(entries):
                states = features[index]
                if layers is not None:
                    states = states[[names.index(name) for name in chosen]]
                with reading(f"{source}, sentence {index}"):
                    states = converted(states, dtype)
                writer.add(entry, states)
                progress.update()
        return features.has_map or not target.found_by_words


def _entries(features: FeatureFile, by_words: bool) -> Iterator[Entry]:
    """The sentences of a file, with what it says of their words and documents.

    Args:
        features: the file. Its map has only the last of equal sentences. The others get
            the text of the last sentence of the file, which comes after them, so that
            the map which is written is the same.
        by_words: whether sentences are to be found by their words.

    Raises:
        InputError: they are, and the map lacks the last sentence.
    """
    keys: dict[int, str] = {}
    for key, indices in features.documents.items():
        keys |= dict.fromkeys(indices, key)
    lines = {}
    if features.has_map:
        lines = {index: line for line, index in features.lines.items()}
    last = len(features) - 1
    if by_words and features.has_map and last not in lines:
        raise InputError(
            f"{features.path}: its map lacks the last sentence: choose another layout"
        )
    for index, words in enumerate(features.lengths.tolist()):
        line = lines.get(index, lines.get(last, ""))
        yield Entry(words, line.strip(), keys.get(index))
