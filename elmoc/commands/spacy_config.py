"""`elmoc spacy-config`: the command that writes a config for `spacy train`.

It is spaCy's own (`spacy init config`), in which the component `elmoc` stands in the
place of `tok2vec`, and what is trained reads its tensors.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from elmoc.commands import ModelName

# What a pipe reads: all layers, projected, and each word beside its neighbours.
_TOK2VEC = {
    "@architectures": "spacy.Tok2Vec.v2",
    "embed": {"@architectures": "elmoc.TensorTok2Vec.v2", "width": 96},
    "encode": {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": 96,
        "depth": 2,
        "window_size": 1,
        "maxout_pieces": 3,
    },
}
# Of spaCy's models of classes, the one that pools what a `tok2vec` gives.
_TEXTCAT = {
    "@architectures": "spacy.TextCatReduce.v1",
    "exclusive_classes": True,
    "use_reduce_first": False,
    "use_reduce_last": False,
    "use_reduce_max": True,
    "use_reduce_mean": True,
}
# Words whose vectors are kept over epochs: of 1,536 numbers each, 1.2 GB.
_MEMO_WORDS = 200_000


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is trained, and on which model."""

    kind: Annotated[
        Literal["ner", "textcat", "tagger_parser"], Meta(description="what is trained")
    ]
    out: Annotated[
        Path, Meta(description="the config to write", extra={"metavar": "OUT.cfg"})
    ]
    model: ModelName = "english"
    lang: Annotated[str, Meta(description="spaCy's code of the language")] = "en"


def run(options: Options) -> None:
    """Write the config."""
    from spacy.cli.init_config import init_config

    from elmoc.errors import reading, say
    from elmoc.files.writing import atomic_path, locked
    from elmoc.model import ElmoC

    # A wrong name is told now, and not by `spacy train`.
    ElmoC.from_pretrained(options.model)
    pipes = options.kind.split("_")
    with reading(f"spaCy's language {options.lang!r}"):
        config = init_config(lang=options.lang, pipeline=pipes, silent=True)
    components: dict[str, Any] = config["components"]
    components.pop("tok2vec", None)
    for pipe in pipes:
        model = components[pipe]["model"]
        components[pipe]["model"] = (_TEXTCAT if pipe == "textcat" else model) | {
            "tok2vec": _TOK2VEC
        }
    before = ["elmoc"]
    components["elmoc"] = {
        "factory": "elmoc",
        "model": options.model,
        "layers": "all",
        "memo_words": _MEMO_WORDS,
    }
    # A parser keeps the ends of sentences that it finds: it is to find its own.
    if "parser" not in pipes:
        before = ["sentencizer", "elmoc"]
        components["sentencizer"] = {"factory": "sentencizer"}
        # The best model is that of the entities or classes.
        config["training"]["score_weights"] = {"sents_f": None}
    config["nlp"]["pipeline"] = [*before, *pipes]
    config["training"]["annotating_components"] = before
    with locked(options.out, new=True), atomic_path(options.out) as path:
        config.to_disk(path)
    given = "--paths.train train.spacy --paths.dev dev.spacy"
    say(f"{options.out}: python -m spacy train {options.out} {given}")
