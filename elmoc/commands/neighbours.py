"""`elmoc neighbours`: the command that lists the nearest uses of a word in context."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from elmoc.commands import WordOptions
from elmoc.errors import InputError, say, shortened


@dataclass(frozen=True, kw_only=True)
class Options(WordOptions):
    """The use of a word to which others are compared."""

    sentence: Annotated[
        str,
        Meta(
            description="a tokenised sentence in which the word stands",
            extra={"option": "--in"},
        ),
    ]
    top: Annotated[int, Meta(ge=1, description="uses to list")] = 10


def run(options: Options) -> None:
    """List the nearest uses."""
    from elmoc.looking.uses import Use, find_uses, nearest_uses, positions
    from elmoc.model import ElmoC

    tokens = options.sentence.split()
    found = positions(tokens, options.word, options.ignore_case)
    word = shortened(options.word)
    if not found:
        raise InputError(f"--in does not have the token {word!r}")
    # A word that stands there twice is looked at where it stands first.
    query = Use(tuple(tokens), found[0])
    uses, count = find_uses(
        options.corpus,
        options.word,
        most=options.most,
        ignore_case=options.ignore_case,
    )
    elmo = ElmoC.from_pretrained(
        options.model, vectors=options.vectors, device=options.device
    )
    nearest = nearest_uses(elmo, query, uses, top=options.top, layer=options.layer)
    say(
        f"{count:,} uses of {word!r}, {len(uses):,} of them read; nearest to: "
        f"{query.marked()}"
    )
    print("\ncosine      line  use")
    for use, cosine in nearest:
        say(f"{cosine:6.3f} {use.line:9,}  {use.marked()}")
