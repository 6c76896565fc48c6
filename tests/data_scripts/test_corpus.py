"""`make_corpus`: one call from text of any kind to a corpus, raw text included."""

import gzip
import io
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from data_scripts.corpus import CorpusOptions, are_paths, make_corpus
from data_scripts.tokenize import TokenizeOptions, tokenise_files
from elmoc.corpus import Corpus
from elmoc.errors import InputError, quiet

RAW = "".join(
    f"Mr. Smith said: this is sentence {number}. He didn't!\nIt goes on, does it?\n\n" for number in range(60)
)


def words_of(corpus: Corpus, shards: str = "train") -> list[str]:
    return [corpus.lexicon[row] for shard in getattr(corpus, shards) for row in corpus.read_shard(shard)]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """The same raw text of two files, and the tokenised text of it."""
    (tmp_path / "raw.txt").write_text(RAW)
    (tmp_path / "held.txt").write_text("A last one, held out. It's short.\n")
    for name in ("raw", "held"):
        tokenise_files(TokenizeOptions(sources=[f"{tmp_path}/{name}.txt"], target=tmp_path / f"{name}.tok", workers=1))
    return tmp_path


def test_raw_text_gives_the_corpus_of_its_tokenised_text(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = CorpusOptions(held_out=(f"{texts}/held.txt",), workers=1)
    raw = make_corpus(texts / "raw.txt", texts / "a", options)
    assert f"{texts}/raw.txt, {texts}/held.txt: raw text" in capsys.readouterr().out
    assert raw.record.settings["tokenised_here"] == [f"{texts}/raw.txt", f"{texts}/held.txt"]
    tokenised = make_corpus(texts / "raw.tok", texts / "b", CorpusOptions(held_out=(f"{texts}/held.tok",), workers=1))
    assert "raw text" not in capsys.readouterr().out
    assert (raw.lexicon, raw.counts.tolist()) == (tokenised.lexicon, tokenised.counts.tolist())
    for shards in ("train", "held_out"):
        assert words_of(raw, shards) == words_of(tokenised, shards)
    assert raw.record.train_documents == tokenised.record.train_documents == 60
    said = CorpusOptions(tokenised="yes", workers=1)
    assert "said:" in make_corpus(texts / "raw.txt", texts / "c", said).lexicon, "raw text that is said to be tokenised"


def test_wrapped_text_is_not_cut_within_sentences(tmp_path: Path) -> None:
    sentence = "It came, said a single man who was in possession\nof a good fortune, and it went in want of a\nwife. "
    (tmp_path / "a.txt").write_text(sentence * 300)
    corpus = make_corpus(tmp_path / "a.txt", tmp_path / "corpus", CorpusOptions(shard_tokens=900, workers=1))
    assert len(corpus.train) > 3
    assert words_of(corpus).count(".") + words_of(corpus, "held_out").count(".") == 300
    assert words_of(corpus).count("<s>") + words_of(corpus, "held_out").count("<s>") == 300


def test_quiet_and_impossible_options(texts: Path, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    with quiet():
        make_corpus([texts / "raw.txt"], texts / "a", CorpusOptions(workers=2))
    assert capfd.readouterr() == ("", "")
    for options in (CorpusOptions(min_count=0), CorpusOptions(tokenised="perhaps"), CorpusOptions(held_out="a")):
        with pytest.raises(InputError, match=r"min_count|tokenised|held_out"):
            make_corpus(texts / "raw.txt", texts / "b", options)
    with pytest.raises(InputError, match="finished corpus"):
        make_corpus(texts / "raw.txt", texts / "a")


DOCUMENTS = [
    [f"Dr. {name} of ward {number} slept well, so far.", "It isn't much."][: 1 + number % 2]
    for number, name in enumerate(["Ames", "Bly", "Cox"] * 8)
]


@pytest.mark.parametrize("tokenised", ["no", "yes"])
@pytest.mark.parametrize(
    "form",
    [
        "folder",
        "fold*/*.txt",
        "one.txt.gz",
        "rows.jsonl",
        "rows.csv",
        "documents.jsonl",
        "-",
        "strings",
        "rows",
        "lists",
    ],
)
def test_documents_stay_documents(
    tmp_path: Path,
    form: str,
    tokenised: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A blank line, a file's end and a row's end: as many documents in a corpus, and in what `tokenize` writes."""
    field = "note" if "rows" in form else None
    texts = ["\n".join(each) for each in DOCUMENTS]
    rows: list[dict[str, object]] = [{"id": number, "note": text} for number, text in enumerate(texts)]
    without = [{"id": 98, "note": None}, {"id": 99, "note": " "}]
    (tmp_path / "folder").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / f"folder/{number:02}.txt").write_text(text)
    (tmp_path / "one.txt.gz").write_bytes(gzip.compress("\n\n \n".join(texts).encode()))
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows + without))
    (tmp_path / "rows.csv").write_text(
        "id,note\n" + "".join(f'{number},"{text}"\n' for number, text in enumerate(texts))
    )
    (tmp_path / "held.txt").write_text("A last one , held out .\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n\n".join(texts).encode())))
    documents = [{"doc_key": "x", "sentences": [line.split() for line in each]} for each in DOCUMENTS]
    (tmp_path / "documents.jsonl").write_text("\n".join(map(json.dumps, documents)))
    objects = {
        "-": "-",
        "strings": texts,
        "rows": (row for row in rows + without),
        "lists": [[line.split() for line in each] for each in DOCUMENTS],
    }
    options = CorpusOptions(
        tokenised=tokenised, held_out=(f"{tmp_path}/held.txt",), shard_tokens=9999, workers=1, field=field
    )
    if form == "folder":
        options = replace(options, workers=2)
    corpus = make_corpus(objects.get(form, tmp_path / form), tmp_path / "corpus", options)
    assert corpus.record.train_documents == len(DOCUMENTS)
    assert corpus.record.train_sentences == sum(map(len, DOCUMENTS))
    assert ("2 of 26 rows have no text" in capsys.readouterr().out) == (form in ("rows", "rows.jsonl"))
    if form not in objects:
        written = tmp_path / "text.tok"
        tokenise_files(
            TokenizeOptions(sources=[f"{tmp_path}/{form}"], target=written, tokenised=tokenised, field=field, workers=2)
        )
        again = make_corpus(written, tmp_path / "again", replace(options, tokenised="yes", field=None))
        assert (again.lexicon, words_of(again)) == (corpus.lexicon, words_of(corpus))
        assert again.record.train_documents == len(DOCUMENTS)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        (["there.txt", "missing.txt"], True),
        (["missing.txt"], True),
        (["kind=there.txt", "-"], True),
        (["no such folder/*.txt", "the*.txt"], True),
        ([Path("a b"), "there.txt"], True),
        (["It rained.", "It was late = cold.", ""], False),
        ([["It", "rained"]], False),
        ([{"text": "It rained."}], False),
        ([], False),
    ],
)
def test_a_list_of_paths_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: list, paths: bool) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.txt").write_text("It rained.\n")
    assert are_paths(given) == paths
