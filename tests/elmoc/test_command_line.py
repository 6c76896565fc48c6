"""Are `import elmoc` and `elmoc --help` light, and does the command end as commands should?"""

import subprocess
import sys

import pytest

import elmoc
from elmoc.__main__ import main

HEAVY = ("torch", "numpy", "h5py", "fasttext", "tqdm", "safetensors")


def loaded_after(code: str) -> tuple[list[str], str]:
    """Which heavy modules a fresh Python has loaded after `code`, and what it printed."""
    report = f"import sys\n{code}\nprint([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True)
    return eval(done.stderr), done.stdout


def test_importing_elmoc_loads_nothing_heavy() -> None:
    assert loaded_after("import elmoc; elmoc.__version__")[0] == []


def test_help_loads_nothing_heavy_and_succeeds() -> None:
    code = "from elmoc.__main__ import main\ntry: main(['--help'])\nexcept SystemExit as end: assert end.code == 0"
    loaded, printed = loaded_after(code)
    assert loaded == []
    assert "dump-features" in printed


def test_public_names_are_there_and_others_are_not() -> None:
    for name in elmoc.__all__:
        assert getattr(elmoc, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'ELMo'"):
        elmoc.ELMo  # noqa: B018


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"elmoc {elmoc.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [[], ["no-such-command"], ["dump-features", "model"], ["dump-features", "--wrong"]]
)
def test_wrong_usage_has_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert "usage: elmoc" in capsys.readouterr().err


def test_help_of_dump_features_names_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["dump-features", "--help"])
    assert end.value.code == 0
    printed = capsys.readouterr().out
    for option in ("--all", "--top", "--average", "--layers", "--batch-size", "--cuda-device", "--device", "--vectors"):
        assert option in printed
