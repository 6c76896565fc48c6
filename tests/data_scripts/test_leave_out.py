"""Leaving out: a corpus with `--leave-out` is that of a text without the sentences that overlap."""

import os
import random
from pathlib import Path

import pytest

from data_scripts import build_corpus as module
from data_scripts.build_corpus import main
from elmoc.corpus import Corpus
from tests.data_scripts.test_build_corpus import content, read_back
from tests.references import plain_corpus, plain_overlap


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[list[str]]]:
    """Text of two sources in the working directory, and what to leave out: sentences from the whole of it."""
    monkeypatch.chdir(tmp_path)
    generator = random.Random(3)
    known = []
    for name in ("news", "talk"):
        lines = [" ".join(generator.choices("abcdefghi", k=generator.randint(0, 14))) for _ in range(400)]
        known += [line.upper().split() for line in lines if generator.random() < 0.1]
        lines[0] = lines[-1] = f"once more with words of {name} ."
        Path(f"{name}.txt").write_text("\n".join(lines) + "\n")
    known.append(["once", "more", "with", "words", "of", "news"])
    Path("dev").mkdir()
    Path("dev/one").write_text("".join(" ".join(words) + " .\n" for words in known[:20]))
    Path("dev/two").write_text("".join(" ".join(words) + "\n" for words in known[20:]))
    return ["news=news.txt", "--held-out", "talk=talk.txt", "--leave-out", "dev", "--shard-tokens", "900"], known


def test_equals_the_corpus_of_a_filtered_text(texts, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, known = texts
    assert main([arguments[0], "c", *arguments[1:], "--workers", "2"]) == 0
    left_out = {}
    for name in ("news", "talk"):
        lines = Path(f"{name}.txt").read_text().split("\n")
        overlapping = {line for line in lines if plain_overlap(line.split(), known)}
        left_out[name] = sum(line in overlapping for line in lines)
        Path(f"{name}.filtered").write_text("\n".join(line for line in lines if line not in overlapping))
    expected = plain_corpus([Path("news.filtered")], [Path("talk.filtered")], 1)
    corpus = Corpus("c")
    assert corpus.lexicon == expected.lexicon
    assert corpus.counts.tolist() == expected.counts
    for split in ("train", "held_out"):
        sentences, starts = read_back(corpus, getattr(corpus, split))
        assert sentences == getattr(expected, split)
        assert set(getattr(expected, f"{split}_documents")) <= set(starts)
        assert len(starts) <= len(getattr(expected, f"{split}_documents")) + len(getattr(corpus, split))
    assert corpus.record.settings["left_out_sentences"] == left_out
    assert min(left_out.values()) > 10
    assert list(corpus.record.settings["leave_out"]) == ["dev/one", "dev/two"]
    shown = f"dev/one, dev/two: {left_out['news']:,} of news, {left_out['talk']:,} of talk"
    assert f"sentences left out, since they overlap with those of {shown}\n" in capsys.readouterr().out


def test_interrupted_and_run_again(texts, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments, _ = texts
    assert main([arguments[0], "whole", *arguments[1:], "--workers", "1"]) == 0

    def stop(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "merge_lexicons", stop)
        assert main([arguments[0], "again", *arguments[1:]]) == 130
    pieces = set(os.listdir("again/.work"))
    assert main([arguments[0], "again", *arguments[1:]]) == 0
    assert content(Path("again")) == content(Path("whole"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "merge_lexicons", stop)
        assert main([arguments[0], "other", *[each.replace("dev", "dev/one") for each in arguments[1:]]]) == 130
    assert not pieces & set(os.listdir("other/.work")), "what is left out is part of what a piece is"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--leave-out", "none"], "none does not exist: check the name"),
        (["--leave-out", "bad"], "bad, line 2: byte 0xff is not valid UTF-8"),
        (["--leave-out", "small"], "all their lines are blank or left out: add some text"),
    ],
)
def test_bad_arguments(texts, error_line, options: list[str], message: str) -> None:
    Path("bad").write_bytes(b"a b\n\xff\n")
    Path("small").write_text("once more with words of talk\n")
    assert message in error_line(main(["small", "c", "--held-out", "news.txt", *options]))


@pytest.mark.parametrize("content", ["", "\n\n", "It\tPRP\nrained\tVBD\n.\t.\n\n", "It rained all day . .\n"])
def test_a_file_by_which_nothing_can_be_left_out_is_refused(texts, error_line, content: str) -> None:
    Path("dev/three").write_text(content)
    message = "dev/three: no line of it has 5 words, so that nothing could be left out by it: give --leave-out"
    assert message in error_line(main(["news.txt", "c", "--leave-out", "dev"]))
    assert not Path("c").exists()


@pytest.mark.parametrize(
    "content",
    [
        "(3 (2 It) (4 (4 (2 's) (3 (2 a) (4 lovely))) (2 film)))\n(2 (2 It) (2 rained))\n",
        "( (S\n    (NP (DT The) (NN cat))\n    (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat))))\n    (. .)))\n",
    ],
)
def test_bracketed_trees_are_refused(texts, error_line, content: str) -> None:
    Path("trees").write_text(content)
    message = error_line(main(["news.txt", "c", "--leave-out", "trees"]))
    assert "trees holds bracketed trees, whose labels and brackets are between the words" in message
    assert "`python -m downstream sentences TASK FILE`" in message
    assert not Path("c").exists()
    for other in (f"It rained .\n{content}( It rained all day long . )\n", "( It rained all day long . )\n"):
        Path("trees").write_text(other)
        assert len(list(module._sentences_of(Path("trees")))) == other.count("\n")


def test_a_file_to_leave_out_that_is_no_text_is_refused(texts, error_line) -> None:
    Path("dev.jsonl").write_text('{"text": "It rained all day long ."}\n' * 9)
    assert "dev.jsonl holds JSON lines, not text" in error_line(main(["news.txt", "c", "--leave-out", "dev.jsonl"]))
