"""Quickstart: the whole way from raw text to a probe's score, in a few minutes on a
CPU.

`make quickstart` runs the commands of a user one after the other: raw text → tokenised
text → model → features → probe. Everything is left under `runs/quickstart/`: run/,
features.h5, results.json, curve.png.
"""

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from elmoc.errors import InputError, run_command
from elmoc.files.records import write_json
from elmoc.files.text import read_lines

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("quickstart/data")
OUT = Path("runs/quickstart")
# Columns of a printed command.
WIDTH = 110
# Metrics of held-out text, and their names in the table.
METRICS = {
    "cosine": "cosine with the true word",
    "accuracy_at_1": "accuracy@1",
    "accuracy_at_10": "accuracy@10",
    "reciprocal_rank": "mean reciprocal rank",
}
PROBE_INPUTS = {
    "vectors": "fastText alone",
    "features": "features alone",
    "both": "features + fastText",
}
LIMITS = """
These numbers show that every step works, and whether the encoder learns: is it above
the best constant prediction? They do not show how good ELMo-C is. The paper's encoder
is 30 times larger and read thousands of times as much text; one seed on a few hundred
test entities moves by a point or two either way. docs/results.md has longer runs."""


def run_module(
    title: str, arguments: Sequence[object], output: Path | None = None
) -> None:
    """Print and run `python -m ARGUMENTS`.

    Args:
        title: printed above the command.
        arguments: the module and its arguments.
        output: gets the standard output of the command, where it is given.

    Raises:
        InputError: the command fails.
    """
    command = [str(each) for each in arguments]
    words = [shlex.quote(each) for each in command]
    if output:
        words.append(f"> {output}")
    lines = [f"\n── {title}\n$ python -m"]
    for word in words:
        if len(lines[-1]) + len(word) > WIDTH:
            lines.append("   ")
        lines[-1] += f" {word}"
    print(" \\\n".join(lines), flush=True)
    started = time.monotonic()
    command = [sys.executable, "-m", *command]
    with ExitStack() as stack:
        stdout = None
        if output:
            stdout = stack.enter_context(open(ROOT / output, "w", encoding="utf-8"))
        status = subprocess.run(command, cwd=ROOT, stdout=stdout).returncode
    if status:
        raise InputError(
            f"the command above ended with status {status}; its last lines say why"
        )
    print(f"   ({time.monotonic() - started:.0f} s)", flush=True)


def quickstart() -> None:
    """Run all commands, and print what came out."""
    started = time.monotonic()
    if (ROOT / OUT).exists():
        print(f"removing {OUT} of an earlier quickstart")
        shutil.rmtree(ROOT / OUT)
    (ROOT / OUT).mkdir(parents=True)
    text = OUT / "novels.txt"
    run = OUT / "run"
    config = "pretrain/configs/quickstart.toml"
    sentences = OUT / "sentences.txt"
    features = OUT / "features.h5"
    results = OUT / "probe.jsonl"
    train, dev, test = (
        DATA / f"entities_{split}.conll.gz" for split in ("train", "dev", "test")
    )
    novels = DATA / "novels.txt.gz"
    tokenize = ["data_scripts.tokenize", novels, text]
    run_module("raw text to tokenised sentences", tokenize)
    recipe = ["pretrain.recipe", text, run, "--config", config, "--max-time", "90s"]
    run_module("tokenised text to a small ELMo-C (what `make model` does)", recipe)
    run_module("the learning curve", ["pretrain.plot", run, OUT / "curve.png"])
    of_task = ["downstream", "sentences", "ner", train, dev, test]
    run_module("the probe's sentences", of_task, output=sentences)
    dump = ["elmoc", "dump-features", run, sentences, features]
    run_module("their contextual features", dump)
    probe = ["downstream", "ner", "--small", "--seeds", 1, "--results", results]
    probe += ["--features", features, "--vectors", run / "vectors.bin"]
    probe += ["--train", train, "--dev", dev, "--test", test]
    run_module("the NER probe: fastText alone, and with features", probe)
    report(run, results, time.monotonic() - started)


def report(run_directory: Path, probe_results: Path, seconds: float) -> None:
    """Print the scores and write them to `results.json`.

    Args:
        run_directory: of the training.
        probe_results: the probe's own file of results.
        seconds: the time of all commands.
    """
    metrics = read_lines(ROOT / run_directory / "metrics.jsonl")
    lines = [json.loads(line) for line in metrics]
    last = [line for line in lines if line["kind"] == "evaluation"][-1]
    probes = [json.loads(line) for line in read_lines(ROOT / probe_results)]
    million = last["words"] / 1e6
    print(
        f"\n── Results after {million:.2f} million words of pretraining "
        f"({seconds / 60:.1f} minutes in all)\n"
    )
    print(f"{'held out':32}{'encoder':>10}{'best constant':>16}")
    for name, label in METRICS.items():
        print(f"{label:32}{last[name]:>10.3f}{last[f'constant_{name}']:>16.3f}")
    print(f"\n{'NER probe, entity F1 (test)':32}{'F1':>10}")
    for probe in probes:
        print(f"{PROBE_INPUTS[probe['inputs']]:32}{probe['mean']:>10.2f}")
        # Thousands of numbers, which stay in the probe's own file of results.
        del probe["counts"]
    print(LIMITS)
    results = {"pretraining": last, "probes": probes, "seconds": round(seconds, 1)}
    write_json(ROOT / OUT / "results.json", results)
    print(
        f"\nEverything is in {OUT}/: run/ (with model/), features.h5, results.json, "
        "curve.png"
    )


if __name__ == "__main__":
    sys.exit(run_command(quickstart))
