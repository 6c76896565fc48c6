"""The page on spaCy and flair: its programs, which the ordinary tests do not run, and what they read."""

import gzip
from pathlib import Path

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/spacy_and_flair.md"
DATA = "quickstart/data"


def programs(library: str) -> list[str]:
    """The blocks that import a library, as they stand on the page."""
    found = [block.text for block in blocks(PAGE) if f"import {library}\n" in block.text]
    assert found
    return found


def write_entities(folder: Path, *, sentences: int) -> None:
    """The first of the quickstart's entities as each of its splits, in a folder that stands for the checkout."""
    (folder / DATA).mkdir(parents=True)
    text = gzip.decompress((ROOT / DATA / "entities_train.conll.gz").read_bytes()).decode()
    first = gzip.compress("\n\n".join(text.split("\n\n")[:sentences]).encode())
    for split in ("train", "dev", "test"):
        (folder / DATA / f"entities_{split}.conll.gz").write_bytes(first)
