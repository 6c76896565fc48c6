"""Raw text: what looks raw is said once, and tokenised text passes silently."""

from pathlib import Path

import pytest

from elmoc.text.raw import sample_lines, warn_of_raw_file

RAW = "The cat sat, and it rained.\nThen we left; it was late.\n"
TOKENISED = "The cat sat , and it rained .\nThen we left ; it was late .\n"


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (RAW * 20, True),
        (RAW, True),
        ("The cat slept.\nIt rained.\nWe left.\n", True),
        (TOKENISED * 20 + RAW, True),
        (TOKENISED * 100 + RAW, False),
        (TOKENISED, False),
        ("\n\n", False),
        ("Yahoo! and Jeopardy! are names .\n", False),
        ("Acme Inc.\nBrown Bros.\nJ. R.\nThe U.S.\nat 5 p.m.\nthe end etc\n", False),
        ("12 W. 5th Ave.\n3 Oak Blvd.\nMain Ave.\n" * 20, False),
        ("Hunde , Katzen usw.\nrot bzw.\nblau etc.\n" * 20, False),
        ("Look at &#91; 1 &#93; : &quot; it &apos;s &apos;&apos; &#x27; &quot;\n" * 20, False),
        ("no: he left\nyes:\nA: no:\n" * 20, False),
        ("a list\nof short\nlines without marks\n", False),
        ("@user lol :) #fun https://a.b/c?d=1 , ok ?\n" * 30, False),
        ('x = [ f ( y ) , 1.5 ]\nif x :\n    return "a:b"\n' * 30, False),
        ("year\tsum\n1984\t3.5\n1985\t4:30\n" * 30, False),
    ],
)
def test_text_that_looks_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, warned: bool) -> None:
    (tmp_path / "text.txt").write_text(text)
    warn_of_raw_file(tmp_path / "text.txt")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == warned
    assert all(f"of the words of {tmp_path}/text.txt end in a comma or another mark" in line for line in lines)


def test_the_sample_is_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("abc\n\nd\nef\n")
    assert sample_lines(tmp_path / "text.txt", 4) == ["abc", "", "d"]
    assert sample_lines(tmp_path / "text.txt", 2) == ["ab"]
    assert sample_lines(tmp_path / "text.txt", 100) == ["abc", "", "d", "ef"]
