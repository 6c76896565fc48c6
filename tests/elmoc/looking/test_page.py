"""The page of a word's uses: what a browser finds in it, by `elmoc plot … -o FILE.html`."""

import html
import json
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elmoc.__main__ import main
from elmoc.looking.uses import Use

pytest.importorskip("plotly", reason="the extra plots is not installed")
from elmoc.looking.page import cluster_names, find_clusters

LINES = [
    *(f"we sat on the left bank of the river {name} ." for name in "abcdefgh"),
    *(f"the bank lent money to firm {name} ." for name in "abcdefgh"),
    "a <script>alert(1)</script> & bank </script> &lt; $x$ %{y} .",
]


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("<b>text.txt").write_text("\n".join(LINES) + "\n")
    return "<b>text.txt"


def read_page(path: Path) -> tuple[str, list[dict[str, Any]], dict[str, Any]]:
    """The page, and the traces and the layout that its script draws."""
    page = path.read_text(encoding="utf-8")
    call = page[page.rindex("Plotly.newPlot(") :]
    start = call.index("[")
    decoder = json.JSONDecoder()
    traces, end = decoder.raw_decode(call, start)
    layout, _ = decoder.raw_decode(call, call.index("{", end))
    return page, traces, layout


def without_marks(shown: str) -> str:
    """What Plotly draws of a text of its own HTML."""
    return html.unescape(re.sub(r"</?b>", "", shown.replace("<br>", " ")))


def test_a_page_shows_each_sentence_by_layers_and_clusters(
    text: str, model_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["plot", str(model_path), text, "--word", "bank", "--layer", "1", "-o", "bank.html"]
    assert main(command) == 0
    assert "bank.html: 17 of 17 uses" in capsys.readouterr().out
    page, traces, layout = read_page(Path("bank.html"))
    [menu] = layout["updatemenus"]
    labels = [button["label"] for button in menu["buttons"]]
    assert labels == ["layer 0", "layer 1", "layer 2", "layer average"]
    assert labels[menu["active"]] == "layer 1", "what was asked for is shown first"
    shown = [button["args"][0]["visible"] for button in menu["buttons"]]
    assert [trace["visible"] for trace in traces] == shown[1]
    assert np.sum(shown, axis=0).tolist() == [1] * len(traces), "each trace is of one layer"
    for visible in shown:
        of_layer = [trace for trace, is_on in zip(traces, visible, strict=True) if is_on]
        found = [each for trace in of_layer for each in trace["hovertext"]]
        assert sorted(map(without_marks, found)) == sorted(LINES)
        assert all(each.count("<b>bank</b>") == each.count("<b>") == 1 for each in found)
        assert len({trace["marker"]["color"] for trace in of_layer}) == len(of_layer)
        for trace in of_layer:
            words, count = re.fullmatch(r"(.*) \(([0-9]+)\)", without_marks(trace["name"])).groups()  # type: ignore[union-attr]
            assert int(count) == len(trace["hovertext"])
            near = " ".join(map(without_marks, trace["hovertext"])).split()
            assert set(words.split(", ")) <= set(near)
    assert [each["name"].endswith(" (17)") for each in traces if each["meta"] == "0"] == [True], "one vector everywhere"
    # No text of the user is read as HTML, by the browser or by Plotly.
    assert "&lt;b&gt;text.txt" in layout["title"]["text"]
    assert "alert(1)</script>" not in page
    assert all("<script" not in each for trace in traces for each in (*trace["hovertext"], trace["name"]))
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=.?http", page), "it needs no network"
    assert "prefers-color-scheme: dark" in page
    main(command)
    assert Path("bank.html").read_text(encoding="utf-8") == page, "the same each time"


@pytest.mark.parametrize("name", ["bank.HTML", "bank.html"])
def test_a_page_is_written_whole_or_not_at_all(
    text: str, model_path: Path, error_line: Callable[[int], str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(figure: object, path: Path, **options: object) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("plotly.graph_objects.Figure.write_html", fail)
    assert name in error_line(main(["plot", str(model_path), text, "--word", "bank", "-o", name]))
    assert sorted(path.name for path in Path().iterdir()) == ["<b>text.txt", "model"]


def test_bad_input_is_one_line(text: str, model_path: Path, error_line: Callable[[int], str]) -> None:
    command = ["plot", str(model_path), text, "-o", "bank.html", "--word"]
    assert "3 uses" in error_line(main([*command, "sat", "--most", "2"]))
    assert "unheard" in error_line(main([*command, "unheard"]))
    assert "--layer" in error_line(main([*command, "bank", "--layer", "9"]))


@pytest.mark.parametrize("missing", ["plotly", "sklearn"])
def test_without_a_library(
    text: str, model_path: Path, error_line: Callable[[int], str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.delitem(sys.modules, "elmoc.looking.page")
    part = {"plotly": "plotly.graph_objects", "sklearn": "sklearn.cluster"}[missing]
    monkeypatch.setitem(sys.modules, part, None)
    assert f"{part} is not installed" in error_line(
        main(["plot", str(model_path), text, "--word", "bank", "-o", "b.html"])
    )


def test_clusters_are_those_that_lie_together() -> None:
    middles = np.array([[0, 0], [4, 0], [0, 4]]).repeat(20, axis=0)
    labels = find_clusters(middles + np.random.default_rng(0).normal(scale=0.3, size=middles.shape))
    assert sorted(labels.reshape(3, 20).min(1)) == [0, 1, 2]
    assert (labels.reshape(3, 20) == labels[::20, None]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_clusters(np.zeros((5, 2))).tolist() == [0] * 5
        assert find_clusters(middles.astype(float)).max() == 2
        assert find_clusters(middles[19:22].astype(float)).tolist() in ([0, 1, 1], [1, 0, 0])


def test_names_are_words_that_are_more_common_in_a_cluster() -> None:
    sentences = [
        *(f"the sandy river bank of the {number} Muddy river" for number in range(20)),
        *(f"far away and long ago the savings bank of the {number}" for number in range(10)),
        *(f"the blood bank of the {number}" for number in range(3)),
    ]
    uses = [Use(tuple(each.split()), each.split().index("bank")) for each in sentences]
    labels = np.repeat([0, 1, 2], [20, 10, 3])
    first, second, third = [each.split(", ") for each in cluster_names(uses, labels)]
    assert third[0] == "blood", "words of few sentences first"
    assert {"river", "sandy", "muddy"} < set(first)
    assert "savings" in second
    assert "far" not in second, "it is too far away"
    # Where there is one cluster, the commonest that are no function words.
    assert cluster_names(uses, np.zeros(33, dtype=int))[0].startswith("blood")
