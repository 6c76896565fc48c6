"""Report of the tables in miniature: what each row took to train, and what its features are worth in the probes."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmoc.errors import InputError
from elmoc.files.records import convert, read_json
from elmoc.model_directory import ModelDirectory, read_model_directory
from pretrain.join import trains_its_input
from pretrain.run.directory import WORD_ACCURACY, RunDirectory, read_checkpoint, read_metrics
from pretrain.speed.table import aligned

SUITE_REPORT = "suite.json"
ADVICE = "remove it, and run the command again"
BOTH, VECTORS = "both", "vectors"
HEADING = ("", "parameters", "batch", "words", "time", "acc@1", "acc@10", "perplexity")

OF_SUBWORDS = "†"
NOTES = f"""batch: words of an update, streams × window. time: of training, evaluations included. Held out: accuracy and
perplexity of the next word among the most frequent words; {OF_SUBWORDS} where subwords are read, the perplexity is that
of a word of any spelling, which does not compare with the others. Probes: word vectors with features, and in brackets
their gain over word vectors alone (95 %, bootstrap over items)."""


def text_of(rows: Mapping[str, tuple[Path, Path]], *, alone: Path, tokens: int) -> str:
    """The table; rows whose probes are of another suite are left out, and named below it.

    Args:
        rows: by name the run directory, and what the suite has written of it.
        alone: what the suite has written of word vectors alone.
        tokens: those of the corpus that the rows were trained on, in words, boundaries included.

    Raises:
        InputError: one of these is damaged.
    """
    probes: list[str] = []
    cells: dict[str, dict[str, str]] = {}
    baseline: dict[str, str] = {}
    notes: list[str] = []
    suite, others = read_report(alone).suite, []
    for name, (_, path) in rows.items():
        report = read_report(path)
        if report.suite != suite:
            others.append(name)
            continue
        notes += [f"{name}: {warning}" for warning in report.warnings]
        probes += [probe for probe in report.scores if probe not in probes]
        cells[name] = {probe: each.get(BOTH, "") for probe, each in report.scores.items()}
        baseline |= {probe: each[VECTORS] for probe, each in report.scores.items()}
    if others:
        notes.append(
            f"Not shown, as their probes are of another suite, or not known to be of this: {', '.join(others)}\n"
            "(give them in --rows, too, and they are probed again)."
        )
    vectors_alone = ("word vectors alone", *[""] * (len(HEADING) - 1), *(baseline[each] for each in probes))
    lines = [(*HEADING, *probes), vectors_alone]
    for name, scores in cells.items():
        row = (name, *training_of(*rows[name], tokens), *(scores.get(each, "") for each in probes))
        if not row[HEADING.index("acc@1")]:
            notes.append(f"{name}: whole words were not looked for (python -m pretrain.word_accuracy RUN).")
        lines.append(row)
    return "\n\n".join([aligned(lines), "\n".join([NOTES, *notes])])


def training_of(path: Path, report: Path, tokens: int) -> tuple[str, ...]:
    """What it took to train the run at `path`, and what it gave; the others as in `text_of`."""
    run = RunDirectory(path)
    model = read_model_directory(path)
    training = model.training
    checkpoints = run.checkpoint_paths()
    evaluations = [each for each in read_metrics(path, "evaluation") if each["update"] == training["updates"]]
    if not checkpoints or not evaluations:
        raise InputError(
            f"{path} has no checkpoint, or no evaluation of its model: remove it and its probes ({report.parent}), and "
            "give the row in --rows to make it again"
        )
    checkpoint, exported = read_checkpoint(checkpoints[-1]), evaluations[-1]
    words = checkpoint["words"] * tokens / training["corpus_tokens"]  # of the text, whatever it is written in
    reads_subwords = "units_of_a_word" in training
    mark, of_a_word = (OF_SUBWORDS, "word_perplexity") if reads_subwords else ("", "perplexity")
    accuracies = (read_word_accuracy(path, training) or {}) if reads_subwords else exported
    return (
        f"{parameters_of(model) / 1e6:.1f}M",
        f"{training['streams']} × {training['window']}",
        f"{words / 1e6:.2f}M",
        f"{checkpoint['seconds'] / 60:.0f} min",
        *(
            f"{accuracies[metric]:.3f}" if metric in accuracies else ""
            for metric in ("accuracy_at_1", "accuracy_at_10")
        ),
        f"{exported[of_a_word]:.1f}{mark}" if of_a_word in exported else "",
    )


def read_word_accuracy(path: Path, training: Mapping[str, Any]) -> dict[str, float] | None:
    """What was found of whole words by the exported model of a run, among the words that others are scored by.

    None where that was not measured, or of another model than that of the record `training`, or of other words; an
    `InputError` where the file is damaged.
    """
    file, evaluation = path / WORD_ACCURACY, RunDirectory(path).read_config().evaluation
    if not file.exists():
        return None
    advice = f"make it by `python -m pretrain.word_accuracy {path}`"
    values = convert(read_json(file, advice=advice), dict[str, float], where=str(file), advice=advice)
    expected = {"updates": training["updates"], "words": evaluation.words, "candidates": evaluation.candidates}
    return values if all(values.get(name) == each for name, each in expected.items()) else None


def parameters_of(model: ModelDirectory) -> int:
    """Those that were trained; tied ones count once."""
    count = sum(weight.numel() for weight in model.encoder.weights().values())
    count += sum(weight.numel() for weight in (model.output_layer.weights or {}).values())
    is_tied = model.output_layer.config.get("tied", False)
    if trains_its_input(model) and not is_tied and (stored := model.read_stored_vectors()) is not None:
        count += sum(tensor.numel() for tensor in stored.tensors().values() if tensor.is_floating_point())
    return count


@dataclass(frozen=True)
class SuiteReport:
    """What a suite has written of a row, or of word vectors alone.

    suite     what tells the suite from others, the contents of its data included; None in reports of earlier versions
    scores    for each set of data the score of word vectors alone and, where it was run, of both with its gain
    warnings  of probes that are missing, and of development text that was trained on
    """

    suite: Any
    scores: dict[str, dict[str, str]]
    warnings: list[str]


def read_report(path: Path) -> SuiteReport:
    """Read `suite.json`; an `InputError` where it is damaged."""
    scores: dict[str, dict[str, str]] = {}
    values = read_json(path, advice=ADVICE)
    try:
        for row in values["rows"]:
            means = {kind: f"{each['mean']:.2f}" for kind, each in row["scores"].items()}
            found = scores[row["dataset"]] = {VECTORS: means[VECTORS]}
            if BOTH in means:
                gain = row["gains"].get(BOTH)
                low, high = (gain["interval"][end] for end in ("low", "high")) if gain else (0, 0)
                found[BOTH] = means[BOTH] + (f" [{low:+.2f}, {high:+.2f}]" if gain else "")
        warnings = [note for note in values["notes"] if note.startswith(("Missing", "WARNING"))]
        return SuiteReport(values.get("identity"), scores, warnings)
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputError(f"{path} is not what a suite writes: {ADVICE}") from None
