"""Report of a suite: its results in one table, one figure of merit, and both as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from downstream.results.columns import runs_table
from downstream.results.merit import Merit, figure_of_merit
from downstream.results.reading import SUITE_RESULTS
from downstream.results.row_names import NamedRow
from downstream.results.table import compared_rows, explanations, row_as_json, tables_as_text
from downstream.suite.jobs import Job
from downstream.suite.plan import Suite, Tasks
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
    notes = [*notes, *left_out]
    print("\n" + tables_as_text(rows, [runs_table(rows)], [*explanations(rows, resamples=RESAMPLES), *notes]))
    print(merit_line(merit))
    write_json(out / REPORT, {"suite": str(suite.path), "identity": identity} | _as_json(rows, merit, encoder, notes))


def encoder_of_report(report: Path) -> Any:
    """What the report of a suite, if there is one, says of its encoder; None without an encoder."""
    if not report.exists():
        return None
    content = read_json(report, advice="remove it, and the suite writes it again")
    return content.get("encoder") if isinstance(content, dict) else None


def merit_line(merit: Merit | None) -> str:
    """The figure of merit as a suite ends with it."""
    if merit is None:
        return "figure of merit: there is none without results of both and of vectors on one set of data"
    return f"figure of merit: {merit}"


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
