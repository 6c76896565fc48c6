"""Documents: every kind of source gives the same documents, line by line, whole or in parts."""

import bz2
import csv
import gzip
import io
import json
import lzma
import random
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow
import pytest
from elmoc.errors import InputError
from elmoc.text.documents import (
    READERS,
    AnySource,
    TextRange,
    check_tokenised,
    estimate_text_bytes,
    lines_of,
    read_documents,
    reader_of,
    rereadable,
    whole_files,
)
from elmoc.text.named_files import find_named_files
from elmoc.text.reader import first_lines
from pyarrow import parquet


def fifty_documents() -> list[str]:
    """Documents of some lines, with all that a form has to keep."""
    generator = random.Random(5)
    words = ["a", "Zürich", '"', '"no"', ",", "'", "x\u2028y", "it\tis", "日本", "'s", '5"', '""', "\\n", "\x0b", "#"]
    lines = (" ".join(generator.choices(words, k=generator.randint(1, 9))).strip() or "a" for _ in range(1000))
    return ["\n".join(islice(lines, generator.randint(1, 4))) for _ in range(50)]


def as_table(texts: list[str], separator: str) -> bytes:
    file = io.StringIO()
    rows = [["id", "text", "label"], *([number, text, "pos"] for number, text in enumerate(texts))]
    csv.writer(file, delimiter=separator).writerows(rows)
    return file.getvalue().encode()


def as_parquet(texts: list[str]) -> bytes:
    file = io.BytesIO()
    table = pyarrow.table({"id": range(len(texts)), "text": texts, "label": ["pos"] * len(texts)})
    parquet.write_table(table, file, row_group_size=17)
    return file.getvalue()


def as_rows(texts: list[str]) -> bytes:
    return "".join(json.dumps({"id": str(number), "text": text}) + "\n" for number, text in enumerate(texts)).encode()


def as_words(texts: list[str]) -> list[list[list[str]]]:
    return [[line.split() for line in text.split("\n") if line.split()] for text in texts]


def as_keyed(texts: list[str]) -> bytes:
    records = [{"doc_key": f"d{number}", "sentences": each} for number, each in enumerate(as_words(texts))]
    return "\n\n".join(json.dumps(record) for record in records).encode()


FORMS: dict[str, Callable[[list[str]], bytes]] = {
    "a.txt": lambda texts: "\n \t\n".join(texts).encode("utf-8-sig"),
    "a.gz": lambda texts: gzip.compress("\r\n\r\n".join(texts).encode()),
    "a.bz2": lambda texts: bz2.compress("\n\n".join(texts).encode()),
    "a.xz": lambda texts: lzma.compress("\n\n".join(texts).encode()),
    "a.zst": lambda texts: b"".join(
        pyarrow.compress(f"{text}\n\n".encode(), "zstd", asbytes=True) for text in texts
    ),  # of 50 frames
    "a.jsonl": as_rows,
    "a.jsonl.gz": lambda texts: gzip.compress(as_rows(texts)),
    "without_a_name": as_rows,
    "a.jsonlines": as_keyed,
    "keyed.gz": lambda texts: gzip.compress(as_keyed(texts)),
    "a.csv": lambda texts: as_table(texts, ","),
    "a.tsv": lambda texts: as_table(texts, "\t"),
    "a.csv.xz": lambda texts: lzma.compress(as_table(texts, ",")),
    "a.parquet": as_parquet,
    "b": as_parquet,
}


def contents(source: AnySource, field: str | None = None) -> list[list[list[str]]]:
    documents = read_documents(source, field=field)
    return [[words for words in document.sentences() if words] for document in documents]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    content = FORMS[name](fifty_documents())
    expected = as_words(fifty_documents())
    path = tmp_path / "folder" / name
    path.parent.mkdir()
    path.write_bytes(content)
    for source in (path, str(path), str(path.parent), f"{path.parent}/{name[0]}*", f"novels={path}"):
        assert contents(source) == expected
    with rereadable(TextRange(path)) as copy:
        assert contents(copy) == expected
    is_keyed = reader_of(path).has_keys
    names = [document.name for document in read_documents(path)]
    assert names == ([f"d{number}" for number in range(50)] if is_keyed else [str(path)] * 50)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert (contents("-") == expected) == (reader_of(path) is not READERS["table"]), "known by its content"
    for part in (1000, 7000):
        parts = reader_of(path).divide(*whole_files([path]), part)
        assert [each for text in parts for each in contents(text)] == expected


def test_folders_and_iterables_give_the_same_documents(tmp_path: Path) -> None:
    texts = fifty_documents()
    for name, form in FORMS.items():
        (tmp_path / name).write_bytes(form(texts))
    assert contents(tmp_path) == as_words(texts) * len(FORMS)
    rows = [{"text": text, "id": 1} for text in texts]
    arrays = [[np.array(words) for words in each] for each in as_words(texts)]
    for source in (texts, as_words(texts), arrays, np.array(texts), rows, [*read_documents(rows)]):
        assert contents(iter(source)) == as_words(texts)
        with rereadable(iter(source)) as path:
            assert contents(path) == contents(path) == as_words(texts)


def test_the_lines_of_documents_are_those_of_the_file(tmp_path: Path) -> None:
    generator = random.Random(0)
    lines = [generator.choice(["", " ", "a b", "c", "d  e "]) for _ in range(300)]
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    assert list(lines_of(read_documents(tmp_path / "a"))) == lines
    begins = [document.line for document in read_documents(tmp_path / "a")]
    blank = [number for number, line in enumerate(lines, 1) if not line.strip()]
    assert begins == [1, *(number + 1 for number in blank if number < len(lines))], "lines that were left are passed"
    (tmp_path / "b.jsonl").write_bytes(as_keyed(["The  cat .\nIt slept .", "x"]))
    assert list(lines_of(read_documents(tmp_path / "b.jsonl"))) == ["The cat .", "It slept .", "", "x"]
    lists = [[["a\nb"], [], ["c"]], [[], ["d\n\ne"]]]
    assert list(lines_of(read_documents(lists))) == ["a b", "c", "", "d e"], "a document ends where it does"
    (tmp_path / "c.jsonl").write_text('{"sentences": [["a"], ["b"]]}\n{"sentences": [["c"]]}\n')
    assert list(lines_of(read_documents(tmp_path / "c.jsonl"))) == ["a", "b", "", "c"], "rows without keys"


@pytest.mark.parametrize("source", [None, 5, b"A cat .", {"text": "A cat ."}, [__file__], [Path(__file__)]])
def test_what_is_no_source_is_told(source: object) -> None:
    said = "give its path" if isinstance(source, list) else f"{type(source).__name__} is no source of text: give"
    with pytest.raises(InputError, match=said):
        next(read_documents(source))


def test_parts_of_a_file_give_back_every_line(tmp_path: Path) -> None:
    lines = ["é" * length for length in [0, 1, 50, 3000, 5, 70_000, 0, 0, 40_000] * 9]
    (tmp_path / "a").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    (tmp_path / "a.gz").write_bytes(gzip.compress((tmp_path / "a").read_bytes()))
    parts = reader_of(tmp_path / "a").divide(TextRange(tmp_path / "a"), 20_000)
    assert len(parts) > 5
    assert [line for part in parts for line in lines_of(read_documents(part))] == lines
    (tmp_path / "b").write_text("It came, and\n" * 9000 + "\n" + "it went.\n" * 300)
    first, *others = reader_of(tmp_path / "b").divide(TextRange(tmp_path / "b"), 20_000, between_lines=False)
    assert first.end >= 9000 * 13 + 1, "a document ends there, or nowhere"
    assert sum(part.end - part.start for part in (first, *others)) == 9000 * 13 + 1 + 300 * 9
    (whole,) = reader_of(tmp_path / "a.gz").divide(TextRange(tmp_path / "a.gz"), 20_000)
    assert list(lines_of(read_documents(whole))) == lines


def test_what_cannot_be_read_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"fine\n" * 3000 + b"\n\xe9 bad\n")
    (tmp_path / "a.jsonl").write_text(
        '{"doc_key": "a", "sentences": [["x"]]}\n{"sentences": [["It", "rained", "."]]}\n'
    )
    (tmp_path / "a.lz4").write_bytes(b'\4"M\x18\x04')
    for name, stream in (("a.bz2", bz2.compress(b"a\n")), ("a.xz", lzma.compress(b"a\n"))):
        (tmp_path / name).write_bytes(stream + stream[:5] + b"of another stream")
    told = {"latin": "line 3002: byte 0xe9", "a.jsonl": "line 2.*doc_key", "a.lz4": "lz4", "a.bz2": "damaged"}
    for name, said in (told | {"a.xz": "damaged"}).items():
        with pytest.raises(InputError, match=f"/{name}.*{said}"):
            list(lines_of(read_documents(tmp_path / name)))
    with pytest.raises(InputError, match="names no file"):
        list(read_documents(tmp_path / "missing"))
    with pytest.raises(InputError, match=r"row 2: .* 'It slept all day long.' is no word"):
        list(read_documents([["New York", "."], ["The cat.", "It slept all day long."]]))
    _, part = reader_of(tmp_path / "latin").divide(TextRange(tmp_path / "latin"), 8000)
    with pytest.raises(InputError, match=r"latin, line [0-9]+ from byte [0-9,]+ on"):
        list(lines_of(read_documents(part)))


def test_text_is_estimated_as_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder/.hidden").mkdir(parents=True)
    for name in ("folder/a.txt", "folder/b.gz", "folder/.c.txt", "folder/.hidden/d.txt"):
        Path(name).write_bytes(gzip.compress(b"a" * 100, 0) if name.endswith("gz") else b"a" * 100)
    assert find_named_files(["x=folder"]) == {Path("folder/a.txt"): "x", Path("folder/b.gz"): "x"}
    assert estimate_text_bytes(find_named_files(["x=folder"])) == 100 + int(123 * 2.7)
    table = pyarrow.table({"text": ["a" * 9000, "b" * 9000], "embedding": np.random.rand(2, 5000).tolist()})
    parquet.write_table(table, "a.parquet", compression="none")
    assert estimate_text_bytes([Path("a.parquet")]) == pytest.approx(18_000, rel=0.5)


RAW = "The cat sat, and it rained. Then we left; it was late."
TOKENISED = "The cat sat , and it rained . Then we left ; it was late ."


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (f"{RAW} " * 20, True),
        (f"{TOKENISED} " * 20 + f"{RAW} " * 2, False),
        (f"{TOKENISED} " * 200 + RAW, False),
        (TOKENISED, False),
        ("", False),
        ("Yahoo! and Jeopardy! are names , and so on , and more .", False),
        ("Look at &#91; 1 &#93; : &quot; it &apos;s , and so on . &apos;&apos; &#x27; &quot; " * 20, False),
        ("no: he left , well , yes: no , no " * 20, False),
        ("@user lol :) #fun https://a.b/c?d=1 , ok ? " * 30, False),
        ("1984 3.5 1985 4:30 " * 30, False),
        ("a list\nof short lines\n" * 30, False),
        ("我们 都 是 中国人 ， 今天 天气 很 好 。\n中华人民共和国 成立 了 。\n", False),
        ("\tIt rained .\n\tA cat sat .\t\n" * 20, False),
    ],
)
def test_text_that_looks_raw(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, warned: bool) -> None:
    (tmp_path / "text.txt").write_text(text)
    check_tokenised([TextRange(tmp_path / "text.txt")])
    assert ("text.txt" in capsys.readouterr().err) == warned


def test_the_sample_is_the_beginning() -> None:
    lines = ["abc", "", "d", "ef"]
    assert first_lines(lines, 4) == ["abc", "", "d"]
    assert first_lines(lines, 2) == ["ab"]
    assert first_lines(lines, 100) == lines


COLUMNS = {
    "a table": "year\tsum\tplace\n1984\t3.5\tRome\n1985\t-\tOslo\n" * 20,
    "CoNLL-U": "# sent_id = 1\n# text = It rained\n1\tIt\tPRON\t_\n2\trained\tVERB\t_\n\n" * 5,
    "three words": "1\tIt\tit\tPRON\n2\thad\thave\tAUX\n3\trained\train\tVERB\n",
    "CoNLL-2003": "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\nGerman JJ I-NP I-MISC\n\n" * 3,
    "CoNLL-2000": "He PRP B-NP\nreckons VBZ B-VP\nthe DT B-NP\ndeficit NN I-NP\n. . O\n",
    "BIO alone": "Anna B-PER\nsang O\n\nShe O\nleft O\nRome B-LOC\n. O\n",
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a").write_text(COLUMNS[name])
    with pytest.raises(InputError, match="/a has columns"):
        check_tokenised([TextRange(tmp_path / "a")])


def test_json_lines_are_known_by_their_content(tmp_path: Path) -> None:
    for text in ('\n{"text": "It rained ."}\n' * 9, f'{{ "text": "{"It rained . " * 50_000}"}}\n'):
        (tmp_path / "a").write_text(text)
        assert next(lines_of(read_documents(tmp_path / "a"))).startswith("It rained .")
    (tmp_path / "a").write_text('{"a": 1}\nIt rained .\n')
    assert len(list(lines_of(read_documents(tmp_path / "a")))) == 2, "one object among text is text"
