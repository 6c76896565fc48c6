"""`make_corpus`: one call from text of any kind to a corpus, raw text included; and the steps that processes start."""

import gzip
import io
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from data_scripts.corpus import CorpusOptions, make_corpus
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
    assert f"raw text, which is tokenised: {texts}/raw.txt, {texts}/held.txt" in capsys.readouterr().out
    assert raw.record.settings["tokenised_here"] == [f"{texts}/raw.txt", f"{texts}/held.txt"]
    tokenised = make_corpus(texts / "raw.tok", texts / "b", CorpusOptions(held_out=(f"{texts}/held.tok",), workers=1))
    assert "raw text" not in capsys.readouterr().out
    assert (raw.lexicon, raw.counts.tolist()) == (tokenised.lexicon, tokenised.counts.tolist())
    for shards in ("train", "held_out"):
        assert words_of(raw, shards) == words_of(tokenised, shards)
    assert raw.record.train_documents == tokenised.record.train_documents == 60
    said = CorpusOptions(tokenised="yes", workers=1)
    assert "said:" in make_corpus(texts / "raw.txt", texts / "c", said).lexicon, "raw text that is said to be tokenised"


def test_every_kind_of_text_gives_the_same_corpus(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (texts / "raw.tok").read_text()
    documents = [[line.split() for line in each.splitlines()] for each in text.split("\n\n")]
    lines = [json.dumps({"doc_key": str(number), "sentences": each}) for number, each in enumerate(documents)]
    (texts / "a.jsonl").write_text("\n".join(lines))
    (texts / "a.gz").write_bytes(gzip.compress(text.encode()))
    (texts / "folder").mkdir()
    (texts / "folder/a").write_text(text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    corpora = []
    for number, source in enumerate(("raw.tok", "a.jsonl", "a.gz", "folder", "ra?.tok", "-")):
        source = source if source == "-" else f"{texts}/{source}"
        options = CorpusOptions(held_out=(f"{texts}/held.tok",), shard_tokens=9999, workers=1)
        corpora.append(make_corpus(source, texts / f"corpus{number}", options))
    expected = corpora[0]
    for corpus in corpora:
        assert (corpus.lexicon, words_of(corpus)) == (expected.lexicon, words_of(expected))
        assert corpus.record.train_documents == 60
        assert "tokenised_here" not in corpus.record.settings


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


def test_an_interrupted_call_goes_on(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("data_scripts.corpus.MergedLexicon", stop)
        with pytest.raises(KeyboardInterrupt):
            make_corpus(texts / "raw.txt", texts / "a")
    (texts / "raw.txt").rename(texts / "moved.txt")
    (texts / "moved.txt").rename(texts / "raw.txt")
    assert make_corpus(texts / "raw.txt", texts / "a").types > 10


STEPS = {
    "tokenize": {"sources": ["raw.txt"], "target": "t.txt", "tokenised": "no"},
    "build_corpus": {"files": ["raw.tok"], "corpus": "c", "held_out": ["held.tok"], "min_count": 2},
    "train_fasttext": {"corpus": "c", "output": "v.bin", "dim": 5, "epochs": 1, "buckets": 50, "min_count": 1},
    "build_vectors": {"corpus": "c", "origin": "random:1:5", "name": "x", "transform": "whiten"},
    "build_subwords": {"words": "c", "corpus": "s", "units": 270},
    "write_text": {"corpus": "c", "target": "w.txt", "tokens": 50},
}


def test_each_command_is_a_step_that_a_process_can_start(
    texts: Path, monkeypatch: pytest.MonkeyPatch, error_line: Callable[[int], str]
) -> None:
    monkeypatch.chdir(texts)
    for name, options in STEPS.items():
        main = import_module(f"data_scripts.{name}").main
        given = options if name == "write_text" else {**options, "workers": 1}
        for unknown in ({"wrong_key": 1}, {}):
            content = io.BytesIO(json.dumps(given | unknown).encode())
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
            if unknown:
                assert "wrong_key" in error_line(main(["--json", "-"]))
            else:
                assert main(["--json", "-"]) == 0, name
    for made in ("t.txt", "c/corpus.json", "v.bin", "c/vectors/x.npy", "s/subwords.json", "w.txt"):
        assert Path(made).exists()
