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
from argparse import ArgumentParser
from pathlib import Path

from elmoc.errors import InputError, run_command
from elmoc.files.text import read_lines

ROOT = Path(__file__).resolve().parent.parent
DATA = Path("quickstart/data")
OUT = Path("runs/quickstart")
TRAINING_TIME = "45s"
# The steps by their titles: what a user types.
STEPS = {
    "raw text to a small ELMo-C (what `make model` does)": """
python -m pretrain.recipe {data}/novels.txt.gz {out}/run
--config pretrain/configs/quickstart.toml --max-time {time}
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
REPORT = """
── In {minutes:.1f} minutes, from raw text to a score

Gain: features of an encoder that read {words:.2f} million words in {training} move a
tagger of names from {vectors:.1f} to {both:.1f} F1 over fastText vectors alone (one
seed on some hundred names moves by a point or two; docs/results.md has longer runs).
Picture: {out}/curve.png shows how the encoder learned, beside the best constant guess.
Next: `make model TEXT=your-text.txt TIME=1h` trains on your own text, and
models/english, a model of general English, is there to be used (README.md)."""


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
        command = (
            step.format(data=DATA, out=OUT, time=TRAINING_TIME)
            .strip()
            .replace("\n", " \\\n    ")
        )
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
    """Print what a stranger asks: gain, picture, what to do next.

    Args:
        seconds: the time of all commands.
    """
    metrics = map(json.loads, read_lines(ROOT / OUT / "run/metrics.jsonl"))
    last = [line for line in metrics if line["kind"] == "evaluation"][-1]
    probes = map(json.loads, read_lines(ROOT / OUT / "probe.jsonl"))
    scores = {probe["inputs"]: probe["mean"] for probe in probes}
    print(
        REPORT.format(
            minutes=seconds / 60,
            words=last["words"] / 1e6,
            training=TRAINING_TIME,
            vectors=scores["vectors"],
            both=scores["both"],
            out=OUT,
        )
    )


if __name__ == "__main__":
    ArgumentParser(prog="python -m quickstart", description=__doc__).parse_args()
    sys.exit(run_command(quickstart))
