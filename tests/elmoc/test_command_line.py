"""The `elmoc` command: it and `import elmoc` are light, and it ends as commands should."""

import subprocess
import sys

from elmoc.__main__ import OWN

HEAVY = ("torch", "numpy", "h5py", "fasttext", "tqdm", "safetensors")


def loaded_after(code: str) -> tuple[list[str], str]:
    """Which heavy modules a fresh Python has loaded after `code`, and what it printed."""
    report = f"import sys\n{code}\nprint([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return eval(done.stderr), done.stdout


def test_help_loads_nothing_heavy_and_succeeds() -> None:
    code = "from elmoc.__main__ import main\n"
    for words in (["--help"], *([name, "--help"] for name in OWN)):
        code += f"try: main({words})\nexcept SystemExit as end: assert end.code == 0\n"
    loaded, printed = loaded_after(code)
    assert loaded == []
    assert all(f"usage: elmoc {name}" in printed for name in OWN)


def test_threads_wait_without_spinning_from_before_pytorch_loads() -> None:
    code = (
        "import os\nos.environ.pop('OMP_WAIT_POLICY', None)\nfrom elmoc import __main__ as command\n"
        "from elmoc.commands import dump_features\n"
        "def run(arguments): print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)\n"
        "dump_features.run = run\nassert command.main(['dump-features', 'a', 'b', 'c']) == 0"
    )
    assert loaded_after(code) == ([], "passive False\n")


def test_public_names_are_there() -> None:
    assert all(getattr(sys.modules["elmoc"], name) is not None for name in sys.modules["elmoc"].__all__)
