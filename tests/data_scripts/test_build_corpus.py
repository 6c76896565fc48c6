"""`build_corpus`: makes the corpus that a plain program makes, whatever the pieces, workers and interruptions."""

import gzip
import os
import random
import signal
import sys
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType

import pytest
from data_scripts.build_corpus import main
from data_scripts.parts.shards import default_shard_tokens
from elmoc.corpus import Corpus
from tests.conftest import Fails
from tests.references import plain_corpus, plain_overlap

from data_scripts import corpus as module
from data_scripts.parts import pieces as parts
from data_scripts.parts import shards


@pytest.fixture
def text_files(tmp_path: Path) -> list[Path]:
    """A plain file, a .gz file and small files: odd white space, blank lines, no newline at the end."""
    generator = random.Random(1)
    words = [f"w{number}" for number in range(200)] + ["déjà", "“", "日本", "x\u00a0y", "A\u2028B", "tab\tbed"]
    files = []
    for number, lines in enumerate((400, 300, 3, 5, 250)):
        rows = [" ".join(generator.choices(words, k=generator.randint(1, 9))) for _ in range(lines)]
        for row in range(7, lines, 11):
            rows[row] = "" if row % 2 else " \t\r"
        text = "\n".join(["", *rows] if number == 2 else rows) + ("" if number == 3 else "\n")
        path = tmp_path / "in" / (f"{number}.txt.gz" if number == 1 else f"{number}.txt")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if number == 1 else text.encode())
        files.append(path)
    return files


def read_back(corpus: Corpus, shards) -> tuple[list[list[str]], list[int]]:
    """The sentences of the shards, and which of them start a document."""
    sentences: list[list[str]] = []
    starts = []
    for shard in shards:
        ids, documents = corpus.read_shard(shard), corpus.read_documents(shard).tolist()
        assert (len(ids), len(documents)) == (shard.tokens, shard.documents)
        assert documents[0] == 0
        first = len(sentences)
        for position, word in enumerate(corpus.lexicon[row] for row in ids):
            if word == "<s>":
                if position in documents:
                    starts.append(len(sentences))
                sentences.append([])
            elif word != "</s>":
                sentences[-1].append(word)
        assert len(sentences) - first == shard.sentences
    return sentences, starts


def content(folder: Path) -> dict[str, bytes]:
    """Every file below the folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("min_count", [1, 4])
def test_equals_the_plain_program(text_files: list[Path], tmp_path: Path, min_count: int) -> None:
    train, held_out = text_files[:4], text_files[4:]
    arguments = [*map(str, train), str(tmp_path / "c"), "--held-out", *map(str, held_out), "--workers", "1"]
    assert main([*arguments, "--min-count", str(min_count), "--shard-tokens", "500"]) == 0
    corpus = Corpus(tmp_path / "c")
    expected = plain_corpus(train, held_out, min_count)
    assert corpus.lexicon == expected.lexicon
    assert corpus.counts.tolist() == expected.counts
    assert len(corpus.train) > 4
    sentences, starts = read_back(corpus, corpus.train)
    assert sentences == expected.train
    assert set(expected.train_documents) <= set(starts)
    assert len(starts) <= len(expected.train_documents) + len(corpus.train)  # a cut document starts anew in its shard
    sentences, starts = read_back(corpus, corpus.held_out)
    assert sentences == expected.held_out
    assert set(expected.held_out_documents) <= set(starts)
    assert (corpus.lexicon[corpus.begin_id], corpus.lexicon[corpus.record.end_id]) == ("<s>", "</s>")
    assert not (tmp_path / "c" / ".work").exists()


def test_lexicon_covers_words_of_the_held_out_text_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("b b\nc\n")
    (tmp_path / "h").write_text("z c\na\n")
    assert main([str(tmp_path / "a"), str(tmp_path / "c"), "--held-out", str(tmp_path / "h")]) == 0
    corpus = Corpus(tmp_path / "c")
    assert corpus.lexicon == ["</s>", "<s>", "b", "c", "a", "z"]
    assert corpus.counts.tolist() == [2, 2, 2, 1, 0, 0]


def test_a_word_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n\ufeff \ufeff \ufeff \ufeffb\n" * 50, encoding="utf-8")
    assert main([str(tmp_path / "a"), str(tmp_path / "c")]) == 0
    assert Corpus(tmp_path / "c").lexicon == ["\ufeff", "</s>", "<s>", "a", "\ufeffb"]


def test_a_document_is_not_cut_where_another_starts_nearby(tmp_path: Path) -> None:
    text = "".join(f"w{number} a b c\n" + ("\n" if number % 5 == 4 else "") for number in range(4000))
    (tmp_path / "a.gz").write_bytes(gzip.compress(text.encode()))
    assert main([str(tmp_path / "a.gz"), str(tmp_path / "c"), "--shard-tokens", "1000"]) == 0
    corpus = Corpus(tmp_path / "c")
    assert len(corpus.train) > 10
    assert sum(shard.documents for shard in [*corpus.train, *corpus.held_out]) == 800
    assert all(500 <= shard.tokens <= 1500 for shard in [*corpus.train, *corpus.held_out])


@pytest.mark.parametrize(
    ("place", "stop_in", "call", "killed"),
    [
        (module, "number_piece", 3, True),
        (module, "MergedLexicon", 1, False),
        (shards, "save_array", 3, True),
        (module, "finish_corpus", 1, False),
    ],
)
def test_killed_or_interrupted_and_run_again(
    text_files: list[Path], tmp_path: Path, monkeypatch, place: ModuleType, stop_in: str, call: int, killed: bool
) -> None:
    """It goes on with the pieces that are there, and ends with the same corpus, as one of two workers is."""
    options = ["--shard-tokens", "300", "--workers"]
    assert main([f"{tmp_path}/in", f"{tmp_path}/whole", *options, "2"]) == 0
    command = [f"{tmp_path}/in", f"{tmp_path}/again", *options, "1"]

    def build_and_end() -> None:
        calls, real = [], getattr(place, stop_in)

        def end(*arguments, **more):
            calls.append(1)
            if len(calls) == call:
                signal.raise_signal(signal.SIGKILL if killed else signal.SIGINT)
            return real(*arguments, **more)

        setattr(place, stop_in, end)
        sys.exit(main(command))

    process = get_context("fork").Process(target=build_and_end)
    process.start()
    process.join()
    assert process.exitcode == (-signal.SIGKILL if killed else 130)
    assert not (tmp_path / "again" / "corpus.json").exists()
    kept = set((tmp_path / "again/.work").iterdir())
    made, real = [], parts.atomic_directory
    monkeypatch.setattr(parts, "atomic_directory", lambda path: made.append(path) or real(path))
    assert main(command) == 0
    assert not kept & set(made), "what is there is not made again"
    assert content(tmp_path / "again") == content(tmp_path / "whole")


def test_pieces_are_kept_only_for_the_same_input(text_files: list[Path], tmp_path: Path, monkeypatch) -> None:
    corpus, options = tmp_path / "c", ["--workers", "1", "--shard-tokens", "300"]

    def stop(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "MergedLexicon", stop)
        assert main([f"{tmp_path}/in", str(corpus), *options]) == 130
        pieces = set(os.listdir(corpus / ".work"))
        before = text_files[3].stat()
        text_files[3].write_text("entirely new words\n")
        os.utime(text_files[3], ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        assert main([f"{tmp_path}/in", str(corpus), *options]) == 130
        (tmp_path / "dev").write_text("some words that nobody wrote\n")
        assert main([f"{tmp_path}/in", f"{tmp_path}/d", *options, "--leave-out", f"{tmp_path}/dev"]) == 130
    again = set(os.listdir(corpus / ".work"))
    assert pieces < again
    assert not again & set(os.listdir(tmp_path / "d/.work")), "what is left out is part of what a piece is"
    assert main([f"{tmp_path}/in", str(corpus), *options]) == 0
    assert "entirely" in Corpus(corpus).lexicon


@pytest.mark.parametrize(
    ("name", "data", "named"),
    [
        ("a.txt", b"one\n\ntwo <s> three\n", "two <s> three"),
        ("a.txt", b"one\n\ntwo\0\n", "a.txt holds"),
        ("a.txt", b"\n \n\t\n", "no sentence"),
        ("a.txt", b"one sentence only\n", "one shard"),
        ("a.txt.gz", gzip.compress(random.Random(0).randbytes(1000).hex().encode() + b"\n", mtime=0)[:-20], "a.txt.gz"),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_bad_text_is_one_line(
    tmp_path: Path, error_line: Fails, name: str, data: bytes, named: str, workers: str
) -> None:
    (tmp_path / name).write_bytes(data)
    assert named in error_line(main([str(tmp_path / name), str(tmp_path / "c"), "--workers", workers]))
    assert not (tmp_path / "c" / "corpus.json").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.txt", "c"],
        ["a.txt", "c", "--held-out", "a.txt"],
        ["a.txt", "other"],
        ["a.txt", "a.txt"],
        ["other/*", "other"],
        ["n=a.txt", "b.txt", "c"],
    ],
)
def test_bad_arguments(tmp_path: Path, monkeypatch, error_line: Fails, arguments: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt"):
        Path(name).write_text("a b\nc d\n" * 50)
    Path("other").mkdir()
    Path("other/file").write_text("mine")
    before = content(tmp_path), sorted(os.listdir())
    error_line(main(arguments))
    assert (content(tmp_path), sorted(os.listdir())) == before


def test_a_finished_corpus_is_refused(tmp_path: Path, error_line: Fails) -> None:
    (tmp_path / "a").write_text("a b\nc d\n" * 50)
    assert main([str(tmp_path / "a"), str(tmp_path / "c")]) == 0
    before = content(tmp_path / "c")
    (tmp_path / "c/.work/piece").mkdir(parents=True)  # of a build that was killed at its end
    error_line(main([str(tmp_path / "a"), str(tmp_path / "c")]))
    assert content(tmp_path / "c") == before
    assert not (tmp_path / "c/.work").exists()


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of two kinds of text, in the working directory; every word names its file."""
    monkeypatch.chdir(tmp_path)
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


def test_a_shard_holds_text_of_one_source(texts: Path) -> None:
    # a source that is named twice is one
    assert main(["news=news1.txt", "talk=talk.txt", "news=news2.txt", "c", "--shard-tokens", "400"]) == 0
    corpus = Corpus("c")
    assert (corpus.sources, corpus.held_out_sources) == (["news", "talk"], ["news", "talk"])
    assert files_by_source(corpus, "train") == {"news": {"news1", "news2"}, "talk": {"talk"}}
    assert files_by_source(corpus, "held_out") == {"news": {"news2"}, "talk": {"talk"}}
    assert corpus.record.sources == ["news=news1.txt", "talk=talk.txt", "news=news2.txt"]


def test_a_small_source_has_shards_of_its_own_size(texts: Path) -> None:
    assert [default_shard_tokens(tokens) for tokens in (10**9, 10**6, 4000, 400, 3)] == [10**7, 50_000, 200, 100, 1]
    Path("large.txt").write_text("some words of one more sentence .\n" * 4000)
    assert main(["large=large.txt", "small=more.txt", "c"]) == 0
    corpus = Corpus("c")
    assert len([shard for shard in corpus.train if shard.source == "large"]) < 25
    assert len([shard for shard in corpus.train if shard.source == "small"]) > 2
    assert set(corpus.record.settings["shard_tokens"]) == {"large", "small"}


def test_a_source_without_held_out_files_has_ends_held_out(texts: Path) -> None:
    options = ["--held-out", "news=news2.txt", "more=more.txt", "--shard-tokens", "60"]
    assert main(["news=news[12].txt", "talk=talk.txt", "c", *options]) == 0
    corpus = Corpus("c")
    assert files_by_source(corpus, "train")["news"] == {"news1"}
    held_out = files_by_source(corpus, "held_out")
    assert held_out == {"news": {"news2"}, "more": {"more"}, "talk": {"talk"}}
    assert corpus.record.settings["held_out"] == ["news=news2.txt", "more=more.txt"]


def test_with_leave_out_it_is_the_corpus_of_a_filtered_text(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    generator = random.Random(3)
    known = []
    for name in ("news", "talk"):
        lines = [" ".join(generator.choices("abcdefghi", k=generator.randint(0, 14))) for _ in range(400)]
        known += [line.upper().split() for line in lines if generator.random() < 0.1]
        lines[0] = lines[-1] = f"once more with words of {name} ."
        Path(f"{name}.txt").write_text("\n".join(lines) + "\n")
    Path("dev").write_text("".join(" ".join(words) + " .\n" for words in known))
    options = ["--held-out", "t=talk.txt", "--leave-out", "dev", "--shard-tokens", "900", "--workers", "2"]
    assert main(["t=news.txt", "c", *options]) == 0
    left_out = 0
    for name in ("news", "talk"):
        lines = Path(f"{name}.txt").read_text().split("\n")
        kept = [line for line in lines if not plain_overlap(line.split(), known)]
        left_out += len(lines) - len(kept)
        Path(f"{name}.filtered").write_text("\n".join(kept))
    expected, corpus = plain_corpus([Path("news.filtered")], [Path("talk.filtered")], 1), Corpus("c")
    assert (corpus.lexicon, corpus.counts.tolist()) == (expected.lexicon, expected.counts)
    for split in ("train", "held_out"):
        sentences, starts = read_back(corpus, getattr(corpus, split))
        assert sentences == getattr(expected, split)
        assert set(getattr(expected, f"{split}_documents")) <= set(starts)
    assert corpus.record.settings["left_out_sentences"] == {"t": left_out}
    assert left_out > 20
