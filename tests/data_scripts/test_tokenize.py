"""`tokenize`: gives one sentence a line, leaves tokenised text alone, and changes nothing the second time."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from data_scripts.tokenize import main
from elmoc.text.tokenizer import looks_wrapped

from data_scripts.parts import tokenising as module

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
    assert ": raw text" in capfd.readouterr().out
    read = (lambda path: gzip.decompress(path.read_bytes())) if ending else Path.read_bytes
    assert read(target).decode() == TOKENISED
    assert main([str(target), str(again), "--workers", workers]) == 0
    assert ": tokenised already" in capfd.readouterr().out
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
    assert not looks_wrapped(["so the first thing that we are looking at is the budget of next year"] * 40 + ["Yes."])
    (tmp_path / "in").write_text(wrapped)
    assert main([str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out").read_text().split("\n")
    assert lines[0].endswith("in want of a wife .")
    assert lines[1].startswith("However little")
    assert lines[2:] == ["", "Short .", ""]
    assert main([str(tmp_path / "in"), str(tmp_path / "kept"), "--wrapped", "no"]) == 0
    assert (tmp_path / "kept").read_text().startswith("It is a truth universally acknowledged , that a single man in\n")


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


@pytest.mark.parametrize(
    ("data", "named"),
    [(b"fine.\nbad \xff.\n", "in, line 2"), (b'{"text": "It rained."}\n{"text', "in, line 2"), (None, "in")],
)
def test_bad_input(tmp_path: Path, error_line: Callable[[int], str], data: bytes | None, named: str) -> None:
    if data is not None:
        (tmp_path / "in").write_bytes(data)
    assert f"{tmp_path}/{named}" in error_line(main([str(tmp_path / "in"), str(tmp_path / "out")]))
    assert not (tmp_path / "out").exists()


def test_lines_of_wikiextractor_are_blank_lines_at_any_length(tmp_path: Path) -> None:
    articles = ["It is here, now. It goes.", "So they say. " * 400, "No, it does not."]
    text = "".join(
        f'<doc id="{n}" url="u?id={n}" title="A > B">\nT{n}\n\n{a}\n</doc>\n' for n, a in enumerate(articles)
    )
    (tmp_path / "in").write_text(text)
    assert main([str(tmp_path / "in"), str(tmp_path / "out")]) == 0
    expected = ["T0\n", "It is here , now .", "It goes .\n", "T1\n", *["So they say ."] * 400, "\nT2\n"]
    assert (tmp_path / "out").read_text() == "\n".join([*expected, "No , it does not ."]) + "\n"


def test_kept_patterns(tmp_path: Path, error_line: Callable[[int], str], capsys) -> None:
    (tmp_path / "in").write_text("Room {{Ward 3}}. Dr. {{A. B}} left.\n")
    command = [str(tmp_path / "in"), str(tmp_path / "out"), "--keep"]
    assert "--keep {{( is no regular expression: " in error_line(main([*command, "x", "--keep", "{{("]))
    assert main([*command, "{{.*?}}", "--keep", "(?i)ro+M"]) == 0
    assert (tmp_path / "out").read_text() == "Room {{Ward_3}} .\nDr. {{A._B}} left .\n"
    (tmp_path / "in").write_text("Is it , indeed ?\n")
    assert main([str(tmp_path / "in"), str(tmp_path / "again"), "--keep", "x"]) == 0
    assert "raw text alone" in capsys.readouterr().err


@pytest.mark.parametrize("workers", ["1", "2"])
def test_scripts_without_spaces(tmp_path: Path, error_line: Callable[[int], str], monkeypatch, workers: str) -> None:
    monkeypatch.setattr(module, "SAMPLE_CHARACTERS", 500)
    monkeypatch.setattr(module, "_BLOCK_CHARACTERS", 500)
    words = "昨天 晚上 下 了 一 场 大 雨\n"
    english = "It was here, and is gone.\n" * 100
    for text in (words.replace(" ", ""), english + words.replace(" ", "") * 50):
        (tmp_path / "in").write_text(text)
        told = error_line(main([str(tmp_path / "in"), str(tmp_path / "out"), "--workers", workers]))
        assert str(tmp_path / "in") in told
        assert "jieba" in told
        assert "--tokenised yes" in told
    # Neither counted as raw, nor as wrapped, though no line has an end.
    (tmp_path / "in").write_text(text := f"{words[:-1]} {words}" * 30)
    assert main([str(tmp_path / "in"), str(tmp_path / "out"), "--workers", workers]) == 0
    assert (tmp_path / "out").read_text() == text
