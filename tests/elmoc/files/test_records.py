"""Records: JSON and TOML become dataclasses, or one sentence with the path of the field."""

import gzip
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from elmoc.errors import InputError
from elmoc.files.records import (
    convert,
    parse_json,
    read_json,
    read_record,
    read_toml,
    read_versioned,
    write_json,
    write_record,
    write_toml,
)
from elmoc.settings import setting


@dataclass(frozen=True)
class Part:
    """A part of a record."""

    size: int = setting(1, least=1)
    kind: str = setting("a", choices=("a", "b"))


@dataclass(frozen=True)
class Whole:
    """A record."""

    name: str
    rate: float = 0.5
    parts: list[Part] = field(default_factory=list)
    names: tuple[str, ...] = ()
    rest: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Part] = field(default_factory=dict)


def test_json(tmp_path: Path) -> None:
    value = {"é": [1, None, {"a": 0.5}]}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json", advice="make it again") == value
    (tmp_path / "a.json").write_bytes((tmp_path / "a.json").read_bytes()[:-5])
    with pytest.raises(InputError, match=r"a.json is not valid JSON .* truncated: make it again"):
        read_json(tmp_path / "a.json", advice="make it again")
    with pytest.raises(InputError, match="does not exist"):
        read_json(tmp_path / "b.json", advice="make it again")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 100_000, "not valid JSON .*out of range"),
        ("1e999", "not valid JSON .*out of range"),
        ("NaN", "not valid JSON"),
        ('"\\ud800"', "not valid JSON"),
        (b'"\xff"', "not valid JSON .*utf-8"),
    ],
)
def test_json_is_bounded(text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"x, line 3 is {message}.*: remove it"):
        parse_json(text, where="x, line 3", advice="remove it")


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    for name, content in (("a.json", '{"a": "é"}'), ("a.toml", 'a = "é"\n')):
        (tmp_path / name).write_text(content, encoding="utf-8-sig")
    assert read_json(tmp_path / "a.json", advice="") == read_toml(tmp_path / "a.toml") == {"a": "é"}


def test_a_key_that_is_there_twice() -> None:
    assert parse_json('{"a": 1, "a": 2}', where="", advice="", twice=True) == {"a": 2}
    with pytest.raises(InputError, match=r"^x, line 3 has the key 'a' twice in one object: remove it$"):
        parse_json('{"b": [{"a": 1, "c": 2, "a": 1}]}', where="x, line 3", advice="remove it")
    assert parse_json('[{"a": 1}, {"a": {"a": 1}}]', where="x", advice="") == [{"a": 1}, {"a": {"a": 1}}]


def test_records_round_trip(tmp_path: Path) -> None:
    record = Whole("n", 1.0, [Part(2, "b")], ("x", "y"), {"a": [1]}, {"p": Part()})
    write_record(tmp_path / "a.json", record, format="f", version=2)
    assert read_record(tmp_path / "a.json", Whole, format="f", version=2, advice="make it again") == record


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], r"the whole must be of type object, not \[\]"),
        ({}, "the field name is missing"),
        ({"name": 1}, "name must be of type str, not 1"),
        ({"name": "a", "rate": True}, "rate must be of type float, not True"),
        ({"name": "a", "rate": float("nan")}, "rate must be a finite number, not nan"),
        ({"name": "a", "parts": [{}, {"size": 2.0}]}, r"parts\[1\].size must be of type int, not 2.0"),
        ({"name": "a", "parts": [{}, {"size": 0}]}, r"parts\[1\].size must be at least 1, not 0"),
        ({"name": "a", "parts": [{"kind": "c"}]}, r"parts\[0\].kind must be one of a, b, not 'c'"),
        ({"name": "a", "parts": [{"sise": 1}]}, r"unknown key parts\[0\].sise \(known: parts\[0\].size, "),
        ({"name": "a", "names": ["x", 1]}, r"names\[1\] must be of type str, not 1"),
        ({"name": "a", "more": {"p": {"size": "1"}}}, "size must be of type int, not str"),
        ({"name": "a", "more": {"p": {"size": -1}}}, "more.p.size must be at least 1, not -1"),
        ({"name": "a", "more": {"{p": {"size": -1}}}, "more.{p.size must be at least 1, not -1"),
        ({"name": "a\0b"}, "name holds a NUL character"),
        ({"name": "a", "nam": 1}, r"unknown key nam \(known: name, rate, "),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"x.json: .*{message}.*: make it again"):
        convert(value, Whole, where="x.json", advice="make it again")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"format": "g", "version": 2}, "is not of the format f: make it again"),
        ({"version": 2}, "is not of the format f: make it again"),
        ({"format": "f"}, "has version None of the format f, this elmoc reads versions 1 to 2: use the elmoc that"),
        ({"format": "f", "version": 3}, "has version 3 of"),
        ({"format": "f", "version": True}, "has version True of"),
        ([], "is not of the format f"),
    ],
)
def test_versions_are_checked_first(tmp_path: Path, header: Any, message: str) -> None:
    write_json(tmp_path / "a.json", header)
    with pytest.raises(InputError, match=f"a.json {message}"):
        read_versioned(tmp_path / "a.json", format="f", version=2, oldest=1, advice="make it again")


def test_a_tensor_is_no_object() -> None:
    with pytest.raises(InputError, match=r"a.pt: a value of type Tensor stands where an object is expected: make it"):
        convert({"a": torch.zeros(3)}, dict[str, dict[str, int]], where="a.pt", advice="make it again")


def test_toml_is_read_as_it_was_written(tmp_path: Path) -> None:
    sections = {
        "train": {"directions": ["forward"], "epochs": 1e-06, "carry_state": True, "streams": 3},
        "data": {"sources": {"late": 2.0, "no-3": 0}, "corpus": 'a "b" \\ \n\x7f é'},
        "optimiser": {},
    }
    write_toml(tmp_path / "a.toml", sections)
    assert read_toml(tmp_path / "a.toml") == sections


def test_toml(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text("[a]\nb = 1\n")
    assert read_toml(path) == {"a": {"b": 1}}
    for content in (b"a = ", b"a = '\xff'", b"a = " + b"[" * 100_000, b"a = " + b"1" * 10_000):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a.toml is not valid TOML \(.*\): correct it"):
            read_toml(path)


@pytest.mark.parametrize(
    "content", [gzip.compress(b"[a]\nb = 1\n")[:15], gzip.compress(b"[a]")[:-9] + b"x" * 9, b"[a]"]
)
def test_compressed_records_that_are_broken(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.toml.gz").write_bytes(content)
    with pytest.raises(InputError, match=r"a.toml.gz: the gzip data is truncated or damaged"):
        read_toml(tmp_path / "a.toml.gz")


def test_names_that_are_not_utf8_are_not_recorded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not valid UTF-8"):
        write_json(tmp_path / "a.json", {"path": "caf\udce9"})
    assert not list(tmp_path.iterdir())
