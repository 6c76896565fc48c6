"""`elmoc embed`: the command that turns raw texts into one vector each."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from elmoc.commands import ModelOptions
from elmoc.errors import InputError, say
from elmoc.settings import Precision
from elmoc.text.options import TextField

if TYPE_CHECKING:
    from elmoc.text.documents import RowCount

# The files that vectors are written to, by the ends of their names.
_KINDS = (".npy", ".parquet", ".jsonl")


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    """The texts, and where their vectors go."""

    source: Annotated[
        str,
        Meta(
            description="raw text, in which blank lines end a text, or rows (.jsonl, "
            ".csv, .tsv, .parquet), each a text: a file, a folder or a quoted glob; - "
            "is standard input",
            extra={"metavar": "TEXTS"},
        ),
    ]
    out: Annotated[
        Path,
        Meta(
            description="an array (.npy), or rows with `line` (of the source), `text` "
            "and `vector` (.parquet, .jsonl)",
            extra={"option": "--out"},
        ),
    ]
    field: TextField = None
    pooling: Annotated[
        Literal["mean", "max"], Meta(description="of the states of a text's words")
    ] = "mean"
    device: Annotated[str, Meta(description="auto, cpu, cuda or cuda:N")] = "cpu"
    precision: Annotated[
        Precision,
        Meta(
            description="type of factors in matrix products; int8 is for CPUs alone, "
            "faster, and less precise"
        ),
    ] = "auto"


def run(options: Options) -> None:
    """Write the vectors of texts."""
    kind = options.out.suffix
    if kind not in _KINDS:
        raise InputError(f"{options.out}: --out ends in {', '.join(_KINDS)}")

    import msgspec
    import numpy as np

    # Before anything is computed: it is of an extra.
    parquet = import_module("pyarrow.parquet") if kind == ".parquet" else None
    from elmoc.files.writing import atomic_path, locked
    from elmoc.model import ElmoC
    from elmoc.text.documents import RowCount

    elmo = ElmoC.from_pretrained(
        options.model,
        vectors=options.vectors,
        device=options.device,
        precision=options.precision,
    )
    count = RowCount()
    found = list(_texts(options, count))
    lines = [line for line, _ in found]
    texts = [text for _, text in found]
    if kind == ".npy" and count.without_text:
        raise InputError(
            f"{options.source}: {count.without_text:,} rows have no text, and an array "
            "does not tell which: give --out as .parquet or .jsonl"
        )
    count.tell(options.source)
    if not texts:
        raise InputError(f"{options.source} has no text")
    with locked(options.out, new=True):
        vectors = elmo.embed_texts(texts, pooling=options.pooling, show_progress=True)
        with atomic_path(options.out) as path, open(path, "wb") as file:
            if kind == ".npy":
                np.save(file, vectors)
            elif parquet is not None:
                arrow = import_module("pyarrow")
                rows = arrow.FixedSizeListArray.from_arrays(vectors.ravel(), elmo.width)
                table = arrow.table({"line": lines, "text": texts, "vector": rows})
                parquet.write_table(table, file)
            else:
                for line, text, vector in zip(lines, texts, vectors, strict=True):
                    row = {"line": line, "text": text, "vector": vector.tolist()}
                    file.write(msgspec.json.encode(row) + b"\n")
    say(f"{options.out}: {len(vectors):,} texts, {elmo.width} numbers each")


def _texts(options: Options, count: "RowCount") -> Iterator[tuple[int, str]]:
    """Yield the text of each row, or of each document of plain text, and the number of
    the row, or of the line where it begins, in its file.
    """
    from elmoc.text.documents import (
        check_tokenised,
        read_documents,
        rereadable,
        whole_files,
    )
    from elmoc.text.named_files import find_named_files
    from elmoc.text.reader import as_text

    with rereadable(options.source) as source:
        files = whole_files(find_named_files([source]), options.field)
        # Text may be raw here, but no columns, and no other JSON than lines.
        check_tokenised(files, tell=False)
        for file in files:
            documents = read_documents(file, count=count)
            # A text of a row in which there are blank lines is several documents.
            for number, parts in groupby(documents, key=attrgetter("line")):
                lines = (as_text(line) for each in parts for line in each.lines)
                text = "\n".join(lines).strip()
                # Plain text may have several blank lines; a row here is never empty.
                if text:
                    yield number, text
