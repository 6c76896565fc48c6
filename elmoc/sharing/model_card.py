"""Model card: what the `README.md` of a model directory says, written from its config and training record.

Hubs read the block at its top (YAML) and show the rest.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.files.records import toml_text
from elmoc.sharing.citations import ELMO, ELMO_C, THIS_PROJECT
from elmoc.sharing.training_record import GENERAL
from elmoc.word_vectors.sources import VectorSource

_FRONT_MATTER = """\
library_name: elmoc
pipeline_tag: feature-extraction
tags:
- elmo
- contextual-word-representations
# language: the code of the text's language
# license: that of the weights, which is for you to say
"""
# of the held-out metrics, those that a card shows
_METRICS = {
    "cosine": "cosine with the true next word",
    "accuracy_at_1": "accuracy@1",
    "accuracy_at_10": "accuracy@10",
    "reciprocal_rank": "mean reciprocal rank",
    "perplexity": "perplexity",
    "vocabulary_perplexity": "perplexity over the whole vocabulary",
    "word_perplexity": "perplexity of words",
}
# what a card shows of a training record, and under which name
_FACTS = {
    "corpus": "corpus",
    "sources": "text",
    "corpus_tokens": "tokens of the corpus, `<s>` and `</s>` counted",
    "corpus_types": "word types of the corpus",
    "words": "words read in training",
    "units_of_a_word": "subwords of a word: what is called words and tokens here are these",
    "updates": "updates",
}
_WHAT_IT_IS = """Contextual word representations: one vector a layer for every token of a sentence, from a \
bidirectional language model."""
_USE = """\
```python
from elmoc import ElmoC

elmo = ElmoC.from_pretrained("THIS DIRECTORY")  # or its name on a hub
states = elmo.embed(["The", "cat", "sat", "."])  # a tensor {shape}
```

```sh
elmoc dump-features DIRECTORY sentences.txt features.h5
```

Sentences are lists of tokens; each is read from zero state between `<s>` and `</s>`."""
_NEEDED = """The word vectors are needed to use it: in this directory under the name above, where they were in \
training, or where `vectors` (`--vectors`) says."""


def model_card(
    training: Mapping[str, Any], *, encoder: BidirectionalEncoder, word_vectors: VectorSource, output_layer: str
) -> str:
    """The card of a model, in Markdown.

    Args:
        training: the record of how it was trained.
        encoder, word_vectors: what it computes with.
        output_layer: the kind of output layer that it was trained against.
    """
    imported, sizes = "imported" in training, encoder.config.sizes
    title = "An ELMo model, imported from another tool" if imported else "An ELMo-C encoder"
    rows = {
        "encoder": f"{sizes.description}, {' and '.join(encoder.directions)}",
        "parameters of the encoder": f"{sum(parameter.numel() for parameter in encoder.parameters()):,}",
        "layer states": f"{sizes.layers + 1} layers, {encoder.width} wide; layer 0 is context-independent",
        "word vectors": f"`{word_vectors.file_name}`, {word_vectors.size} wide, fingerprint {word_vectors.fingerprint}",
        "their post-processing": word_vectors.post_processing,
        "output layer": output_layer,
    }
    title = _plain(training.get("name") or title)
    parts = [f"---\n{_FRONT_MATTER}---", f"# {title}", _WHAT_IT_IS, _table("", "", rows)]
    parts += ["## Use", _USE.format(shape=[sizes.layers + 1, 4, encoder.width])]
    if not word_vectors.origin.startswith("random:"):
        parts.append(_NEEDED)
    if not imported:
        parts += ["## Training", *_trainings(training)]
    if recipe := training.get("recipe"):
        sections: dict[str, dict[str, Any]] = {}
        for key, value in recipe.items():  # `section.name` as a config file has them
            section, _, name = key.partition(".")
            sections.setdefault(section, {})[name] = value
        parts += ["## Recipe", "The settings of `python -m pretrain`:", f"```toml\n{toml_text(sections)}```"]
    citations = "\n\n".join([ELMO, THIS_PROJECT] if imported else [ELMO_C, ELMO, THIS_PROJECT])
    parts += ["## Licence", "For you to say, here and in the block at the top."]
    parts += ["## Citation", f"```bibtex\n{citations}\n```"]
    return "\n\n".join(parts) + "\n"


def _trainings(training: Mapping[str, Any]) -> Iterator[str]:
    """What is known of a training, of each direction where they were trained apart, and of the trainings before it."""
    for name in DIRECTIONS:
        if name in training:
            yield f"The {name} direction:"
            yield from _trainings(training[name])
    if "imported" in training:
        yield f"It was imported from another tool: {_shown(training['imported'].get('from'))}"
    rows = {label: _shown(training[name]) for name, label in _FACTS.items() if name in training}
    tokens = training.get("tokens_by_source", {})
    if rows:
        text = "new text" if "started_from" in training and GENERAL in tokens else "text"
        yield _table("", "", rows | {f"licence of the {text}": _plain(training.get("licence") or "not stated")})
    if tokens:
        yield _table("kind of text", "tokens in the corpus", {f"`{kind}`": _shown(tokens[kind]) for kind in tokens})
    held_out = training.get("held_out", {})
    kinds = dict.fromkeys(name.partition("/")[0] for name in held_out if "/" in name)
    for kind in ("", *(kinds if len(kinds) > 1 else ())):  # of one kind, the figures are those of the whole
        prefix = f"{kind}/" if kind else ""
        metrics = {
            label: " | ".join(_shown(held_out.get(prefix + key)) for key in (name, f"constant_{name}"))
            for name, label in _METRICS.items()
            if prefix + name in held_out
        }
        if metrics:
            yield f"On held-out text{f' of the kind `{kind}`' if kind else ''}:"
            yield _table("metric", "model | best constant prediction", metrics)
    if "started_from" in training:
        known = list(_trainings(training["started_from"]))
        yield "It went on from a model of which this is known:" + ("" if known else " nothing.")
        yield from known


def _table(first: str, second: str, rows: Mapping[str, str]) -> str:
    lines = [f"| {first} | {second} |", f"|{'---|' * (second.count('|') + 2)}"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows.items())])


def _plain(text: str) -> str:
    """A text without what Markdown would read."""
    return " ".join(re.sub(r"[<>`|]", " ", text).split())


def _shown(value: Any) -> str:
    """A value of a training record in a cell of a table: a number, or a text or file as code."""
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value[:10])) + (", …" if len(value) > 10 else "")
    return f"`{_plain(Path(value).name)}`"
