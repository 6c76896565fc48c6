"""CoNLL-U: words of trees alone, and damaged data refused with file and line."""

from pathlib import Path

import pytest

from downstream.readers.conllu import FORM, read_conllu
from elmoc.errors import InputError


def row(number: str, form: str, upos: str = "_", deprel: str = "_", xpos: str = "_") -> str:
    return "\t".join([number, form, "_", upos, xpos, "_", "_", deprel, "_", "_"]) + "\n"


TREES = (
    "# sent_id = 1\n# text = Fuese a Nueva York:\n"
    + row("1-2", "Fuese")
    + row("1", "Se", "PRON", "nsubj:pass")
    + row("2", "fue", "VERB", "root")
    + row("3", "a", "ADP", "case")
    + row("4", "Nueva York", "PROPN", "obl")
    + row("4.1", "gone", "VERB", "_")
    + row("5", ":", "PUNCT", "punct", ":")
    + "\n# sent_id = 2\n"
    + row("1", "Adiós", "INTJ", "root")
)


def test_words_without_multiword_tokens_and_empty_nodes(tmp_path: Path) -> None:
    path = tmp_path / "trees.conllu"
    path.write_text(TREES)
    first, second = read_conllu(path)
    assert [cells[FORM] for cells in first.rows] == ["Se", "fue", "a", "Nueva York", ":"]
    assert first.lines == [4, 5, 6, 7, 9]
    assert second.lines == [12]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Ada B-PER\n", ", line 1"),
        (row("one", "Ada"), ", line 1"),
        (row("1", "Ada") + row("1", "Byron"), ", line 2"),
        (row("1", "_") + row("2", "_"), ""),
        ("# text =\n\n" + row("1-2", "Fuese"), ""),
    ],
)
def test_what_is_no_conllu(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "trees.conllu"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"trees\.conllu{line}"):
        list(read_conllu(path))
