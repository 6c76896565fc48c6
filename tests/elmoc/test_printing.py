"""What commands print of files and names: characters that steer a terminal are written as escapes."""

from pathlib import Path

import h5py
import pytest
from elmoc.__main__ import main
from elmoc.corpus import Corpus
from tests.elmoc.features.sentences import write_lines

# an escape of a terminal, a bell, a mark that turns the direction of text, a C1 control, a line separator's kin
STEERING = "\x1b[31m\x07\u202e\x9b1m\u2066"


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with such a name, in which a text and a feature file have such content."""
    folder = tmp_path / f"x{STEERING}"
    folder.mkdir()
    monkeypatch.chdir(folder)
    words = [f"bank{STEERING}", "left", "the"]
    Path(f"t{STEERING}.txt").write_text("".join(f"{word} bank of {word} , it is\n" for word in words * 3))
    write_lines(Path(f"f{STEERING}.h5"))
    with h5py.File(f"f{STEERING}.h5", "r+") as file:
        file.attrs["model"] = file.attrs[f"name{STEERING}"] = f"model{STEERING}"
    return STEERING


@pytest.mark.parametrize(
    "command",
    [
        ["neighbours", "{model}", "t{x}.txt", "--word", "bank", "--in", "bank{x} bank"],
        ["neighbours", "{model}", "t{x}.txt", "--word", "bank{x}", "--in", "bank{x} bank", "--layer", "{x}"],
        ["plot", "{model}", "t{x}.txt", "--word", "bank", "-o", "p{x}.png"],
        ["dump-features", "{model}", "t{x}.txt", "o{x}.h5"],
        ["dump-features", "{model}", "no{x}.txt", "o{x}.h5"],
        ["inspect", "f{x}.h5"],
        ["check", "f{x}.h5", "{model}", "{corpus}", "no{x}"],
        ["import-elmo", "o{x}.json", "w{x}.hdf5", "m{x}"],
    ],
    ids=" ".join,
)
def test_commands(
    hostile: str, session_model: Path, tiny_corpus: Corpus, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    main([word.format(x=hostile, model=session_model, corpus=tiny_corpus.path) for word in command])
    printed = "".join(capsys.readouterr())
    assert printed
    bars = [line for line in printed.splitlines() if "%|" not in line]
    assert not set("".join(bars)) & set(hostile) - set("[31m")
