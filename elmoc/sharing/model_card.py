"""Model card: what a model says of itself and of its training, in the `README.md` and
the config of its directory.

Hubs read the block at the top of the card (YAML) and show the rest.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.errors import reading
from elmoc.version import VERSION
from elmoc.word_vectors.sources import VectorSource

# what a card shows of a training record, and under which name
_FACTS = {
    "corpus": "corpus",
    "sources": "text",
    "corpus_tokens": "tokens of the corpus, `<s>` and `</s>` counted",
    "corpus_types": "word types of the corpus",
    "words": "words read in training",
    "units_of_a_word": "subwords of a word: the words and tokens counted here are subwords",
    "updates": "updates",
}
_CARD = """\
---
library_name: elmoc
pipeline_tag: feature-extraction
tags:
- elmo
- contextual-word-representations
# language: the code of the text's language
# license: of the weights, for you to say
---

# {title}

Contextual word representations: one vector a layer for every token of a sentence, from a bidirectional language model.

{facts}

## Use

```python
from elmoc import ElmoC

elmo = ElmoC.from_pretrained("THIS DIRECTORY")  # or its name on a hub
states = elmo.embed(["The", "cat", "sat", "."])  # a tensor {shape}
```

```sh
elmoc dump-features DIRECTORY sentences.txt features.h5
```

Sentences are lists of tokens; each is read from zero state between `<s>` and `</s>`. The word vectors are needed to use
it: in this directory under the name above, where they were in training, or where `vectors` (`--vectors`) says.

## Training

{training}

All settings are in `config.json`.

## Licence

For you to say, here and in the block at the top.

## Citation

ELMo: Peters et al. 2018, Deep Contextualized Word Representations, https://doi.org/10.18653/v1/N18-1202
{elmo_c}The program: elmoc {version}
"""
_ELMO_C = """\
ELMo-C: Li et al. 2019, Efficient Contextual Representation Learning With Continuous Outputs,
https://doi.org/10.1162/tacl_a_00289
"""


def model_card(
    training: Mapping[str, Any],
    *,
    encoder: BidirectionalEncoder,
    word_vectors: VectorSource,
    output_layer: str,
) -> str:
    """The card of a model, in Markdown.

    Args:
        training: the record of how it was trained.
        encoder, word_vectors: what it computes with.
        output_layer: the kind of output layer that it was trained against.
    """
    imported = "imported" in training
    sizes = encoder.config.sizes
    facts = {
        "encoder": f"{sizes.description}, {' and '.join(encoder.directions)}",
        "parameters of the encoder": f"{sum(parameter.numel() for parameter in encoder.parameters()):,}",
        "layer states": f"{sizes.layers + 1} layers, {encoder.width} wide; layer 0 is context-independent",
        "word vectors": f"`{word_vectors.file_name}`, {word_vectors.size} wide, fingerprint {word_vectors.fingerprint}",
        "their post-processing": word_vectors.post_processing,
        "output layer": output_layer,
    }
    if packed := training.get("packed"):
        facts |= {
            f"packed by `elmoc pack`: {name.replace('_', ' ')}": _shown(value)
            for name, value in packed.items()
        }
    title = (
        "An ELMo model, imported from another tool" if imported else "An ELMo-C encoder"
    )
    with reading("the training record of the model"):
        title = _plain(training.get("name") or title)
        trainings = "\n\n".join(_trainings(training))
    return _CARD.format(
        title=title,
        facts=_table("| |", facts),
        shape=[sizes.layers + 1, 4, encoder.width],
        training=trainings,
        elmo_c="" if imported else _ELMO_C,
        version=VERSION,
    )


def _trainings(training: Mapping[str, Any]) -> Iterator[str]:
    """What is known of a training, of each direction where they were trained apart, and
    of the trainings before it.
    """
    for name in DIRECTIONS:
        if name in training:
            yield f"The {name} direction:"
            yield from _trainings(training[name])
    if "imported" in training:
        yield f"It was imported from another tool: {_shown(training['imported'].get('from'))}"
    if rows := {
        label: _shown(training[name])
        for name, label in _FACTS.items()
        if name in training
    }:
        yield _table(
            "| |",
            rows
            | {"licence of the text": _plain(training.get("licence") or "not stated")},
        )
    if tokens := training.get("tokens_by_source", {}):
        yield _table(
            "kind of text | tokens |",
            {f"`{kind}`": _shown(tokens[kind]) for kind in tokens},
        )
    held_out = training.get("held_out", {})
    metrics = {}
    for name, value in held_out.items():  # `kind/metric` is of one kind of text
        kind, slash, metric = name.rpartition("/")
        if not metric.startswith(
            ("constant_", *(f"{direction}_" for direction in DIRECTIONS))
        ):
            metrics[
                name.replace("_", " ").replace(
                    "outside", "words outside the candidates"
                )
            ] = f"{_shown(value)} | {_shown(held_out.get(f'{kind}{slash}constant_{metric}'))}"
    if metrics:
        yield _table("on held-out text | model | best constant prediction |", metrics)
    if "started_from" in training:
        known = list(_trainings(training["started_from"]))
        yield "The model that it went on from:" + (
            "" if known else " nothing is known of it."
        )
        yield from known


def _table(heading: str, rows: Mapping[str, str]) -> str:
    lines = [f"| {heading}", f"|{'---|' * heading.count('|')}"]
    return "\n".join(
        [*lines, *(f"| {name} | {value} |" for name, value in rows.items())]
    )


def _plain(text: str) -> str:
    """A text without what Markdown would read."""
    return " ".join(re.sub(r"[<>`|]", " ", text).split())


def _shown(value: Any) -> str:
    """A value of a training record in a cell of a table: a number, or a text or the
    name of a file.
    """
    if value is None:
        return "–"
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value[:10])) + (", …" if len(value) > 10 else "")
    return f"`{_plain(Path(value).name)}`"


def training_words(record: Mapping[str, Any]) -> int | None:
    """How many words were read in this training and in those before it; None where one
    of them does not say.

    Of directions that were trained apart and joined, the larger number; of subwords,
    the words that they make.
    """
    if parts := parts_of(record):
        of_parts = [training_words(part) for part in parts]
        return (
            None
            if None in of_parts
            else max(words for words in of_parts if words is not None)
        )
    earlier = training_words(record["started_from"]) if "started_from" in record else 0
    if earlier is None or "words" not in record:
        return None
    words = earlier + round(record["words"] / record.get("units_of_a_word", 1))
    if not 0 <= words < 2**63:
        raise ValueError(f"{words} words were read")
    return words or None


def trainings_of(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The record of each training: of this one, or of the directions that were trained
    apart, and of those before.
    """
    if parts := parts_of(record):
        for part in parts:
            yield from trainings_of(part)
        return
    yield record
    if "started_from" in record:
        yield from trainings_of(record["started_from"])


def parts_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records of directions that were trained apart and joined."""
    return [record[name] for name in DIRECTIONS if isinstance(record.get(name), dict)]
