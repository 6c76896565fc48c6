"""Model card: what a model says of itself and of its training, in the `README.md` and
the config of its directory.

Hubs read the block at the top of the card (YAML) and show the rest.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.errors import reading
from elmoc.version import VERSION
from elmoc.word_vectors.sources import VectorSource

# Items of a list in a cell.
_MOST_SHOWN = 10
# The keys of a training record that a card shows, and their names there.
_FACTS = {
    "corpus": "corpus",
    "sources": "text",
    "corpus_tokens": "tokens of the corpus, `<s>` and `</s>` counted",
    "corpus_types": "word types of the corpus",
    "words": "words read in training",
    "units_of_a_word": "subwords of a word: the words and tokens counted here are "
    "subwords",
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

Contextual word representations: one vector a layer for every token of a sentence, \
from a bidirectional language model.

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

Sentences are lists of tokens; each is read from zero state between `<s>` and `</s>`. \
The word vectors are needed to use
it: in this directory under the name above, where they were in training, or where \
`vectors` (`--vectors`) says.

## Training

{training}

All settings are in `config.json`.

## Licence

For you to say, here and in the block at the top.

## Citation

ELMo: Peters et al. 2018, Deep Contextualized Word Representations, \
https://doi.org/10.18653/v1/N18-1202
{elmo_c}The program: elmoc {version}
"""
_ELMO_C = """\
ELMo-C: Li et al. 2019, Efficient Contextual Representation Learning With \
Continuous Outputs,
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
    is_imported = "imported" in training
    kind = "ELMo model, imported from another tool" if is_imported else "ELMo-C encoder"
    sizes = encoder.config.sizes
    facts = {
        "encoder": f"{sizes.description}, {' and '.join(encoder.directions)}",
        "parameters of the encoder": _shown(
            sum(each.numel() for each in encoder.parameters())
        ),
        "layer states": f"{sizes.layers + 1} layers, {encoder.width} wide; layer 0 is "
        "context-independent",
        "word vectors": f"`{word_vectors.file_name}`, {word_vectors.size} wide, "
        f"fingerprint {word_vectors.fingerprint}",
        "their post-processing": word_vectors.post_processing,
        "output layer": output_layer,
    }
    if word_vectors.about is not None:
        facts["word vectors of a teacher"] = _plain(word_vectors.about)
    with reading("the training record of the model"):
        for name, value in training.get("packed", {}).items():
            facts[f"packed by `elmoc pack`: {name.replace('_', ' ')}"] = _shown(value)
        return _CARD.format(
            title=_plain(training.get("name") or f"An {kind}"),
            facts=_table("| |", facts),
            shape=[sizes.layers + 1, 4, encoder.width],
            training="\n\n".join(_trainings(training)),
            elmo_c="" if is_imported else _ELMO_C,
            version=VERSION,
        )


def _trainings(training: Mapping[str, Any]) -> Iterator[str]:
    """The known facts of a training, and of the trainings before it."""
    if "imported" in training:
        yield "It was imported from another tool: " + _shown(
            training["imported"].get("from")
        )
    rows = {
        fact: _shown(training[name])
        for name, fact in _FACTS.items()
        if name in training
    }
    if rows:
        rows["licence of the text"] = _plain(training.get("licence") or "not stated")
        yield _table("| |", rows)
    tokens = training.get("tokens_by_source", {})
    if tokens:
        yield _table(
            "kind of text | tokens |",
            {f"`{kind}`": _shown(count) for kind, count in tokens.items()},
        )
    metrics = _metrics(training.get("held_out", {}))
    if metrics:
        yield _table("on held-out text | model | best constant prediction |", metrics)
    if "started_from" in training:
        yield "The model that it went on from:"
        yield from _trainings(training["started_from"])


def _metrics(held_out: Mapping[str, Any]) -> dict[str, str]:
    """Metrics of the model, with the ones of the best constant prediction beside."""
    # These stand beside others, or are of one direction.
    left_out = ("constant_", "forward_", "backward_")
    metrics = {}
    for name, value in held_out.items():
        # `kind/metric` is of one kind of text.
        kind, slash, metric = name.rpartition("/")
        if metric.startswith(left_out):
            continue
        label = name.replace("outside", "words outside the candidates")
        constant = held_out.get(f"{kind}{slash}constant_{metric}")
        metrics[label.replace("_", " ")] = f"{_shown(value)} | {_shown(constant)}"
    return metrics


def _table(heading: str, rows: Mapping[str, str]) -> str:
    """A table of Markdown."""
    lines = [f"| {heading}", f"|{'---|' * heading.count('|')}"]
    lines += [f"| {name} | {value} |" for name, value in rows.items()]
    return "\n".join(lines)


def _plain(text: str) -> str:
    """A text without what Markdown would read."""
    return " ".join(re.sub(r"[<>`|]", " ", text).split())


def _shown(value: Any) -> str:
    """A value of a training record in a cell of a table: a number, or a text or the
    name of a file.
    """
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        more = ", …" if len(value) > _MOST_SHOWN else ""
        return ", ".join(map(_shown, value[:_MOST_SHOWN])) + more
    return f"`{_plain(Path(value).name)}`"
