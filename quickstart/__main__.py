"""`make quickstart`: raw text → corpus → vectors → encoder → features → a probe's score, in a few minutes on a CPU.

Everything is left under `runs/quickstart/`: corpus/, run/, features.h5, results.json, curve.png.
"""

import json
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from elmoc.errors import InputError, run_command
from elmoc.files import read_lines, write_json

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("quickstart/data")
OUT = Path("runs/quickstart")
ENTITIES = {split: DATA / f"entities_{split}.conll.gz" for split in ("train", "dev", "test")}


def run(title: str, *arguments: object, output: Path | None = None) -> None:
    """Show and run one command (a module of the project); its standard output goes to `output` where that is given."""
    shown = shlex.join(["python", "-m", *map(str, arguments)]) + (f" > {output}" if output else "")
    print(f"\n── {title}\n$ {shown}", flush=True)
    started = time.monotonic()
    with open(ROOT / output, "w", encoding="utf-8") if output else open(1, "w", closefd=False) as stdout:
        status = subprocess.run([sys.executable, "-m", *map(str, arguments)], cwd=ROOT, stdout=stdout).returncode
    if status:
        raise InputError(f"the command above ended with status {status}; what it printed says why")
    print(f"   ({time.monotonic() - started:.0f} s)", flush=True)


def quickstart() -> None:
    """Run the main job end to end."""
    started = time.monotonic()
    if (ROOT / OUT).exists():
        print(f"removing {OUT} of an earlier quickstart")
        shutil.rmtree(ROOT / OUT)
    (ROOT / OUT).mkdir(parents=True)
    corpus, vectors, run_directory = OUT / "corpus", OUT / "vectors.bin", OUT / "run"
    sentences, features, probe_results = OUT / "sentences.txt", OUT / "features.h5", OUT / "probe.jsonl"
    run("raw text to tokenised sentences", "data_scripts.tokenize", DATA / "novels.txt.gz", OUT / "novels.txt")
    run("tokenised text to a corpus directory", "data_scripts.build_corpus", OUT / "novels.txt", corpus)
    run("fastText vectors of the corpus", "data_scripts.train_fasttext", corpus, vectors)
    for name, processing in (("input", "none"), ("target", "whiten")):
        run(
            f"the {name} vectors of every word type",
            *("data_scripts.build_vectors", corpus, vectors, "--name", name, "--post-process", processing),
        )
    run(
        "pretraining a small ELMo-C, both directions",
        *("pretrain", "pretrain/configs/quickstart.toml", run_directory, "--set", f"data.corpus={corpus}"),
        *("--max-time", "90s"),
    )
    run("the learning curve", "pretrain.plot", run_directory, OUT / "curve.png")
    run("the probe's sentences", "downstream", "sentences", "ner", *ENTITIES.values(), output=sentences)
    run("their contextual features", "elmoc", "dump-features", run_directory, sentences, features)
    run(
        "the NER probe: fastText alone, and with features",
        *(
            "downstream",
            "ner",
            "--small",
            "--seeds",
            1,
            "--features",
            features,
            "--vectors",
            vectors,
            "--results",
            probe_results,
        ),
        *(word for split, path in ENTITIES.items() for word in (f"--{split}", path)),
    )
    report(run_directory, probe_results, time.monotonic() - started)


def report(run_directory: Path, probe_results: Path, seconds: float) -> None:
    """Print the table and write `results.json`."""
    lines = [json.loads(line) for line in read_lines(ROOT / run_directory / "metrics.jsonl")]
    last = [line for line in lines if line["kind"] == "evaluation"][-1]
    probes = [json.loads(line) for line in read_lines(ROOT / probe_results)]
    names = {
        "cosine": "cosine with the true word",
        "accuracy_at_1": "accuracy@1",
        "accuracy_at_10": "accuracy@10",
        "reciprocal_rank": "mean reciprocal rank",
    }
    words = f"{last['words'] / 1e6:.2f} million words"
    print(f"\n── Results after {words} of pretraining ({seconds / 60:.1f} minutes in all)\n")
    print(f"{'held out':32}{'encoder':>10}{'best constant':>16}")
    for name, label in names.items():
        print(f"{label:32}{last[name]:>10.3f}{last[f'constant_{name}']:>16.3f}")
    print(f"\n{'NER probe, entity F1 (test)':32}{'F1':>10}")
    for probe in probes:
        print(f"{PROBE_INPUTS[probe['inputs']]:32}{probe['mean']:>10.2f}")
    print(LIMITS)
    for probe in probes:
        del probe["counts"]  # thousands of numbers, which stay in the probe's own file of results
    write_json(ROOT / OUT / "results.json", {"pretraining": last, "probes": probes, "seconds": round(seconds, 1)})
    print(f"\nEverything is in {OUT}/: corpus/, run/ (with model/), features.h5, results.json, curve.png")


LIMITS = """
What this can show: that the road works, and whether the encoder learns (is it above the best constant prediction?).
What it cannot show: how good ELMo-C is. The paper's encoder is 30 times larger and read thousands of times as much;
one seed on a few hundred test entities moves by a point or two either way. README.md has longer runs."""
PROBE_INPUTS = {"vectors": "fastText alone", "features": "features alone", "both": "features + fastText"}


if __name__ == "__main__":
    sys.exit(run_command(quickstart))
