"""Model card: what the `README.md` of a model directory says, written from its config and training record.

Hubs read the block at its top (YAML) and show the rest.
"""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from elmoc.encoders import DIRECTIONS
from elmoc.encoders.bidirectional import BidirectionalEncoder
from elmoc.files.records import toml_section
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
    "streams": "streams",
    "window": "window, in tokens",
    "learning_rate": "base learning rate",
    "precision": "precision",
}
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
    imported = "imported" in training
    title = "An ELMo model, imported from another tool" if imported else "An ELMo-C encoder"
    if training.get("name"):
        title = _plain(training["name"])[:100]
    shape = [encoder.config.sizes.layers + 1, 4, encoder.width]
    parts = [f"---\n{_FRONT_MATTER}---", f"# {title}", _what_it_is(encoder, word_vectors, output_layer)]
    parts += ["## Use", _USE.format(shape=shape), *([] if word_vectors.origin.startswith("random:") else [_NEEDED])]
    if not imported:
        parts += ["## Training", *_trainings(training)]
    if isinstance(recipe := training.get("recipe"), dict):
        sections: dict[str, dict[str, Any]] = {}
        for key, value in recipe.items():  # `section.name` as a config file has them
            section, _, name = str(key).partition(".")
            sections.setdefault(section, {})[name] = value
        settings = "\n".join(map(toml_section, sections, sections.values())).replace("```", "'''")
        parts += ["## Recipe", "The settings of `python -m pretrain`:", f"```toml\n{settings}```"]
    citations = "\n\n".join([ELMO, THIS_PROJECT] if imported else [ELMO_C, ELMO, THIS_PROJECT])
    parts += [
        "## Licence",
        "For you to say, here and in the block at the top.",
        "## Citation",
        f"```bibtex\n{citations}\n```",
    ]
    record = {name: each for name, each in training.items() if name not in ("recipe", "started_from")}
    shown = textwrap.indent(json.dumps(_without_folders(record), ensure_ascii=False, indent=2), "    ")
    return "\n\n".join([*parts, "## Training record", shown]) + "\n"


def _without_folders(record: Mapping[str, Any]) -> dict[str, Any]:
    """A training record, and those in it, with the names of its corpus and files alone, and not where they were."""
    shown = dict(record)
    for name, each in record.items():
        if isinstance(each, Mapping):
            shown[name] = _without_folders(each)
        elif name == "corpus" and isinstance(each, str):
            shown[name] = Path(each).name
        elif name == "sources" and isinstance(each, list):
            shown[name] = [Path(source).name if isinstance(source, str) else source for source in each]
    return shown


def _what_it_is(encoder: BidirectionalEncoder, vectors: VectorSource, output_layer: str) -> str:
    sizes = encoder.config.sizes
    rows = {
        "encoder": f"{sizes.description}, {' and '.join(encoder.directions)}",
        "parameters of the encoder": f"{sum(parameter.numel() for parameter in encoder.parameters()):,}",
        "layer states": f"{sizes.layers + 1} layers, {encoder.width} wide; layer 0 is context-independent",
        "word vectors": f"{_code(vectors.file_name)}, {vectors.size} wide, fingerprint {vectors.fingerprint}",
        "their post-processing": vectors.post_processing,
        "output layer": output_layer,
    }
    what = "Contextual word representations: one vector a layer for every token of a sentence, from a bidirectional "
    return f"{what}language model.\n\n{_table('', '', rows)}"


def _trainings(training: Mapping[str, Any]) -> Iterator[str]:
    """What is known of a training, of each direction where they were trained apart, and of the trainings before it."""
    parts = {name: each for name, each in training.items() if name in DIRECTIONS}
    if parts and all(isinstance(each, dict) for each in parts.values()):
        for name, each in parts.items():
            yield f"The {name} direction:"
            yield from _trainings(each)
        return
    if isinstance(imported := training.get("imported"), dict):
        yield f"It was imported from another tool: {_shown(imported.get('from'))}"
    rows = {label: _shown(training[name]) for name, label in _FACTS.items() if name in training}
    if rows:
        is_adapted = "started_from" in training and GENERAL in training.get("tokens_by_source", {})
        text = "new text" if is_adapted else "text"
        yield _table("", "", rows | {f"licence of the {text}": _plain(training.get("licence") or "not stated")})
    if isinstance(tokens := training.get("tokens_by_source"), dict):
        yield _table("kind of text", "tokens in the corpus", {_code(str(k)): _shown(v) for k, v in tokens.items()})
    if isinstance(held_out := training.get("held_out"), dict):
        kinds = dict.fromkeys(name.partition("/")[0] for name in held_out if "/" in name)
        for kind in ("", *(kinds if len(kinds) > 1 else ())):  # of one kind, the figures are those of the whole
            if metrics := _held_out(held_out, f"{kind}/" if kind else ""):
                yield f"On held-out text{f' of the kind {_code(kind)}' if kind else ''}:"
                yield _table("metric", "model | best constant prediction", metrics)
    if isinstance(before := training.get("started_from"), dict):
        known = list(_trainings(before))
        yield "It went on from a model of which this is known:" + ("" if known else " nothing.")
        yield from known


def _held_out(held_out: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """The metrics of a text beside those of the best constant prediction, as cells of a table."""
    return {
        label: " | ".join(_shown(held_out.get(prefix + key)) for key in (name, f"constant_{name}"))
        for name, label in _METRICS.items()
        if prefix + name in held_out
    }


def _plain(value: object) -> str:
    """A text without what Markdown would read."""
    return " ".join(re.sub(r"[<>`|]", " ", str(value)).split())


def _table(first: str, second: str, rows: Mapping[str, str]) -> str:
    columns = second.count("|") + 2
    lines = [f"| {first} | {second} |", f"|{'---|' * columns}"]
    return "\n".join([*lines, *(f"| {name} | {value} |" for name, value in rows.items())])


def _shown(value: Any) -> str:
    """A value of a training record in a cell of a table."""
    if value is None:
        return "–"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(_code(Path(str(each)).name) for each in value[:10]) + (", …" if len(value) > 10 else "")
    return _code(Path(str(value)).name)


def _code(text: str) -> str:
    """A name as code in a cell of a table."""
    return f"`{re.sub(r'[`|]', ' ', ' '.join(text.split()))}`"
