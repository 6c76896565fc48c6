"""Report of a suite: its results in one table, one figure of merit, and both as JSON."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from downstream.results.columns import runs_table
from downstream.results.merit import Merit, figure_of_merit, repeated_data
from downstream.results.reading import SUITE_RESULTS
from downstream.results.records import encoder_identity
from downstream.results.row_names import NamedRow
from downstream.results.table import NO_MERIT, compared_rows, explanations, row_as_json, tables_as_text
from downstream.suite.jobs import Job
from downstream.suite.plan import Suite, Tasks
from elmoc.encoders.pooling import POOLINGS
from elmoc.errors import InputError
from elmoc.files.records import read_json, write_json
from elmoc.files.writing import atomic_path

REPORT = "suite.json"
RESAMPLES = 10_000


def write_report(
    suite: Suite,
    jobs: Sequence[Job],
    out: Path,
    tasks: Tasks,
    *,
    identity: str,
    encoder: Mapping[str, Any] | None,
    notes: Sequence[str],
) -> None:
    """Print the table of jobs that are done, and the figure of merit, and write them to `out`.

    Args:
        suite: whose probes were run.
        jobs: those that are done.
        out: gets `results.jsonl`, which `python -m downstream table` reads, and `suite.json`.
        tasks: those there are.
        identity: `suite_identity` of the suite.
        encoder: what is known of it; None without one.
        notes: what a reader has to know, too.
    """
    if not jobs:
        return
    results = out / SUITE_RESULTS
    with atomic_path(results) as partial:
        partial.write_text("".join(json.dumps(job.read()) + "\n" for job in jobs), encoding="utf-8")
    rows, left_out = compared_rows([results], tasks, resamples=RESAMPLES, encoders={})
    merit = figure_of_merit(rows)
    notes = [*repeated_data(rows), *notes, *left_out]
    print("\n" + tables_as_text(rows, [runs_table(rows)], [*explanations(rows, resamples=RESAMPLES), *notes]))
    print(merit_line(merit))
    write_json(out / REPORT, {"suite": str(suite.path), "identity": identity} | _as_json(rows, merit, encoder, notes))


def encoder_of_report(report: Path) -> Any:
    """What the report of a suite, if there is one, says of its encoder; None without an encoder."""
    return _content(report).get("encoder")


def require_own_report(report: Path, encoder: Mapping[str, Any]) -> None:
    """Raise an `InputError` where a report has results of another encoder, or pooling, whose place it would take.

    An encoder is known by its weights and word vectors, wherever it is now; one that has others in the place of those
    before was trained further, and a line says that its report is replaced.

    Args:
        report: of the suite, if there is one.
        encoder: what is known of the encoder, and the `directory` or `file` that it is in.
    """
    rows = _content(report).get("rows")
    of_rows = [row.get("features") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    before = next((features for features in of_rows if isinstance(features, dict)), None)
    if before is None:
        return
    if encoder_identity(before) == encoder_identity({"layers": before.get("layers"), **encoder}):
        return
    (place, pooling), (own_place, own_pooling) = (_place_and_pooling(each) for each in (before, encoder))
    same_weights = "model" in before and before["model"] == encoder.get("model")
    others = same_weights and before.get("word_vectors") != encoder.get("word_vectors")
    if others or (place, pooling) != (own_place, own_pooling):
        how = " with other word vectors" if others else ""
        raise InputError(
            f"{report} has the results of {_named(place, pooling)}, and would lose them to those of "
            f"{_named(own_place, own_pooling)}{how}: give another --out"
        )
    print(f"{report} has the results of {place} as it was before: it will be replaced", flush=True)


def _place_and_pooling(encoder: Mapping[str, Any]) -> tuple[Path, str]:
    path = Path(os.path.realpath(str(encoder.get("directory", encoder.get("file")))))
    return path.parent if path.name == "model" else path, str(encoder.get("pooling", POOLINGS[0]))


def _named(place: Path, pooling: str) -> str:
    return f"{place}" if pooling == POOLINGS[0] else f"{place} (pooling {pooling})"


def _content(report: Path) -> dict[str, Any]:
    """A report as it was written; empty where there is none."""
    content = read_json(report, advice="remove it, and the suite writes it again") if report.exists() else {}
    return content if isinstance(content, dict) else {}


def merit_line(merit: Merit | None) -> str:
    """The figure of merit as a suite ends with it."""
    return NO_MERIT if merit is None else f"figure of merit: {merit}"


def _as_json(
    rows: Sequence[NamedRow],
    merit: Merit | None,
    encoder: Mapping[str, Any] | None,
    notes: Sequence[str],
) -> dict[str, Any]:
    figures = None
    if merit is not None:
        names = ("value", "error", "items_error", "seeds_error", "unknown")
        figures = {name: getattr(merit, name) for name in names}
        figures["shares"] = [asdict(share) | {"value": share.value} for share in merit.shares]
    return {
        "encoder": encoder,
        "training_words": (encoder or {}).get("training_words"),
        "merit": figures,
        "notes": notes,
        "rows": [row_as_json(row) for row in rows],
    }
