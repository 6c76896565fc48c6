"""Report of the tables in miniature: what each row took to train, and what its features are worth in the probes."""

from collections.abc import Mapping
from pathlib import Path

from elmoc.errors import InputError
from elmoc.files.records import read_json
from elmoc.model_directory import ModelDirectory, read_model_directory
from pretrain.join import trains_its_input
from pretrain.run.directory import RunDirectory, read_checkpoint, read_metrics
from pretrain.speed.table import aligned

SUITE_REPORT = "suite.json"
WORD_ACCURACY = "word_accuracy.json"
"""What `python -m pretrain.word_accuracy` writes into the run directory of a model that reads subwords."""
ADVICE = "remove it, and run the command again"
BOTH, VECTORS = "both", "vectors"
HEADING = ("", "parameters", "batch", "words", "time", "acc@1", "acc@10", "perplexity")

OF_SUBWORDS = "†"
NOTES = f"""batch: words of an update, streams × window. time: of training, evaluations included. Held out: accuracy and
perplexity of the next word among the most frequent words; {OF_SUBWORDS} where subwords are read, the perplexity is that
of a word of any spelling, which does not compare with the others. Probes: word vectors with features, and in brackets
their gain over word vectors alone (95 %, bootstrap over items)."""


def text_of(rows: Mapping[str, tuple[Path, Path]], *, tokens: int) -> str:
    """The table.

    Args:
        rows: by name the run directory, and what the suite has written of it.
        tokens: those of the corpus that the rows were trained on, in words, boundaries included.

    Raises:
        InputError: one of these is damaged.
    """
    probes: list[str] = []
    cells: dict[str, dict[str, str]] = {}
    baseline: dict[str, str] = {}
    notes: list[str] = []
    for name, (_, report) in rows.items():
        scores, warnings = read_report(report)
        notes += [f"{name}: {warning}" for warning in warnings]
        probes += [probe for probe in scores if probe not in probes]
        cells[name] = {probe: each[BOTH] for probe, each in scores.items()}
        baseline |= {probe: each[VECTORS] for probe, each in scores.items()}
    vectors_alone = ("word vectors alone", *[""] * (len(HEADING) - 1), *(baseline[each] for each in probes))
    lines = [(*HEADING, *probes), vectors_alone]
    for name, (run, _) in rows.items():
        lines.append((name, *training_of(run, tokens), *(cells[name].get(each, "") for each in probes)))
    return "\n\n".join([aligned(lines), "\n".join([NOTES, *notes])])


def training_of(path: Path, tokens: int) -> tuple[str, ...]:
    """What it took to train a run, and what it gave; `tokens` as in `text_of`."""
    run = RunDirectory(path)
    model = read_model_directory(path)
    training = model.training
    checkpoints = run.checkpoint_paths()
    evaluations = [each for each in read_metrics(path, "evaluation") if each["update"] == training["updates"]]
    if not checkpoints or not evaluations:
        raise InputError(f"{path} has no checkpoint, or no evaluation of its model: remove it, and begin it again")
    checkpoint, exported = read_checkpoint(checkpoints[-1]), evaluations[-1]
    words = checkpoint["words"] * tokens / training["corpus_tokens"]  # of the text, whatever it is written in
    reads_subwords = "units_of_a_word" in training
    mark, of_a_word = (OF_SUBWORDS, "word_perplexity") if reads_subwords else ("", "perplexity")
    of_words = path / WORD_ACCURACY
    if reads_subwords and not of_words.exists():
        raise InputError(f"{of_words} is not there: make it by `python -m pretrain.word_accuracy {path}`")
    accuracies = read_json(of_words, advice=ADVICE) if reads_subwords else exported
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


def parameters_of(model: ModelDirectory) -> int:
    """Those that were trained; tied ones count once."""
    count = sum(weight.numel() for weight in model.encoder.weights().values())
    count += sum(weight.numel() for weight in (model.output_layer.weights or {}).values())
    is_tied = model.output_layer.config.get("tied", False)
    if trains_its_input(model) and not is_tied and (stored := model.read_stored_vectors()) is not None:
        count += sum(tensor.numel() for tensor in stored.tensors().values() if tensor.is_floating_point())
    return count


def read_report(path: Path) -> tuple[dict[str, dict[str, str]], list[str]]:
    """For each set of data of a suite the score of word vectors alone and of both, with its gain; and what it warns of.

    That is probes that are missing, and development text that was trained on.
    """
    found: dict[str, dict[str, str]] = {}
    values = read_json(path, advice=ADVICE)
    try:
        for row in values["rows"]:
            scores, gain = row["scores"], row["gains"].get(BOTH)
            low, high = (gain["interval"][end] for end in ("low", "high")) if gain else (0, 0)
            found[row["dataset"]] = {
                VECTORS: f"{scores[VECTORS]['mean']:.2f}",
                BOTH: f"{scores[BOTH]['mean']:.2f}" + (f" [{low:+.2f}, {high:+.2f}]" if gain else ""),
            }
        notes = [note for note in values["notes"] if note.startswith(("Missing", "WARNING"))]
    except (KeyError, TypeError, AttributeError, ValueError):
        raise InputError(f"{path} is not what a suite writes: {ADVICE}") from None
    return found, notes
