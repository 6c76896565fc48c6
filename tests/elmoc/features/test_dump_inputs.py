"""Inputs of `elmoc dump-features`: text, standard input, documents, several files; and what is refused."""

import bz2
import io
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from elmoc.__main__ import main
from elmoc.errors import InputError
from elmoc.features.options import MOST_WORDS
from tests.conftest import Fails
from tests.elmoc.features.sentences import dumped

from elmoc import DumpOptions, ElmoC, FeatureFile, dump_features
from elmoc.modules import LayerStates


def test_blank_lines_keep_their_number_where_they_are_allowed(elmo: ElmoC, model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b\nc\n\na b\n")
    found = dumped(model_path, tmp_path / "in.txt", tmp_path / "f.h5", "--allow-empty")
    assert [array.shape[1] for array in found] == [2, 1, 0, 2]
    np.testing.assert_allclose(found[3], found[0], atol=1e-5)
    words = [np.array(["a", "b"]), ["c"], [], ["a", "b"]]
    for turn, given in enumerate((words, [[x] for x in words], ["a b", "c", "", "a b"], [{"text": x} for x in words])):
        dump_features(elmo, [(given, tmp_path / f"{turn}.h5")], DumpOptions(allow_empty=True))
        torch.testing.assert_close([*FeatureFile(tmp_path / f"{turn}.h5")], found, rtol=1e-5, atol=1e-5)
        with pytest.raises(InputError, match="the given texts, line 3 is empty"):
            dump_features(elmo, [(given, tmp_path / "other.h5")])


def test_documents_are_dumped_without_their_blank_lines(
    model_path: Path, tmp_path: Path, error_line: Fails, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/b.txt").write_text("a b\nc\n\n\na b\n")
    (tmp_path / "folder/a.csv").write_text('n,text\n1,"c d\n\na"\n2,\n')
    (tmp_path / "tokens.jsonl").write_text('{"words": ["c", "d", "a"]}\n{"words": null}\n')
    cases = {"folder": ([2, 1, 2, 1, 2], 4), "folder/*.txt": ([2, 1, 2], 2), "tokens.jsonl": ([3], 1)}
    for number, (source, (lengths, left_out)) in enumerate(cases.items()):
        command = [str(model_path), str(tmp_path / source), str(tmp_path / f"{number}.h5")]
        assert "leave it out by --documents" in error_line(main(["dump-features", *command]))
        assert [array.shape[1] for array in dumped(*command, "--documents")] == lengths
        assert f"{left_out} blank lines, or rows without text" in capsys.readouterr().out
    for options, said in ((["--documents", "--allow-empty"], "leaves out"), (["--format", "e2e-coref"], "doc_key")):
        assert said in error_line(main(["dump-features", *command[:2], str(tmp_path / "f.h5"), *options]))
    assert [array.shape[1] for array in dumped(*command[:2], tmp_path / "f.h5", "--allow-empty")] == [3, 0]


def test_standard_input_is_spooled(model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in.txt").write_text("a b\nc\n")
    expected = dumped(model_path, tmp_path / "in.txt", tmp_path / "file.h5")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a b\nc\n")))
    torch.testing.assert_close(dumped(model_path, "-", tmp_path / "pipe.h5"), expected, rtol=0, atol=0)
    assert not list(tmp_path.glob(".*")), "nothing is left over"


def test_processes_do_not_share_standard_input(
    model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Fails
) -> None:
    for name, value in {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    output = tmp_path / "f.h5"
    assert "standard input" in error_line(main(["dump-features", str(model_path), "-", str(output)]))
    assert not output.exists()


def test_a_row_has_a_state_for_each_of_its_words(model_path: Path, tmp_path: Path, error_line: Fails) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": ["a", "b"]}\n{"text": ["c", "", "d"]}\n')
    status = main(["dump-features", str(model_path), str(tmp_path / "rows.jsonl"), f"{tmp_path}/f.h5"])
    assert "rows.jsonl, line 2 sentences[0] has an empty word" in error_line(status)


def test_several_inputs_in_one_go(model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("a b\nc\n")
    (tmp_path / "b.txt.bz2").write_bytes(bz2.compress(b"c\n"))
    loaded = []
    load = ElmoC.from_pretrained
    monkeypatch.setattr(ElmoC, "from_pretrained", lambda *a, **b: loaded.append(a) or load(*a, **b))
    files = [str(tmp_path / name) for name in ("a.txt", "b.txt.bz2", "out")]
    assert main(["dump-features", str(model_path), *files[:2], "--output-dir", files[2], "--top"]) == 0
    assert len(loaded) == 1
    assert sorted(path.name for path in (tmp_path / "out").glob("*.h5")) == ["a.h5", "b.h5"]
    with FeatureFile(tmp_path / "out/a.h5") as first, FeatureFile(tmp_path / "out/b.h5") as second:
        assert (len(first), len(second)) == (2, 1)
        np.testing.assert_allclose(first[1], second[0], atol=1e-5)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (["a.txt", "b.txt", "c.h5"], "OUTPUT.h5"),
        (["a.txt", "x/a.jsonl.gz", "--output-dir", "out"], "x/a.jsonl.gz"),
        (["-", "--output-dir", "out"], "- has no name"),
        (["*.txt", "--output-dir", "out"], "txt has no name"),
    ],
)
def test_names_that_do_not_say_what_to_write(
    model_path: Path, tmp_path: Path, error_line: Fails, files: list[str], message: str
) -> None:
    shutil.rmtree(model_path)  # what is wrong is said before anything is opened
    assert message in error_line(main(["dump-features", str(model_path), *files]))


@pytest.mark.parametrize(
    "line",
    [
        '{"doc_key": "a", "sentences": [["x"], "y"]}',
        '{"doc_key": "a", "sent',
        "[" * 100_000,
        '{"doc_key": ".", "sentences": [["x"]]}',
        '{"doc_key": "a\\u0000", "sentences": [["x"]]}',
        '{"doc_key": "\\ud800", "sentences": [["x"]]}',
        '{"doc_key": "o:k", "sentences": [["x"]]}',
        '{"doc_key": "a", "sentences": [["x", ""]]}',
        '{"doc_key": "a", "sentences": [["x"], []]}',
        '{"doc_key": "a", "sentences": [["x"], ["1 1/2"]]}',
    ],
)
def test_documents_that_cannot_be_read(model_path: Path, tmp_path: Path, error_line: Fails, line: str) -> None:
    (tmp_path / "in.jsonl").write_text('{"doc_key": "o/k", "sentences": [["x"]]}\n' + line + "\n")
    before = set(tmp_path.iterdir())
    error = error_line(main(["dump-features", str(model_path), str(tmp_path / "in.jsonl"), f"{tmp_path}/f.h5"]))
    assert "in.jsonl, line 2" in error
    assert set(tmp_path.iterdir()) == before


def test_control_characters_are_parts_of_words_or_white_space(model_path: Path, tmp_path: Path) -> None:
    line = "a\x00b \x01 c\x1cd\x85e\u2028f\u200bg \x7f"
    (tmp_path / "in.txt").write_bytes(f"{line}\nnext\n".encode())
    dumped(model_path, tmp_path / "in.txt", tmp_path / "f.h5")
    with FeatureFile(tmp_path / "f.h5") as file:
        assert [array.shape[1] for array in file] == [len(line.split()), 1]
        assert file.find(line.split()) == 0


@pytest.mark.parametrize("options", [[], ["--format", "flat", "--top"], ["--layers", "2,0"]])
def test_boundaries_stand_around_words(model_path: Path, tmp_path: Path, elmo: ElmoC, options: list[str]) -> None:
    (tmp_path / "in.txt").write_text("The cat sat .\n\na\n")
    source = (model_path, tmp_path / "in.txt")
    dumped(*source, tmp_path / "plain.h5", "--allow-empty", *options)
    dumped(*source, tmp_path / "f.h5", "--allow-empty", *options, "--boundaries")
    states, _ = LayerStates(elmo)([["The", "cat", "sat", "."], [], ["a"]])
    whole = states.numpy()  # [B, L + 1, T + 2, 2P]
    kept = {"flat": [2], "2,0": [2, 0]}.get(options[1] if "flat" in options else (options or [""])[-1], [0, 1, 2])
    plain, found = FeatureFile(tmp_path / "plain.h5"), FeatureFile(tmp_path / "f.h5")
    for words, with_bounds, every in zip(plain, found, whole, strict=True):
        np.testing.assert_array_equal(with_bounds[..., 1:-1, :], words)
        expected = every[kept, : words.shape[-2] + 2]
        np.testing.assert_allclose(with_bounds.reshape(expected.shape), expected, atol=1e-5)
    with FeatureFile(tmp_path / "f.h5") as file:
        file.check()
        assert file.attributes["boundaries"]
        assert not file.has_map or file["The cat sat ."].shape[1] == 6


def test_a_line_has_a_number_of_words_that_memory_can_hold(model_path: Path, tmp_path: Path, error_line: Fails) -> None:
    (tmp_path / "in.txt").write_text("a b\n" + "w " * (MOST_WORDS + 1) + "\n")
    status = main(["dump-features", str(model_path), str(tmp_path / "in.txt"), str(tmp_path / "f.h5")])
    assert "in.txt, line 2" in error_line(status)
