"""Quickstart: the whole way from raw text to a probe's score, in a few minutes on a
CPU.

`make quickstart` runs the commands of a user one after the other: raw text → model →
features → probe. Everything is left under `runs/quickstart/`: run/,
features.h5, probe.jsonl, curve.png.
"""

import json
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

from elmoc.errors import InputError, run_command
from elmoc.files.text import read_lines

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("quickstart/data")
OUT = Path("runs/quickstart")
# The steps by their titles: what a user types.
STEPS = {
    "raw text to a small ELMo-C (what `make model` does)": """
python -m pretrain.recipe {data}/novels.txt.gz {out}/run
--config pretrain/configs/quickstart.toml --max-time 45s
""",
    "the learning curve": """
python -m pretrain.plot {out}/run {out}/curve.png
""",
    "the probe's sentences": """
python -m downstream sentences ner {data}/entities_train.conll.gz
{data}/entities_dev.conll.gz {data}/entities_test.conll.gz > {out}/sentences.txt
""",
    "their contextual features": """
python -m elmoc dump-features {out}/run {out}/sentences.txt {out}/features.h5
""",
    # A probe as small as this one is faster on one thread than on two.
    "the NER probe: fastText alone, and with features": """
OMP_NUM_THREADS=1 python -m downstream ner --small --seeds 1 --epochs 8
--results {out}/probe.jsonl
--features {out}/features.h5 --vectors {out}/run/vectors.bin
--train {data}/entities_train.conll.gz --dev {data}/entities_dev.conll.gz
--test {data}/entities_test.conll.gz
""",
}
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


def quickstart() -> None:
    """Run all commands, and print what came out.

    Raises:
        InputError: a command fails.
    """
    started = time.monotonic()
    shutil.rmtree(ROOT / OUT, ignore_errors=True)
    (ROOT / OUT).mkdir(parents=True)
    for title, step in STEPS.items():
        before = time.monotonic()
        command = step.format(data=DATA, out=OUT).strip().replace("\n", " \\\n    ")
        print(f"\n── {title}\n$ {command}", flush=True)
        # As in a shell, for the sake of `>`.
        command = command.replace("python", shlex.quote(sys.executable), 1)
        status = subprocess.run(command, shell=True, cwd=ROOT)
        if status.returncode:
            raise InputError(
                f"the command above ended with status {status.returncode}; its last "
                "lines say why"
            )
        print(f"   ({time.monotonic() - before:.0f} s)", flush=True)
    report(time.monotonic() - started)


def report(seconds: float) -> None:
    """Print the scores.

    Args:
        seconds: the time of all commands.
    """
    metrics = map(json.loads, read_lines(ROOT / OUT / "run/metrics.jsonl"))
    last = [line for line in metrics if line["kind"] == "evaluation"][-1]
    probes = [json.loads(line) for line in read_lines(ROOT / OUT / "probe.jsonl")]
    print(
        f"\n── Results after {last['words'] / 1e6:.2f} million words of pretraining "
        f"({seconds / 60:.1f} minutes in all)\n"
    )
    print(f"{'held out':32}{'encoder':>10}{'best constant':>16}")
    for name, label in METRICS.items():
        print(f"{label:32}{last[name]:>10.3f}{last[f'constant_{name}']:>16.3f}")
    print(f"\n{'NER probe, entity F1 (test)':32}{'F1':>10}")
    for probe in probes:
        print(f"{PROBE_INPUTS[probe['inputs']]:32}{probe['mean']:>10.2f}")
    print(LIMITS)
    print(f"\nEverything is in {OUT}/: run/ (with model/) and the files named above")


if __name__ == "__main__":
    sys.exit(run_command(quickstart))
