"""Model card: what the `README.md` of a model directory says, written from its config and training record.

Hubs read the block at its top (YAML) and show the rest.
"""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from elmoc.model_directory import ModelDirectory

_FRONT_MATTER = """\
---
library_name: elmoc
pipeline_tag: feature-extraction
tags:
- elmo
- contextual-word-representations
# language: the code of the text's language
# license: that of the weights, which is for you to say
---
"""
_METRICS = {
    "cosine": "cosine with the true next word",
    "accuracy_at_1": "accuracy@1",
    "accuracy_at_10": "accuracy@10",
    "reciprocal_rank": "mean reciprocal rank",
    "perplexity": "perplexity",
}
"""Of the held-out metrics, those that a card shows."""
_ELMO = (
    "Matthew E. Peters, Mark Neumann, Mohit Iyyer, Matt Gardner, Christopher Clark, Kenton Lee and Luke Zettlemoyer "
    "(2018): Deep contextualized word representations. NAACL. https://aclanthology.org/N18-1202/"
)
_ELMO_C = (
    "Liunian Harold Li, Patrick H. Chen, Cho-Jui Hsieh and Kai-Wei Chang (2019): Efficient contextual representation "
    "learning with continuous outputs. TACL. https://aclanthology.org/Q19-1039/"
)


def model_card(model: "ModelDirectory") -> str:
    """The card of a model, in Markdown."""
    training = model.training
    imported = "imported" in training
    title = "An ELMo model, imported from another tool" if imported else "An ELMo-C encoder"
    sections = [
        ("", _what_it_is(model)),
        ("Use", _use(model)),
        ("Training", "" if imported else "\n\n".join(_training(training))),
        ("Licence", "Not stated: say here on which terms the weights, and the text they were trained on, may be used."),
        ("Citation", "\n\n".join([_ELMO] if imported else [_ELMO_C, _ELMO])),
        ("Training record", textwrap.indent(json.dumps(training, ensure_ascii=False, indent=2), "    ")),
    ]
    text = f"{_FRONT_MATTER}\n# {title}\n"
    for name, body in sections:
        if body:
            text += f"\n## {name}\n\n{body}\n" if name else f"\n{body}\n"
    return text


def _what_it_is(model: "ModelDirectory") -> str:
    encoder, vectors = model.encoder, model.word_vectors
    sizes = encoder.config.sizes
    rows = {
        "encoder": f"{sizes.description}, {' and '.join(encoder.directions)}",
        "parameters": f"{sum(parameter.numel() for parameter in encoder.parameters()):,}",
        "layer states": f"{sizes.layers + 1} layers, {encoder.width} wide; layer 0 is context-independent",
        "word vectors": f"{_code(Path(vectors.origin).name)}, {vectors.size} wide, fingerprint {vectors.fingerprint}",
        "their post-processing": vectors.post_processing,
        "output layer": str(model.output_layer.config.get("kind", "unknown")),
    }
    what = "Contextual word representations: one vector a layer for every token of a sentence, from a bidirectional "
    return f"{what}language model.\n\n{_table('', '', rows)}"


def _use(model: "ModelDirectory") -> str:
    bundled = model.word_vectors.origin.startswith("random:")
    needed = (
        ""
        if bundled
        else "\n\nThe word vectors are needed to use it: in this directory under the name above, where they were in "
        "training, or where `vectors` (`--vectors`) says."
    )
    return f"""\
```python
from elmoc import ElmoC

elmo = ElmoC.from_pretrained("THIS DIRECTORY")  # or its name on a hub
states = elmo.embed(["The", "cat", "sat", "."])  # a tensor [{model.encoder.config.sizes.layers + 1}, 4, \
{model.encoder.width}]
```

```sh
elmoc dump-features DIRECTORY sentences.txt features.h5
```

Sentences are lists of tokens; each is read from zero state between `<s>` and `</s>`.{needed}"""


def _training(training: Mapping[str, Any]) -> Iterator[str]:
    """What is known of the training of both directions, or of each where they were trained apart."""
    parts = {name: each for name, each in training.items() if name in ("forward", "backward")}
    if parts and all(isinstance(each, dict) for each in parts.values()):
        for name, each in parts.items():
            yield f"The {name} direction:"
            yield from _training(each)
        return
    rows = {label: _shown(training[name]) for name, label in _FACTS.items() if name in training}
    if rows:
        yield _table("", "", rows)
    if isinstance(held_out := training.get("held_out"), dict):
        metrics = {
            label: " | ".join(_shown(held_out.get(key)) for key in (name, f"constant_{name}"))
            for name, label in _METRICS.items()
            if name in held_out
        }
        if metrics:
            yield f"On held-out text:\n\n{_table('metric', 'model | best constant prediction', metrics)}"


_FACTS = {
    "corpus": "corpus",
    "sources": "text",
    "corpus_tokens": "tokens of the corpus, `<s>` and `</s>` counted",
    "corpus_types": "word types of the corpus",
    "words": "words read in training",
    "updates": "updates",
    "streams": "streams",
    "window": "window, in tokens",
    "learning_rate": "base learning rate",
    "precision": "precision",
}
"""Of a training record, what a card shows of it and under which name."""


def _table(first: str, second: str, rows: Mapping[str, str]) -> str:
    columns = second.count("|") + 2
    lines = [f"| {first} | {second} |", f"|{'---|' * columns}"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows.items())])


def _shown(value: Any) -> str:
    """A value of a training record in a cell of a table."""
    if isinstance(value, bool) or value is None:
        return "–" if value is None else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(_code(Path(str(each)).name) for each in value[:10]) + (", …" if len(value) > 10 else "")
    return _code(Path(str(value)).name)


def _code(text: str) -> str:
    """A name as code in a cell of a table."""
    return f"`{re.sub(r'[`|]', ' ', ' '.join(text.split()))}`"
