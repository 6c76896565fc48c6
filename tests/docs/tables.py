"""Tables: what `make docs-check` shortens in the documentation's commands, and what it does not run, and why."""

TINY = "--set encoder.projection_size=16 --set encoder.cell_size=32 --set train.streams=4"
SHORT = "--set train.epochs=0.1 --set evaluation.words=500"

SHORTENED = {
    r"quickstart/data/novels\.txt\.gz > raw": "quickstart/data/novels.txt.gz | head -n 200 > raw",
    r"(-m data_scripts\.train_fasttext .*)": r"\1 --dim 16 --buckets 1000 --epochs 1",
    r"(-m pretrain pretrain/configs/\S+ \S+)": rf"\1 {TINY} {SHORT}",
    r"(-m pretrain\.adapt .*)": r"\1 --set evaluation.words=500 --epochs 0.2",
    r"(-m pretrain\.recipe .*)": rf"\1 {TINY} {SHORT} --vectors vectors.bin",
    r"--max-time \d+[mh]": "--max-time 4s",
    r"--nproc-per-node 8": "--nproc-per-node 2",
    r"--small ": "--small --epochs 1 ",
    r"--seeds 3": "--seeds 1",
    r"-m pretrain\.speed --streams 32 128 512": "-m pretrain.speed --config pretrain/configs/quickstart.toml "
    "--streams 2 4 --updates 1 --warm-up 1 --contestants allennlp fused-fp32",
    r"small\.toml --streams 64": "small.toml --streams 4 --updates 1 --warm-up 1 --contestants plain fused-fp32",
}
"""Regular expressions and what takes the place of their match, applied in this order."""

NOT_RUN = {
    "make": "targets of the Makefile: tests/test_quickstart.py runs the quickstart's script, CI runs the tests",
    ". .venv/bin/activate": "the environment that runs the check stands in its place",
    "pip install .": "needs an empty environment: tests/test_layout.py builds the wheel and looks into it",
    "python -m downstream suite downstream/suite/english.toml": "needs data that is not in the repository: "
    "tests/downstream/suite runs a suite of tiny probes",
    "torchrun --nnodes 2": "needs two machines: tests/pretrain/distributed/test_processes.py starts several processes",
    "torchrun --max-restarts 3": "tests/pretrain/distributed/test_processes.py kills a process under it",
}
"""How commands begin that are not run, and why."""

FROM_THE_START = ("README.md", "docs/own_text.md")
"""Pages whose commands are run in a fresh checkout; the others go on from the end of the README."""
