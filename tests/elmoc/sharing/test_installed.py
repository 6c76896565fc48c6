"""Installed models: packages of models, found by their names; and the jobs that `elmoc` lists."""

import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from elmoc.__main__ import OF_ROOMS, main
from elmoc.errors import InputError
from packaging.version import Version
from tests.conftest import Fails

from elmoc import ElmoC


def test_a_package_of_a_model_is_found_by_its_name(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Fails
) -> None:
    source = tmp_path / "source"
    (model_path / "LICENSE").write_text("mine")
    assert main(["package", str(model_path), str(source), "--name", "tiny"]) == 0
    project = tomllib.loads((source / "pyproject.toml").read_text())
    [(group, named)] = project["project"]["entry-points"].items()
    # What pip would write: the package, and what it says of itself.
    told = source / "elmoc_model_tiny-0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Name: elmoc-model-tiny\nVersion: 0\n")
    lines = [f"[{group}]", *(f"{key}={named[key]}" for key in named), "broken=not_there.at_all"]
    (told / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(source)
    assert find_spec("elmoc_model_tiny") is not None
    elmo = ElmoC.from_pretrained("tiny", precision="float32")
    expected = ElmoC.from_pretrained(model_path, precision="float32")
    torch.testing.assert_close(elmo.embed(["a", "cat"]), expected.embed(["a", "cat"]), atol=0, rtol=0)
    assert str(Version(project["project"]["version"]).local).startswith(expected.fingerprint), "another replaces it"
    assert (source / "elmoc_model_tiny/LICENSE").read_text() == "mine"
    with pytest.raises(InputError, match=r"^another is not a model directory .* \(there are: tiny\)$"):
        ElmoC.from_pretrained("another")
    assert main(["check", "tiny"]) == 0
    weights = source / "elmoc_model_tiny/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    assert "model.safetensors is damaged" in error_line(main(["check", "tiny"]))
    # A folder of that name here comes first.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny").symlink_to(model_path)
    assert ElmoC.from_pretrained("tiny").directory.path == tmp_path / "tiny"


@pytest.mark.parametrize("name", OF_ROOMS)
def test_each_job_of_another_room_has_its_help(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/elmoc", name, "--help"])
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: elmoc {name} ")


def test_a_job_without_its_extra_says_which() -> None:
    code = "import sys; sys.modules['tabulate'] = None; from elmoc.__main__ import main; main(['suite', '--help'])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    said = "error: tabulate is not installed: the extra train has it (in a checkout: `pip install -e '.[train]'`)\n"
    assert run.stderr == said
