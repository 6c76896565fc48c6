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
from pathlib import Path

from elmoc.errors import InputError, run_command
from elmoc.files.records import write_json
from elmoc.files.text import read_lines

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("quickstart/data")
OUT = Path("runs/quickstart")
ENTITIES = {
    split: DATA / f"entities_{split}.conll.gz" for split in ("train", "dev", "test")
}
# Metrics of held-out text, and what the table calls them.
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
These numbers show that every step works, and whether the encoder learns: is it above the best constant prediction?
They do not show how good ELMo-C is. The paper's encoder is 30 times larger and read thousands of times as much text;
one seed on a few hundred test entities moves by a point or two either way. docs/results.md has longer runs."""


def run_module(title: str, *arguments: object, output: Path | None = None) -> None:
    """Print and run `python -m ARGUMENTS`; its standard output goes to `output` where
    that is given.

    Raises `InputError` where the command fails.
    """
    lines = [f"\n── {title}\n$ python -m"]
    for word in [
        *map(shlex.quote, map(str, arguments)),
        *(["> " + str(output)] if output else []),
    ]:
        if len(lines[-1]) + len(word) > 110:
            lines.append("   ")
        lines[-1] += f" {word}"
    print(" \\\n".join(lines), flush=True)
    started = time.monotonic()
    with (
        open(ROOT / output, "w", encoding="utf-8")
        if output
        else open(1, "w", closefd=False) as stdout
    ):
        status = subprocess.run(
            [sys.executable, "-m", *map(str, arguments)], cwd=ROOT, stdout=stdout
        ).returncode
    if status:
        raise InputError(
            f"the command above ended with status {status}; what it printed says why"
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
    sentences = OUT / "sentences.txt"
    features = OUT / "features.h5"
    probe_results = OUT / "probe.jsonl"
    run_module(
        "raw text to tokenised sentences",
        "data_scripts.tokenize",
        DATA / "novels.txt.gz",
        text,
    )
    run_module(
        "tokenised text to a small ELMo-C (what `make model` does)",
        *(
            "pretrain.recipe",
            text,
            run,
            "--config",
            "pretrain/configs/quickstart.toml",
            "--max-time",
            "90s",
        ),
    )
    run_module("the learning curve", "pretrain.plot", run, OUT / "curve.png")
    run_module(
        "the probe's sentences",
        "downstream",
        "sentences",
        "ner",
        *ENTITIES.values(),
        output=sentences,
    )
    run_module(
        "their contextual features", "elmoc", "dump-features", run, sentences, features
    )
    run_module(
        "the NER probe: fastText alone, and with features",
        *("downstream", "ner", "--small", "--seeds", 1, "--results", probe_results),
        *("--features", features, "--vectors", run / "vectors.bin"),
        *(word for split, path in ENTITIES.items() for word in (f"--{split}", path)),
    )
    report(run, probe_results, time.monotonic() - started)


def report(run_directory: Path, probe_results: Path, seconds: float) -> None:
    """Print the scores and write them to `results.json`; `seconds` is the time of all
    commands.
    """
    lines = [
        json.loads(line) for line in read_lines(ROOT / run_directory / "metrics.jsonl")
    ]
    last = [line for line in lines if line["kind"] == "evaluation"][-1]
    probes = [json.loads(line) for line in read_lines(ROOT / probe_results)]
    words = f"{last['words'] / 1e6:.2f} million words"
    print(
        f"\n── Results after {words} of pretraining ({seconds / 60:.1f} minutes in all)\n"
    )
    print(f"{'held out':32}{'encoder':>10}{'best constant':>16}")
    for name, label in METRICS.items():
        print(f"{label:32}{last[name]:>10.3f}{last[f'constant_{name}']:>16.3f}")
    print(f"\n{'NER probe, entity F1 (test)':32}{'F1':>10}")
    for probe in probes:
        print(f"{PROBE_INPUTS[probe['inputs']]:32}{probe['mean']:>10.2f}")
    print(LIMITS)
    for probe in probes:
        del probe[
            "counts"
        ]  # thousands of numbers, which stay in the probe's own file of results
    write_json(
        ROOT / OUT / "results.json",
        {"pretraining": last, "probes": probes, "seconds": round(seconds, 1)},
    )
    print(
        f"\nEverything is in {OUT}/: run/ (with model/), features.h5, results.json, curve.png"
    )


if __name__ == "__main__":
    sys.exit(run_command(quickstart))
