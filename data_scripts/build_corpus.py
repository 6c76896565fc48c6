"""The command that makes a corpus directory of tokenised text; see `corpus.py`."""

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from data_scripts.corpus import CorpusOptions, make_corpus
from elmoc.command_line import run_main
from elmoc.text.options import TOKENISED, Answer


@dataclass(frozen=True, kw_only=True)
class BuildCorpusCommand(CorpusOptions):
    """The command `python -m data_scripts.build_corpus`."""

    files: Annotated[
        list[str],
        Meta(
            description="files, plain or compressed, folders, or quoted globs; "
            "NAME=PATH names the kind of text, its source; - is standard input",
            extra={"metavar": "IN"},
        ),
    ]
    corpus: Annotated[
        Path,
        Meta(description="the corpus directory to make", extra={"metavar": "CORPUS"}),
    ]
    # The command is for tokenised text, unless it is told otherwise.
    tokenised: Annotated[Answer, TOKENISED] = "yes"


main = partial(
    run_main,
    BuildCorpusCommand,
    lambda given: make_corpus(given.files, given.corpus, given),
    prog="python -m data_scripts.build_corpus",
    description="Make a corpus directory from tokenised text: one sentence a line, "
    "words split on white space, blank lines between documents. Safe to interrupt "
    "and run again.",
)

if __name__ == "__main__":
    sys.exit(main())
