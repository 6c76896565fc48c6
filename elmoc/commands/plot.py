"""`elmoc plot`: the command that draws the uses of a word in two dimensions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from elmoc.commands import WordOptions
from elmoc.errors import say
from elmoc.looking.figures import FigureName


@dataclass(frozen=True, kw_only=True)
class Options(WordOptions):
    """The picture."""

    output: Annotated[
        FigureName | None,
        Meta(
            description="the .png, .pdf or .svg to write, by default WORD.png",
            extra={"option": "-o", "metavar": "FILE"},
        ),
    ] = None


def run(options: Options) -> None:
    """Draw the uses."""
    from elmoc.files.writing import locked
    from elmoc.looking.picture import draw_uses
    from elmoc.looking.uses import find_uses
    from elmoc.model import ElmoC

    output = options.output or f"{options.word}.png"
    with locked(output):
        uses, count = find_uses(
            options.corpus,
            options.word,
            most=options.most,
            ignore_case=options.ignore_case,
        )
        elmo = ElmoC.from_pretrained(
            options.model, vectors=options.vectors, device=options.device
        )
        shown = f"{len(uses):,} of {count:,} uses"
        corpus = Path(options.corpus).name
        title = f"{options.word!r}: {shown} in {corpus}, layer {options.layer}"
        draw_uses(elmo, uses, output, title=title, layer=options.layer)
    say(f"{output}: {shown}")
