"""Documents of coreference as JSON lines: those of columns in another form, whose features are dumped from the file."""

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from downstream.inputs.sources import FeatureStates
from downstream.tasks.coref.task import TASK
from elmoc.__main__ import main as elmoc
from elmoc.errors import InputError
from tests.downstream.tasks.coref.test_task import conll, read

DOCUMENT: dict[str, Any] = {
    "doc_key": "bn/cnn_0001_0",
    "sentences": [["Bo", "and", "Al", "met", "."], [], ["They", "said", "Bo", "lost", "his", "hat", "."]],
    "speakers": [["A"] * 5, [], ["", *["B"] * 6]],
    "clusters": [[[9, 10]], [[7, 7], [0, 0], [9, 9], [0, 0]], [[0, 2], [5, 5]]],
    "constituents": [],
}


def written(path: Path, *documents: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, documents)) + "\n\n")
    return path


def test_documents_without_words_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = {"doc_key": "e", "sentences": [[]], "clusters": [[]]}
    # the name stands behind a text of more than 64 KiB
    late = {"clusters": [], "sentences": [["word"] * 20_000], "doc_key": "late"}
    documents = read(written(tmp_path / "a", empty, late, empty))
    assert [each.document.heading for each in documents] == ["#begin document (late); part 000"]
    assert "2 documents without words left out" in capsys.readouterr().err
    with pytest.raises(InputError, match="b holds no document with words"):
        read(written(tmp_path / "b", empty))


def test_json_lines_are_the_documents_of_columns(tmp_path: Path) -> None:
    text = conll(
        "bn/cnn_0001_0", "Bo/(1)|(2 and Al/2) met .\nThey/(2) said Bo/(1) lost his/(1)|(3 hat/3) .", speakers="AB"
    )
    columns = tmp_path / "a.conll"
    columns.write_text(text.replace("They\tXX\t*\t-\t-\t-\tB", "They\tXX\t*\t-\t-\t-\t-"))
    [expected] = read(columns)
    [document] = read(written(tmp_path / "a.jsonlines", DOCUMENT))
    for field in ("chains", "speakers", "genre"):
        assert getattr(document, field) == getattr(expected, field)
    assert [each.words for each in document.sentences] == [each.words for each in expected.sentences]
    own, theirs = (TASK.format_prediction(each, [[(0, 2), (5, 5)]]).splitlines() for each in (document, expected))
    assert own[0] == theirs[0] == "#begin document (bn/cnn_0001_0); part 000"
    assert [line.split()[-1:] for line in own] == [line.split()[-1:] for line in theirs]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"clusters": [[[3, 12]]]}, "line 2: the mention .3, 12. is not in the document, whose words are 0 to 11"),
        ({"clusters": [[[3, 2]]]}, "line 2: the mention"),
        ({"clusters": [[[3, 3, 3]]]}, "line 2 cannot be read"),
        ({"clusters": None}, "line 2 cannot be read"),
        ({"speakers": [["A"]]}, "line 2: a speaker for each word"),
        ({"subtoken_map": [0, 1]}, "line 2: .* whole words, without subtoken_map"),
        ({"doc_key": "a\tb"}, "line 2 cannot be read"),
        ({"sentences": [[]], "speakers": []}, "line 2: the mention .9, 10. is not in the document"),
    ],
)
def test_damaged_documents(tmp_path: Path, fails: Callable[..., str], change: dict[str, Any], said: str) -> None:
    path = written(tmp_path / "a.jsonlines", DOCUMENT, DOCUMENT | change)
    assert re.search(f"a.jsonlines, {said}", fails("sentences", "coref", path))


def test_features_of_the_file_are_those_of_its_documents(tmp_path: Path, subword_model: Path) -> None:
    sentences = [["A", "cat", "."], ["It", "(", "she", ")", "ran"]]
    path = tmp_path / "a.jsonl.gz"
    documents = [{"doc_key": f"a/{i}", "sentences": sentences, "clusters": []} for i in range(2)]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, documents)).encode()))
    assert elmoc(["dump-features", str(subword_model), str(path), str(tmp_path / "f.h5")]) == 0
    found = [each for document in read(path) for each in document.sentences]
    assert [(each.line, each.words[1:4]) for each in found[2:]] == [(2, ("cat", ".")), (2, ("(", "she", ")"))]
    states = FeatureStates(tmp_path / "f.h5", sentences=found).lookup(found)
    assert [state.shape[1] for state in states] == [3, 5, 3, 5]
