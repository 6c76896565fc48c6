"""The coreference task: chains are read, learned, and written as they are read."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from downstream.inputs.probe_inputs import ProbeInputs
from downstream.inputs.sources import FeatureStates, InputSources, WordTable
from downstream.tasks.coref.model import CorefDocument, CorefProbe
from downstream.tasks.coref.spans import CorefSettings
from downstream.tasks.coref.task import TASK
from tests.downstream.conftest import write_random_features
from torch import Tensor

PEOPLE = ["Ada", "Bea", "Cid", "Dot", "Eve", "Fay", "Gus", "Hal", "Ivy", "Jon"]


def conll(name: str, sentences: str, *, part: int = 0, speakers: str = "-") -> str:
    """`word(cell word(cell` lines → a document in columns; `speakers` is one letter a sentence."""
    lines = [f"#begin document ({name}); part {part:03}"]
    for number, sentence in enumerate(sentences.splitlines()):
        for place, item in enumerate(sentence.split()):
            word, _, cell = item.partition("/")
            speaker = speakers[number % len(speakers)]
            row = [name, str(part), str(place), word, "XX", "*", "-", "-", "-", speaker, "*", cell or "-"]
            lines.append("\t".join(row))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


def ten_documents() -> str:
    """In each, a person is named and then spoken of as `she`, and so is a person's cat, as `it`."""
    documents = []
    for one, other in zip(PEOPLE, PEOPLE[1:] + PEOPLE[:1], strict=True):
        lines = [
            f"{one}/(1) met the/(2 cat/2) of {other} .",
            "she/(1) fed it/(2) .",
            f"the/(2 cat/2) left {one}/(1) .",
            "Stop",
        ]
        documents.append(conll(f"nw/{one}", "\n".join(lines)))
    return "".join(documents)


def read(path: Path) -> list[CorefDocument]:
    return TASK.read(path, TASK.reader, training=False)


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    """A file of ten documents."""
    path = tmp_path / "ten.gold_conll"
    path.write_text(ten_documents(), encoding="utf-8")
    return path


def test_chains_are_read_through_a_document(tmp_path: Path) -> None:
    path = tmp_path / "two.conll.gz"
    text = conll(
        "bn/cnn/00/cnn_0000",
        "``/- He/(12) saw/- -LRB-/- the/(3|(0 dog/(12) 's/0) tail/3) -RRB-\nIt/(0) wagged/- it/(3)",
        speakers="AB",
    )
    text += conll("GUM_academic_art", "The/(7|(7|(8 a/7) b/7)|8) c/(7)", part=3)
    text += conll("2489_moby_dick", "Nobody/- came")
    path.write_bytes(gzip.compress(text.encode()))
    first, second, third = documents = read(path)
    assert first.chains == [[(1, 1), (5, 5)], [(4, 7), (11, 11)], [(4, 6), (9, 9)]]
    assert second.chains == [[(0, 1), (0, 2), (3, 3)], [(0, 2)]], "nested in one chain; a span of two chains"
    assert third.chains == []
    assert first.sentences[0].words == ('"', "He", "saw", "(", "the", "dog", "'s", "tail", ")")
    assert [(sentence.line, len(sentence.words)) for sentence in first.sentences] == [(2, 9), (12, 3)]
    assert first.speakers == ["A"] * 9 + ["B"] * 3
    assert [document.genre for document in documents] == ["bn", "academic", ""]
    assert TASK.sentences(first) == first.sentences
    assert TASK.vocabulary(documents) == {"genres": ["academic", "bn"], "speakers": True}
    assert TASK.vocabulary([second]) == {"genres": [], "speakers": False}, "one genre tells nothing"


def test_chains_stand_in_the_order_in_which_the_official_scorer_numbers_them(tmp_path: Path) -> None:
    path = tmp_path / "f.conll"
    path.write_text(conll("d", "a/(5|(2)|(2) b/(9 c/5)|9)|(2) d/(7)|(5)"))
    assert read(path)[0].chains == [[(0, 0), (2, 2)], [(0, 2), (3, 3)], [(1, 2)], [(3, 3)]], "2, 5, 9, 7"


def test_five_columns_are_enough(tmp_path: Path) -> None:
    path = tmp_path / "five.conll"
    rows = ["Ona (3)", "lost -", "her (4|(3)", "old -", "key 4)", "", "It (4)"]
    lines = [f"d 0 {place} {row}" if row else "" for place, row in zip((0, 1, 2, 3, 4, 0, 0), rows, strict=True)]
    path.write_text("\n".join(["#begin document (d);", *lines, "", "#end document", ""]))
    (document,) = read(path)
    assert document.chains == [[(0, 0), (2, 2)], [(2, 4), (5, 5)]]
    assert (document.speakers, [len(each.words) for each in document.sentences]) == (["-"] * 6, [5, 1])
    written = TASK.format_prediction(document, [[(2, 4), (5, 5)]]).splitlines()
    assert written[3].split() == ["d", "0", "2", "her", "(0"]


@pytest.mark.parametrize(
    ("sentences", "key"),
    [("He/(1) saw/(x)", ", line 3"), ("He/(1) saw/(2\nit/2)", ", line 3"), ("He/(1) saw/(2) it", "no chain")],
)
def test_damaged_chains(tmp_path: Path, fails: Callable[..., str], sentences: str, key: str) -> None:
    path = tmp_path / "bad.conll"
    path.write_text(conll("d", sentences))
    assert key in fails("coref", "--train", path, "--dev", path, "--vectors", "random:1:4")


def test_counts_with_and_without_singletons(tmp_path: Path) -> None:
    path = tmp_path / "f.conll"
    path.write_text(conll("d", "a/(1) b/(2) c/(1) d/(3) e/(1)"))
    (document,) = read(path)
    metrics = TASK.metrics(TASK.count(document, [[(0, 0), (2, 2)]]))
    assert {name: round(float(value), 3) for name, value in metrics.items()} == {
        "mean F1": round((200 / 3 + 100 * 2 * 1 * (4 / 9) / (1 + 4 / 9) + 80) / 3, 3),
        "MUC F1": 66.667,
        "B³ F1": round(100 * 2 * (4 / 9) / (1 + 4 / 9), 3),
        "CEAFφ4 F1": 80.0,
        "mentions F1": 80.0,
        "mean F1 with singletons": round((200 / 3 + 100 * 2 * (4 / 15) / (1 + 4 / 15) + 40) / 3, 3),
    }
    many = np.stack([TASK.count(document, [[(0, 0), (2, 2)]]), TASK.count(document, document.chains)])
    assert TASK.metrics(many)["mean F1 with singletons"][1] == 100


def test_written_chains_are_read_back(tmp_path: Path) -> None:
    path, written = tmp_path / "f.conll", tmp_path / "out" / "g.conll"
    path.write_text(
        conll("d", "a/(5 b/- c/5)\nd/- e/- f/(5)", speakers="AB") + conll("d", "x/- y/-", part=12), encoding="utf-8"
    )
    documents = read(path)
    generator = np.random.default_rng(0)
    for _ in range(30):
        spans = [(0, 2), (0, 0), (1, 2), (1, 1), (3, 5), (3, 4), (3, 3), (4, 4)]  # nested, not crossing
        numbers = generator.integers(0, 4, size=len(spans))
        predicted = [[span for span, own in zip(spans, numbers, strict=True) if own == number] for number in range(4)]
        TASK.write_predictions(written, documents, [predicted, []])
        first, second = read(written)
        assert {frozenset(chain) for chain in first.chains} == {frozenset(chain) for chain in predicted if chain}
        assert second.chains == []
        assert [sentence.words for sentence in first.sentences] == [("a", "b", "c"), ("d", "e", "f")]
        assert first.speakers == documents[0].speakers
        assert second.document.heading == "#begin document (d); part 012"
    TASK.write_predictions(written, documents, [document.chains for document in documents])
    text = path.read_text().replace("(5", "(0").replace("5)", "0)")
    assert written.read_text() == text


def tiny_probe(documents: list[CorefDocument], sources: InputSources | None = None, **changes: float) -> CorefProbe:
    torch.manual_seed(0)
    words = WordTable("random:1:6", sentences=[sentence for document in documents for sentence in document.sentences])
    settings = CorefSettings(**{**TASK.small.__dict__, "hidden_size": 4, "feed_forward_size": 5, **changes})
    inputs = ProbeInputs(sources or InputSources(words=words, states=None))
    probe = TASK.model(inputs=inputs, settings=settings, **TASK.vocabulary(documents))
    assert isinstance(probe, CorefProbe)
    return probe


def test_heads_are_word_vectors_at_unit_length_beside_states(ten: Path, tmp_path: Path) -> None:
    documents = read(ten)[:2]
    sentences = [sentence for document in documents for sentence in document.sentences]
    write_random_features(tmp_path / "f.h5", list({each.words: list(each.words) for each in sentences}.values()))
    words = WordTable("random:1:6", "random:2:3", sentences=sentences)
    states = FeatureStates(tmp_path / "f.h5", sentences=sentences)
    probe = tiny_probe(documents, InputSources(words=words, states=states), head_size=0, lexical_dropout=0.0)
    seen: list[tuple[Tensor, Tensor, Tensor, int]] = []
    probe.spans.register_forward_pre_hook(lambda _, arguments: seen.append(arguments))
    probe.eval().loss(documents[:1])
    rows = [probe.inputs([each])[0] for each in documents[0].sentences]
    expected = torch.cat([probe.inputs.with_unit_words(each)[0, :, 12:] for each in rows]) / 2**0.5
    torch.testing.assert_close(seen[0][1], expected)


def test_training_reads_windows_of_a_document(ten: Path) -> None:
    documents = read(ten)[:1]
    probe = tiny_probe(documents, training_sentences=2, head_size=3, dropout=0.0, lexical_dropout=0.0, lstm_dropout=0.0)
    assert probe.heads
    assert probe.heads.out_features == 3
    losses = {round(probe.loss(documents).item(), 4) for _ in range(20)}
    assert len(losses) == 3, "three windows of two sentences of four"
    whole = tiny_probe(documents, head_size=0, coupled=True)
    seen: list[tuple[Tensor, Tensor, Tensor, int]] = []
    whole.spans.register_forward_pre_hook(lambda _, arguments: seen.append(arguments))
    whole.eval().loss(documents)
    torch.testing.assert_close(seen[0][1].norm(dim=1), torch.ones(len(documents[0].speakers)))
    probe.eval()
    assert len({probe.loss(documents).item() for _ in range(3)}) == 1, "all of the document"


def of_genre(genre: str, document: CorefDocument) -> CorefDocument:
    return replace(document, document=replace(document.document, heading=f"#begin document ({genre}/x)"))


@pytest.mark.parametrize("depth", [1, 2])
def test_no_weight_is_without_use(ten: Path, depth: int) -> None:
    (first, second, *_) = read(ten)
    documents = [first, replace(of_genre("bn", second), speakers=["A"] * len(second.speakers))]
    probe = tiny_probe(documents, depth=depth)
    assert len(probe.antecedents.features) == 3
    probe.loss(documents).backward()
    assert [name for name, weight in probe.named_parameters() if weight.grad is None] == []


def test_speakers_and_genre_of_a_window(ten: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (first, second, *_) = read(ten)
    speakers = [*"XYZXYZX", *"ABBA", *"ABCCB", "A"]  # of sentences of 7, 4, 5 words and one
    document = replace(of_genre("nw", first), speakers=speakers)
    other = of_genre("bn", second)
    probe = tiny_probe([document, other], span_ratio=3.0, training_sentences=2)
    assert probe.training
    seen: list[tuple[Tensor, Tensor, Tensor, int]] = []
    probe.antecedents.register_forward_pre_hook(lambda _, arguments: seen.append(arguments))
    monkeypatch.setattr("downstream.tasks.coref.model.torch.randint", lambda bound, size: torch.tensor(1))
    mentions, _, _ = probe.score(document, range(1, 3))
    assert {start for start, _ in mentions} == set(range(7, 16)), "words are those of the document"
    numbers = ["ABCXYZ".index(speaker) for speaker in speakers]
    assert any(numbers[start] != numbers[end] for start, end in mentions)
    assert seen[0][2].tolist() == [numbers[start] for start, _ in mentions]
    probe.loss([document])
    assert set(seen[1][2].tolist()) == {0, 1, 2}, "the window that training draws"
    for one in (other, of_genre("xx", document)):
        probe.score(one, range(1))
    assert [arguments[3] for arguments in seen] == [2, 2, 1, 0], "bn, nw, and 0 for others"
