"""Named sources: a shard holds text of one source, and the last of each is held out."""

import json
from pathlib import Path

import pytest

from data_scripts.build_corpus import main
from data_scripts.parts.sources import default_shard_tokens
from elmoc.corpus import Corpus
from elmoc.errors import InputError

BIG = ("--shard-tokens", "400")
"""Few shards, of which each takes its time."""


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of two kinds of text, in the working directory; every word names its file."""
    monkeypatch.chdir(tmp_path)
    Path("blank.txt").write_text("\n \n")
    for name, lines in (("news1", 300), ("news2", 500), ("talk", 200), ("more", 30)):
        Path(f"{name}.txt").write_text("".join(f"{name} w{number} .\n" for number in range(lines)))
    return tmp_path


def files_by_source(corpus: Corpus, split: str) -> dict[str, set[str]]:
    """Source → the files whose words its shards hold."""
    found: dict[str, set[str]] = {}
    for shard in getattr(corpus, split):
        words = {corpus.lexicon[row] for row in corpus.read_shard(shard)}
        found.setdefault(shard.source, set()).update(words & {"news1", "news2", "talk", "more"})
    return found


def test_the_last_shard_of_every_source_is_held_out(texts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # a source that is named twice is one
    assert main(["news=news1.txt", "talk=talk.txt", "news=news2.txt", "c", "--shard-tokens", "400"]) == 0
    corpus = Corpus("c")
    assert (corpus.sources, corpus.held_out_sources) == (["news", "talk"], ["news", "talk"])
    assert files_by_source(corpus, "train") == {"news": {"news1", "news2"}, "talk": {"talk"}}
    assert files_by_source(corpus, "held_out") == {"news": {"news2"}, "talk": {"talk"}}
    last = [corpus.lexicon[row] for row in corpus.read_shard(corpus.held_out[1])]
    assert last[-3:] == ["w199", ".", "</s>"]
    assert corpus.record.sources == ["news=news1.txt", "talk=talk.txt", "news=news2.txt"]
    assert "  talk: training " in capsys.readouterr().out
    named = json.loads(Path("c/corpus.json").read_text())
    assert {shard["source"] for shard in named["train"]} == {"news", "talk"}


def test_shards_are_a_twentieth_of_their_source() -> None:
    assert default_shard_tokens(1_000_000) == 50_000
    assert default_shard_tokens(10**9) == 10_000_000, "the largest there are"
    assert [default_shard_tokens(tokens) for tokens in (4000, 3000, 400, 3)] == [200, 200, 100, 1], "large or several"


def test_a_small_source_does_not_cut_the_others(texts: Path) -> None:
    Path("large.txt").write_text("some words of one more sentence .\n" * 4000)
    assert main(["large=large.txt", "small=more.txt", "c"]) == 0
    corpus = Corpus("c")
    shards = {name: [shard.tokens for shard in corpus.train if shard.source == name] for name in corpus.sources}
    assert len(shards["large"]) < 25
    assert len(shards["small"]) > 2
    assert [shard.source for shard in corpus.held_out] == ["large", "small"]
    assert set(corpus.record.settings["shard_tokens"]) == {"large", "small"}


def test_named_text_can_be_held_out(texts: Path) -> None:
    assert main(["news=news[12].txt", "talk=talk.txt", "c", "--held-out", "more=more.txt", "news=news2.txt", *BIG]) == 0
    corpus = Corpus("c")
    assert files_by_source(corpus, "train") == {"news": {"news1"}, "talk": {"talk"}}
    assert files_by_source(corpus, "held_out") == {"news": {"news2"}, "more": {"more"}}
    assert corpus.record.settings["held_out"] == ["more=more.txt", "news=news2.txt"]
    assert "held_out_a_shard_of" not in corpus.record.settings


def test_some_of_every_source_can_be_held_out(texts: Path) -> None:
    options = ["--held-out", "news=news2.txt", "--of-every-source", "--shard-tokens", "60"]
    assert main(["news=news[12].txt", "talk=talk.txt", "c", *options]) == 0
    corpus = Corpus("c")
    assert corpus.held_out_sources == ["talk", "news"]
    assert files_by_source(corpus, "held_out")["news"] == {"news2"}
    assert [shard.source for shard in corpus.held_out].count("talk") == 1
    assert corpus.record.settings["held_out"] == ["news=news2.txt"]
    assert corpus.record.settings["held_out_a_shard_of"] == ["talk"]


def test_text_is_that_of_a_corpus_without_names(texts: Path) -> None:
    for corpus, arguments in (("named", ["n=news1.txt", "n=talk.txt"]), ("plain", ["news1.txt", "talk.txt"])):
        assert main([*arguments, corpus, *BIG]) == 0
    one, other = Corpus("named"), Corpus("plain")
    assert (one.lexicon, one.counts.tolist()) == (other.lexicon, other.counts.tolist())
    for mine, theirs in zip(one.train + one.held_out, other.train + other.held_out, strict=True):
        assert (Path("named") / mine.file).read_bytes() == (Path("plain") / theirs.file).read_bytes()
    assert '"source"' not in Path("plain/corpus.json").read_text(), "as before there were names"
    assert other.sources == [""]


def test_a_file_with_an_equals_sign_in_its_name_is_a_file(texts: Path) -> None:
    for name in ("x=talk.txt", "folder=1"):
        Path("talk.txt").rename(name) if "." in name else Path(name).mkdir()
    Path("x=talk.txt").rename("folder=1/talk=2.txt")
    Path("x=1.txt").write_text("a b c\n" * 100)
    assert main(["x=1.txt", "folder=1/*.txt", "c", *BIG]) == 0
    assert Corpus("c").sources == [""]
    assert main(["t=folder=1/talk=2.txt", "d", *BIG]) == 0
    assert Corpus("d").sources == ["t"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["n=news1.txt", "talk.txt", "c"], "talk.txt is given without a name, others as NAME=PATH: name the source"),
        (["news1.txt", "c", "--held-out", "t=talk.txt"], "news1.txt is given without a name, others as NAME=PATH"),
        (["a b=news1.txt", "c"], "a b=news1.txt is neither a file nor NAME=PATH with a NAME of letters, digits, _ and"),
        (["é=news1.txt", "c"], "é=news1.txt is neither a file nor NAME=PATH"),
        (["=news1.txt", "c"], "=news1.txt is neither a file nor NAME=PATH"),
        (["n=", "c"], "n= is neither a file nor NAME=PATH"),
        (["n=none.txt", "c"], "none.txt does not exist: check the name"),
        (["n=news1.txt", "t=news1.txt", "c"], "news1.txt is named twice"),
        (["n=news1.txt", "m=more.txt", "c", "--shard-tokens", "500"], "more.txt: the text of m makes only one shard"),
        (["n=news1.txt", "b=blank.txt", "c"], "blank.txt: the input files of b hold no sentences, all their lines are"),
        (["n=news1.txt", "c", "--held-out", "b=blank.txt", "t=talk.txt"], "the held-out files of b hold no sentences"),
    ],
)
def test_bad_arguments(texts: Path, error_line, arguments: list[str], message: str) -> None:
    assert message in error_line(main(arguments))
    assert not Path("c/corpus.json").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda shards: shards[0].update(source="a b"), "source"),
        (lambda shards: shards[0].pop("source"), "some shards have a source and some have none"),
    ],
)
def test_a_damaged_record_is_refused(texts: Path, change, message: str) -> None:
    assert main(["n=news1.txt", "t=talk.txt", "c", *BIG]) == 0
    record = json.loads(Path("c/corpus.json").read_text())
    change(record["train"])
    Path("c/corpus.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=message):
        Corpus("c")
