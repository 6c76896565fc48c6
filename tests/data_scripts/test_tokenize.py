"""`tokenize`: gives one sentence a line, leaves tokenised text alone, and changes nothing the second time."""

import gzip
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from data_scripts import tokenize as module
from data_scripts.tokenize import main
from elmoc.tokenizer import looks_wrapped

RAW = """\
Mr. Smith cannot pay $3.50, can he? "No," she said. Dr. Jones didn't.

The second document (a short one) ends here. It's 5% of U.S. income -- isn't it?!
A line of its own: see https://example.com/a,b?c=1.

"""
TOKENISED = """\
Mr. Smith can not pay $ 3.50 , can he ?
" No , " she said .
Dr. Jones did n't .

The second document ( a short one ) ends here .
It 's 5 % of U.S. income -- is n't it ? !
A line of its own : see https://example.com/a,b?c=1 .
"""


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_file(tmp_path: Path, workers: str, ending: str, capfd) -> None:
    source, target, again = (tmp_path / f"{name}.txt{ending}" for name in ("in", "out", "again"))
    source.write_bytes(gzip.compress(RAW.encode()) if ending else RAW.encode())
    assert main([str(source), str(target), "--workers", workers]) == 0
    assert "is raw text" in capfd.readouterr().out
    read = (lambda path: gzip.decompress(path.read_bytes())) if ending else Path.read_bytes
    assert read(target).decode() == TOKENISED
    assert main([str(target), str(again), "--workers", workers]) == 0
    assert "is tokenised already" in capfd.readouterr().out
    assert again.read_bytes() == target.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, target.name, again.name])


def test_long_text_keeps_its_order_and_documents(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_CHARACTERS", 1000)
    paragraphs = [f"Paragraph {number} starts, and goes on. It ends.\n\n\n" for number in range(800)]
    (tmp_path / "in").write_text("\n\n" + "".join(paragraphs))
    assert main([str(tmp_path / "in"), str(tmp_path / "out"), "--workers", "2"]) == 0
    expected = [f"Paragraph {number} starts , and goes on .\nIt ends ." for number in range(800)]
    assert (tmp_path / "out").read_text() == "\n\n".join(expected) + "\n"


def test_tokenised_text_passes_line_for_line(tmp_path: Path) -> None:
    text = "\n\na b , c .  d \n = Title = \n\n\nwo n't , `` he '' said .\n"
    (tmp_path / "in").write_text(text)
    assert main([str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == text
    assert main([str(tmp_path / "in"), str(tmp_path / "forced"), "--tokenised", "no"]) == 0
    assert '" he " said .' in (tmp_path / "forced").read_text()


def test_byte_order_marks_of_joined_files_are_left_out(tmp_path: Path) -> None:
    for text, tokenised in (("The end, then.\n", "The end , then .\n"), ("The end , then .\n",) * 2):
        for name in "ab":
            (tmp_path / name).write_text(text, encoding="utf-8-sig")
        (tmp_path / "in").write_bytes(b"\n".join((tmp_path / name).read_bytes() for name in "ab"))
        assert main([str(tmp_path / "in"), str(tmp_path / "out")]) == 0
        assert (tmp_path / "out").read_text() == f"{tokenised}\n{tokenised}"
        (tmp_path / "out").unlink()


def test_raw_french_dialogue_is_tokenised(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("Il est arrivé hier. Elle, non. Pourquoi pas ? Rien ! Viens !\n")
    assert main([str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text() == "Il est arrivé hier .\nElle , non .\nPourquoi pas ?\nRien !\nViens !\n"


def test_wrapped_lines_are_joined(tmp_path: Path) -> None:
    wrapped = (
        "It is a truth universally acknowledged, that a single man in\n"
        "possession of a good fortune, must be in want of a wife. However\n"
        "little known the feelings or views of such a man may be on his\n"
        "first entering a neighbourhood, this truth is fixed.\n\nShort.\n"
    )
    assert looks_wrapped(wrapped.split("\n"))
    assert not looks_wrapped(
        ["A first sentence of some fifty characters it is.", "And then another one of the same."] * 9
    )
    assert not looks_wrapped(["a list", "of short", "lines", "and more"])
    (tmp_path / "in").write_text(wrapped)
    assert main([str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out").read_text().split("\n")
    assert lines[0].endswith("in want of a wife .")
    assert lines[1].startswith("However little")
    assert lines[2:] == ["", "Short .", ""]
    assert main([str(tmp_path / "in"), str(tmp_path / "kept"), "--wrapped", "no"]) == 0
    assert (tmp_path / "kept").read_text().startswith("It is a truth universally acknowledged , that a single man in\n")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_lines_that_end_within_a_word_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], workers: str
) -> None:
    text = (
        "Er kam gele-\n gentlich, doch selten und nur am frei\xad\nen Tag. "
        "Der Wald\u2010 \r\nund Wiesenweg.\nNicht Nord-\n"
    )
    (tmp_path / "in").write_text(f"{text}\n{text}Amerika, 1-\nmal --\nso.\n", newline="")
    command = [f"{tmp_path}/in", "--tokenised", "no", "--workers", workers]
    assert main([*command, f"{tmp_path}/out", "--wrapped", "yes"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"{tmp_path}/in: a hyphen ends 6 lines before one that begins with a small letter")
    assert "gele- gentlich" in (tmp_path / "out").read_text()
    assert main([*command, f"{tmp_path}/kept", "--wrapped", "no"]) == 0
    assert "hyphen" not in capsys.readouterr().out


@pytest.mark.parametrize("wrapped", ["yes", "no"])
def test_a_very_long_paragraph_is_cut_between_sentences(tmp_path: Path, monkeypatch, wrapped: str) -> None:
    (tmp_path / "in").write_text("It came, and it went. " * 300 + "\n\nNext one.\n\n" + "a b " * 400)
    outputs = []
    for longest in (1 << 20, 100):
        monkeypatch.setattr(module, "_LONGEST_PARAGRAPH", longest)
        command = [str(tmp_path / "in"), str(tmp_path / f"out{longest}"), "--wrapped", wrapped, "--workers", "1"]
        assert main([*command, "--tokenised", "no"]) == 0
        outputs.append((tmp_path / f"out{longest}").read_text())
    sentences, cut = (output.split("\n") for output in outputs)
    assert cut[:303] == sentences[:303] == ["It came , and it went ."] * 300 + ["", "Next one .", ""]
    assert " ".join(cut[303:]).split() == " ".join(sentences[303:]).split() == ["a", "b"] * 400
    assert max(map(len, cut)) <= 100


def test_sentences_of_wrapped_text_without_blank_lines_stay_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_text("It came, and\nit went. \n" * 300)
    monkeypatch.setattr(module, "_BLOCK_CHARACTERS", 70)
    monkeypatch.setattr(module, "_LONGEST_PARAGRAPH", 100)
    command = [str(tmp_path / "in"), str(tmp_path / "out"), "--wrapped", "yes", "--workers", "1", "--tokenised", "no"]
    assert main(command) == 0
    assert (tmp_path / "out").read_text() == "It came , and it went .\n" * 300


def test_a_very_long_word_is_cut_too(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_PARAGRAPH", 100)
    assert list(module._cut("x" * 250)) == ["x" * 100, "x" * 100, "x" * 50]
    assert "".join(module._cut("A. " + "b " * 200)) == "A. " + "b " * 200


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n  \n", "is empty"),
        (b"fine.\nbad \xff.\n", "line 2: byte 0xff"),
        (b"Fine.\n\nNot \0 fine.\n", "in, line 3: the text holds a NUL character: take it out of the text"),
        (None, "does not exist"),
    ],
)
def test_bad_input(tmp_path: Path, capfd, data: bytes | None, message: str) -> None:
    if data is not None:
        (tmp_path / "in").write_bytes(data)
    assert main([str(tmp_path / "in"), str(tmp_path / "out")]) == 1
    assert message in capfd.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_json_lines_are_refused_and_other_unsuitable_text_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], error_line: Callable[[int], str]
) -> None:
    (tmp_path / "in").write_text('{"text": "It rained."}\n\n{"text": "A cat sat."}\n')
    assert f"{tmp_path}/in holds JSON lines, not text" in error_line(main([f"{tmp_path}/in", f"{tmp_path}/out"]))
    assert not (tmp_path / "out").exists()
    (tmp_path / "in").write_text("今天天气很好。\n" * 9)
    assert main([f"{tmp_path}/in", f"{tmp_path}/out"]) == 0
    assert f"warning: {tmp_path}/in: this looks like text without spaces" in capsys.readouterr().err


def test_several_files_are_to_be_joined_first(tmp_path: Path, error_line: Callable[[int], str]) -> None:
    (tmp_path / "in").mkdir()
    assert "in is a directory, but a file is needed" in error_line(main([f"{tmp_path}/in", f"{tmp_path}/out"]))
    assert "in/*.txt does not exist" in error_line(main([f"{tmp_path}/in/*.txt", f"{tmp_path}/out"]))
    for name in "ab":
        (tmp_path / f"in/{name}.txt").write_text(f"It rained on {name}.")
    for name, files in (("in", "in/*"), ("in/*.txt", "in/*.txt")):
        error = error_line(main([f"{tmp_path}/{name}", f"{tmp_path}/out"]))
        assert f"{tmp_path}/{name} is not one file, which is needed: join the files of text first" in error
        command = error.partition("`")[2].partition("`")[0]
        assert f" in {tmp_path}/{files};" in command
        subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
        assert (tmp_path / "raw.txt").read_text() == "It rained on a.\n\nIt rained on b.\n\n"
    (tmp_path / "[a]").write_text("It rained.")
    assert main([f"{tmp_path}/[a]", f"{tmp_path}/out"]) == 0


@pytest.mark.parametrize(
    ("name", "inside"), [("it's in", False), ("it's in/*.t*", False), ("[ab]", False), (".", True), ("*.t*", True)]
)
def test_the_command_that_joins_files_can_be_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[[int], str], name: str, inside: bool
) -> None:
    """Whatever the folder is called, with compressed files, and without reading what it writes."""
    folder, here = tmp_path / "it's in", tmp_path / "here"
    for each in (folder, tmp_path / "[ab]", here):
        each.mkdir()
        (each / "a b.txt").write_text("It rained.")
        (each / "c.txt.gz").write_bytes(gzip.compress(b"A cat sat."))
    monkeypatch.chdir(here if inside else tmp_path)
    command = error_line(main([name, f"{tmp_path}/out"])).partition("(`")[2].removesuffix("`)")
    subprocess.run(["sh", "-c", command], check=True, timeout=60)
    assert (tmp_path / "raw.txt").read_text() == "It rained.\n\nA cat sat.\n\n"


def test_output_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "in").write_text(RAW)
    (tmp_path / "out").write_text("mine")
    assert main([str(tmp_path / "in"), str(tmp_path / "out")]) == 1
    assert (tmp_path / "out").read_text() == "mine"
