"""Records: JSON and TOML become dataclasses, or an error with the path of the field."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from elmoc.errors import InputError
from elmoc.files.records import read_json, read_record, write_json, write_record
from elmoc.settings import convert
from msgspec import Meta


@dataclass(frozen=True)
class Inner:
    """A part of a record."""

    size: Annotated[int, Meta(ge=1)] = 1
    kind: Literal["a", "b"] = "a"


@dataclass(frozen=True)
class Outer:
    """A record."""

    name: str
    rate: float = 0.5
    parts: list[Inner] = field(default_factory=list)
    names: tuple[str, ...] = ()
    rest: dict[str, Any] = field(default_factory=dict)
    more: dict[str, Inner] = field(default_factory=dict)


def test_json(tmp_path: Path) -> None:
    value = {"é": [1, None, {"a": 0.5}]}
    write_json(tmp_path / "a.json", value)
    assert read_json(tmp_path / "a.json") == value
    (tmp_path / "a.json").write_bytes((tmp_path / "a.json").read_bytes()[:-5])
    for name in ("a.json", "b.json"):
        with pytest.raises(InputError, match=name):
            read_json(tmp_path / name)


def test_records_round_trip(tmp_path: Path) -> None:
    record = Outer("n", 1.0, [Inner(2, "b")], ("x", "y"), {"a": [1]}, {"p": Inner()})
    write_record(tmp_path / "a.json", record, format="f", version=2)
    assert read_record(tmp_path / "a.json", Outer, format="f", version=2) == record


@pytest.mark.parametrize(
    ("value", "key"),
    [
        ([], "object"),
        ({}, "name"),
        ({"name": 1}, r"train\.name"),
        ({"name": "a", "rate": True}, r"train\.rate"),
        ({"name": "a", "rate": float("nan")}, r"train\.rate"),
        ({"name": "a", "parts": [{}, {"size": 2.0}]}, r"train\.parts\[1\]\.size"),
        ({"name": "a", "parts": [{}, {"size": 0}]}, r"train\.parts\[1\]\.size"),
        ({"name": "a", "parts": [{"kind": "c"}]}, r"train\.parts\[0\]\.kind"),
        ({"name": "a", "parts": [{"sise": 1}]}, r"train\.parts\[0\]\.sise"),
        ({"name": "a", "names": ["x", 1]}, r"train\.names\[1\]"),
        ({"name": "a", "more": {"p": {"size": "1"}}}, r"train\.more.*size"),
        ({"name": "a", "more": {"p": {"size": -1}}}, r"train\.more\.p\.size"),
        ({"name": "a", "nam": 1}, r"train\.nam "),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(value: Any, key: str) -> None:
    with pytest.raises(InputError, match=f"^x.json: .*{key}"):
        convert(value, Outer, where="x.json", name="train.{}".format)


@pytest.mark.parametrize(
    "header", [{"format": "g", "version": 2}, {"version": 2}, {"format": "f"}, {"format": "f", "version": 3}, []]
)
def test_another_format_or_version_is_refused(tmp_path: Path, header: Any) -> None:
    write_json(tmp_path / "a.json", header)
    with pytest.raises(InputError, match=r"a\.json .*format f"):
        read_record(tmp_path / "a.json", Outer, format="f", version=2)


def test_a_name_that_is_not_utf8_is_written_and_read(tmp_path: Path) -> None:
    folder = tmp_path / "caf\udce9 é"
    record = {"path": str(folder), str(folder): ["é"]}
    write_json(folder / "r\udcff.json", record)
    assert read_json(folder / "r\udcff.json") == record
    with pytest.raises(InputError, match=r"caf\\udce9 é/none\.json"):
        read_json(folder / "none.json")
