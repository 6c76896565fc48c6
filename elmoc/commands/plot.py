"""`elmoc plot`: the command that draws the uses of a word in two dimensions."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from elmoc.commands import WordOptions
from elmoc.errors import say, shortened


@dataclass(frozen=True, kw_only=True)
class Options(WordOptions):
    """The picture."""

    output: Annotated[
        Annotated[str, Meta(pattern=r"(?i)\.(html|png|pdf|svg)$")] | None,
        Meta(
            description="the .html to write, a page where each use shows its sentence; "
            "or a picture: .png, .pdf or .svg; by default WORD.png",
            extra={"option": "-o", "metavar": "FILE"},
        ),
    ] = None


def run(options: Options) -> None:
    """Draw the uses."""
    from elmoc.files.writing import locked
    from elmoc.looking.uses import find_uses
    from elmoc.model import ElmoC

    output = options.output or f"{options.word}.png"
    # Libraries that are missing are told before anything is computed.
    if output.lower().endswith(".html"):
        from elmoc.looking.page import write_page as draw
    else:
        from elmoc.looking.picture import draw_uses as draw
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
        title = f"{shortened(options.word)!r}: {shown} in {Path(options.corpus).name}"
        draw(elmo, uses, output, title=title, layer=options.layer)
    say(f"{output}: {shown}")
