"""Table: the report as it is printed on a terminal."""

from collections.abc import Sequence
from typing import Any

from elmoc.files.writing import human_bytes
from pretrain.speed.contestants import BASELINE

COLUMNS = (
    "contestant",
    "words/s",
    "(least–most)",
    f"× {BASELINE}",
    "of matrix rate",
    "of bound",
    "peak memory",
    "KB a word",
    "update",
    "loader",
    "gather",
    "copy (ms)",
)


def heading(report: dict[str, Any]) -> str:
    """What is compared, and the rates that it is compared with."""
    encoder = report["encoder"]
    rates = ", ".join(f"{name} {rate / 1e9:,.1f} GFLOP/s" for name, rate in report["flops_per_second"].items())
    lines = [
        f"{report['device']} ({report['processor']}), {report['threads']} threads, PyTorch {report['torch']}",
        f"projection {encoder['projection_size']}, cell {encoder['cell_size']}, {encoder['layers']} layers, "
        f"{encoder['word_vector_size']}-d vectors, window {report['window']}, {' and '.join(report['directions'])}: "
        f"{report['flops_per_word'] / 1e6:,.1f} MFLOP a word",
        f"best matrix rate here: {rates}",
        *(f"{name}: {implementation}" for name, implementation in report["kernels"].items()),
        *(f"{name} is left out: {reason}" for name, reason in report["skipped"].items()),
    ]
    return "\n".join(lines)


def last_comparison(report: dict[str, Any]) -> str:
    """The results with the number of streams that was measured last."""
    comparison = report["comparisons"][-1]
    rows = [COLUMNS]
    for name, result in comparison["contestants"].items():
        speed, ratio, peak = result["words_per_second"], result[f"ratio_to_{BASELINE}"], result["peak_bytes"]
        seconds = (result["update_seconds"], *comparison["data_seconds"].values())
        rows.append(
            (
                name,
                f"{speed['median']:,.0f}",
                f"({speed['minimum']:,.0f}–{speed['maximum']:,.0f})",
                "–" if ratio is None else f"{ratio['median']:.2f}",
                f"{result['share_of_matrix_rate']:.1%}",
                f"{result['share_of_bound']['median']:.1%}",
                "–" if peak is None else human_bytes(peak),
                f"{report['kept_bytes_per_word'][name] / 1000:,.1f}",
                *(f"{1000 * each:,.2f}" for each in seconds),
            )
        )
    parts = [f"\n{comparison['streams']} streams, {comparison['words_per_update']:,} words an update", aligned(rows)]
    if (tables := comparison["tables"]) is not None:
        streamed, resident = tables["streamed"]["median"], tables["resident"]["median"]
        parts.append(
            f"{tables['contestant']} with vectors streamed: {streamed:,.0f} words/s, {streamed / resident:.1%} of the "
            f"{resident:,.0f} words/s with the whole tables on the device"
        )
    return "\n\n".join(parts)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need, the first flush left, the others flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows)
