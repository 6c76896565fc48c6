"""`build_corpus`: makes the corpus that a plain program makes, whatever the pieces, workers and interruptions."""

import gzip
import json
import os
import random
import re
from pathlib import Path

import pytest

from data_scripts import build_corpus as module
from data_scripts.build_corpus import main
from data_scripts.parts.text_pieces import Segment, cut_pieces, read_blocks
from data_scripts.tokenize import main as tokenize
from elmoc.corpus import Corpus
from tests.references import plain_corpus


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
    assert (corpus.lexicon[corpus.begin_id], corpus.lexicon[corpus.end_id]) == ("<s>", "</s>")
    assert not (tmp_path / "c" / ".work").exists()


def test_lexicon_covers_words_of_the_held_out_text_alone(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("b b\nc\n")
    (tmp_path / "h").write_text("z c\na\n")
    assert main([str(tmp_path / "a"), str(tmp_path / "c"), "--held-out", str(tmp_path / "h")]) == 0
    corpus = Corpus(tmp_path / "c")
    assert corpus.lexicon == ["</s>", "<s>", "b", "c", "a", "z"]
    assert corpus.counts.tolist() == [2, 2, 2, 1, 0, 0]


@pytest.mark.parametrize(
    ("line", "warned"),
    [
        ("Well, he said: no.", True),
        ("Well , he said : no .", False),
        ("यह घर है।", True),
        ("यह घर है ।", False),
        ("Kitabu maji jana anasoma maji.", True),
        ("Kitabu maji jana anasoma maji .", False),
    ],
)
def test_a_text_that_is_not_tokenised_is_noticed(tmp_path: Path, capfd, line: str, warned: bool) -> None:
    (tmp_path / "a").write_text(f"{line}\n" * 50)
    assert main([str(tmp_path / "a"), str(tmp_path / "c")]) == 0
    assert (
        "as in text that is not tokenised: `python -m data_scripts.tokenize --tokenised no`" in capfd.readouterr().err
    ) == warned


def test_each_raw_file_is_named_wherever_it_is_given(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("news", "talk", "held", "other"):
        Path(name).write_text(f"Kitabu maji jana anasoma {name} .\n" * 60)
    for number, raw in enumerate(("talk", "held", "other")):
        text = Path(raw).read_text()
        Path(raw).write_text(text.replace(" .", "."))
        arguments = ["a=news", "b=talk", f"c{number}", "--held-out", "a=held", "--leave-out", "other"]
        assert main([*arguments, "--workers", "1"]) == 0
        (warning,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith("warning"))
        assert f"of the words of {raw} end in a comma or another mark, as in text that is not tokenised" in warning
        Path(raw).write_text(text)
    for raw in ("talk", "held"):
        Path(raw).write_text("Well, he said: no.\n" * 50)
    assert main(["a=news", "b=talk", "c", "--held-out", "a=held", "--workers", "1"]) == 0
    assert "warning: 50.0% of the words of talk, held end in a comma" in capfd.readouterr().err


def test_text_that_is_raw_further_on_is_noticed(tmp_path: Path, capfd) -> None:
    tokenised, raw = "Kitabu , maji jana anasoma maji .\n", "Kitabu, maji jana anasoma maji.\n"
    (tmp_path / "a").write_text("Yahoo! sat .\n" + tokenised * 4000 + raw * 1000)
    (tmp_path / "other").write_text("Kitabu, he sat down there.\n" * 50)
    assert main([str(tmp_path / "a"), str(tmp_path / "c")]) == 0
    (warning,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith("warning"))
    assert re.match(rf"warning: 3\.\d% of the words of {tmp_path}/a end in a comma or another mark", warning)
    assert main([str(tmp_path / "a"), str(tmp_path / "e"), "--leave-out", str(tmp_path / "other")]) == 0
    about_other, about_a = (line for line in capfd.readouterr().err.splitlines() if line.startswith("warning"))
    assert f"of the words of {tmp_path}/other end in" in about_other
    assert about_a == warning
    (tmp_path / "a").write_text("Yahoo! sat .\n" + tokenised * 4000 + raw * 10)
    assert main([str(tmp_path / "a"), str(tmp_path / "d")]) == 0
    assert "warning" not in capfd.readouterr().err


def test_short_files_are_raw_together(tmp_path: Path, capfd) -> None:
    (tmp_path / "in").mkdir()
    for number in range(20):
        (tmp_path / f"in/{number:02}").write_text("It rained, and he left.\n")
        (tmp_path / f"in/none{number}").write_text("It rained . He left .\n" * 3)
    assert main([f"{tmp_path}/in", f"{tmp_path}/c", "--workers", "1"]) == 0
    warning = f"warning: 40.0% of the words of {tmp_path}/in/00, {tmp_path}/in/01, {tmp_path}/in/02 and 17 more end in"
    assert warning in capfd.readouterr().err


def test_text_that_is_none_is_refused_or_named(tmp_path: Path, capfd) -> None:
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / name).write_text("今天天气很好\n" * 50)
    (tmp_path / "held").write_text("<html><p>It rained .</p>\n")
    assert main([f"{tmp_path}/in", f"{tmp_path}/c", "--held-out", f"{tmp_path}/held"]) == 0
    first, second = (line for line in capfd.readouterr().err.splitlines() if line.startswith("warning"))
    assert first.startswith(f"warning: {tmp_path}/in/a, {tmp_path}/in/b: this looks like text without spaces")
    assert second.startswith(f"warning: {tmp_path}/held: this looks like HTML or XML")
    (tmp_path / "in/b").write_text('{"text": "It rained ."}\n' * 50)
    assert main([f"{tmp_path}/in", f"{tmp_path}/d"]) == 1
    assert f"error: {tmp_path}/in/b holds JSON lines, not text" in capfd.readouterr().err
    (tmp_path / "in/b").write_text(f'{{"text": "{"It rained . " * 50_000}"}}\n')
    assert main([f"{tmp_path}/in", f"{tmp_path}/d"]) == 1
    assert f"error: {tmp_path}/in/b holds JSON lines, not text" in capfd.readouterr().err, "however long a line is"
    assert not (tmp_path / "d").exists()


def test_default_holds_out_a_small_last_part(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"this is sentence number {number} .\n" for number in range(2000)))
    assert main([str(tmp_path / "a"), str(tmp_path / "c")]) == 0
    corpus = Corpus(tmp_path / "c")
    share = corpus.held_out[0].tokens / (corpus.train_tokens + corpus.held_out[0].tokens)
    assert len(corpus.held_out) == 1
    assert 0.02 < share < 0.1
    assert read_back(corpus, corpus.held_out)[0][-1] == ["this", "is", "sentence", "number", "1999", "."]


def test_a_text_of_one_line_is_to_be_broken(tmp_path: Path, error_line) -> None:
    (tmp_path / "a").write_text("It rained , and a cat sat . It slept . " * 300)
    error = error_line(main([f"novels={tmp_path}/a", f"{tmp_path}/c"]))
    assert f"{tmp_path}/a: the text of novels is one line of 3,300 words, where a sentence on each line is" in error
    assert "shard-tokens" not in error
    assert tokenize([f"{tmp_path}/a", f"{tmp_path}/b", *error.partition("tokenize ")[2].partition("`")[0].split()]) == 0
    assert main([f"novels={tmp_path}/b", f"{tmp_path}/c"]) == 0


def test_a_small_last_file_is_not_held_out_alone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / f"in/{name}").write_text("".join(f"this is sentence number {number} .\n" for number in range(1000)))
    (tmp_path / "in/z").write_text("read me first\n")
    assert main([str(tmp_path / "in"), str(tmp_path / "c")]) == 0
    corpus = Corpus(tmp_path / "c")
    (shard,) = corpus.held_out
    assert 0.02 < shard.tokens / (corpus.train_tokens + shard.tokens) < 0.1
    sentences, starts = read_back(corpus, corpus.held_out)
    assert sentences[-2:] == [["this", "is", "sentence", "number", "999", "."], ["read", "me", "first"]]
    assert starts[-1] == len(sentences) - 1, "a document of its own"


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


def test_workers_do_not_change_a_byte(text_files: list[Path], tmp_path: Path) -> None:
    for workers in ("1", "2"):
        arguments = [str(tmp_path / "in"), str(tmp_path / workers), "--workers", workers, "--shard-tokens", "300"]
        assert main(arguments) == 0
    assert content(tmp_path / "1") == content(tmp_path / "2")


@pytest.mark.parametrize("stop_in", ["read_pieces", "merge_lexicons", "write_shard", "finish_corpus"])
def test_interrupted_and_run_again(text_files: list[Path], tmp_path: Path, monkeypatch, stop_in: str) -> None:
    arguments = [str(tmp_path / "in"), "--workers", "1", "--shard-tokens", "300"]
    assert main([arguments[0], str(tmp_path / "whole"), *arguments[1:]]) == 0

    calls = 0
    interrupted = "write_piece" if stop_in == "read_pieces" else stop_in
    real = getattr(module, interrupted)

    def stop(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == (1 if interrupted in ("merge_lexicons", "finish_corpus") else 3):
            raise KeyboardInterrupt
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(module, interrupted, stop)
        assert main([arguments[0], str(tmp_path / "again"), *arguments[1:]]) == 130
    assert not (tmp_path / "again" / "corpus.json").exists()
    assert main([arguments[0], str(tmp_path / "again"), *arguments[1:]]) == 0
    assert content(tmp_path / "again") == content(tmp_path / "whole")


def test_finished_pieces_are_reused_only_for_the_same_input(
    text_files: list[Path], tmp_path: Path, monkeypatch
) -> None:
    corpus = tmp_path / "c"
    command = [str(tmp_path / "in"), str(corpus), "--workers", "1", "--shard-tokens", "300"]

    def stop(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "merge_lexicons", stop)
        assert main(command) == 130
    pieces = {path.parent.name: path.stat().st_mtime_ns for path in corpus.glob(".work/*/piece.json")}
    before = text_files[3].stat()
    text_files[3].write_text("entirely new words\n")
    os.utime(text_files[3], ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with monkeypatch.context() as patch:
        patch.setattr(module, "merge_lexicons", stop)
        assert main(command) == 130
    again = {path.parent.name: path.stat().st_mtime_ns for path in corpus.glob(".work/*/piece.json")}
    unchanged = pieces.items() & again.items()
    assert 0 < len(unchanged) < len(pieces)
    assert main(command) == 0
    assert "entirely" in Corpus(corpus).lexicon


def test_what_is_finished_needs_no_room_again(text_files: list[Path], tmp_path: Path, monkeypatch) -> None:
    corpus, needed = tmp_path / "c", []

    def stop(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "require_space", lambda _path, needed_bytes: needed.append(needed_bytes))
    monkeypatch.setattr(module, "merge_lexicons", stop)
    for _ in range(2):
        assert main([str(tmp_path / "in"), str(corpus), "--workers", "1"]) == 130
    ids = sum(path.stat().st_size for path in corpus.glob(".work/*/*.ids"))
    assert ids > 0
    assert needed[1] == needed[0] - ids


@pytest.mark.parametrize("damage", ["sentences", "shard"])
def test_a_piece_whose_shards_are_not_those_of_its_files_is_read_again(
    text_files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    command = [str(tmp_path / "in"), str(tmp_path / "c"), "--workers", "1", "--shard-tokens", "300"]
    with monkeypatch.context() as patch:
        patch.setattr(module, "merge_lexicons", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert main(command) == 130
    for path in (tmp_path / "c").glob(".work/*/piece.json"):
        record = json.loads(path.read_text())
        if damage == "sentences":
            record["shards"][0]["sentences"] += 1
        else:
            del record["shards"][-1]
        path.write_text(json.dumps(record))
    assert main(command) == 0
    assert main([command[0], str(tmp_path / "whole"), *command[2:]]) == 0
    assert content(tmp_path / "c") == content(tmp_path / "whole")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"fine\nbad \xff byte\n", "a.txt, line 2: byte 0xff is not valid UTF-8"),
        ("a.txt", b"one\n\ntwo <s> three\n", "a.txt, line 3: the text holds <s>"),
        ("a.txt", b"one\ntwo </s>\n", "a.txt, line 2: the text holds </s>"),
        ("a.txt", b"one\n\ntwo\0\n", "a.txt, line 3: the text holds a NUL character: take it out"),
        ("a.txt", b"\n \n\t\n", "a.txt: the input files hold no sentences, all their lines are blank: add some text"),
        ("a.txt", b"", "a.txt: the input files hold no sentences"),
        ("a.txt", b"one sentence only\n", "a.txt: the text is one sentence, so that none"),
        ("a.txt.gz", gzip.compress(os.urandom(1000).hex().encode() + b"\n")[:-20], "truncated or damaged"),
        ("a.txt.gz", b"no gzip\n", "truncated or damaged"),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_bad_input_is_one_sentence(tmp_path: Path, capfd, name: str, data: bytes, message: str, workers: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert main([str(tmp_path / name), str(tmp_path / "c"), "--workers", workers]) == 1
    error = capfd.readouterr().err
    assert message in error.splitlines()[-1]
    assert "Traceback" not in error
    assert not (tmp_path / "c" / "corpus.json").exists()


def test_line_numbers_hold_in_later_pieces_of_a_file(tmp_path: Path, capfd) -> None:
    lines = [b"some words of text"] * 5000
    lines[4321] = b"\xe9"
    (tmp_path / "a.txt").write_bytes(b"\n".join(lines))
    assert main([str(tmp_path / "a.txt"), str(tmp_path / "c"), "--shard-tokens", "1000"]) == 1
    assert "a.txt, line 4322: byte 0xe9" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt", "c"], "missing.txt does not exist: check the name"),
        (["*.nothing", "c"], "*.nothing does not exist: name files that are there"),
        (["a.txt", "./a.txt", "c"], "is named twice"),
        (["empty", "c"], "is a folder without files: name files that are there"),
        (["a.txt", "c", "--held-out", "a.txt"], "every input file is held out"),
        (["a.txt", "c", "--min-count", "0"], "--min-count must be at least 1 and at most 4611686018427387904, not 0"),
        (["a.txt", "c", "--shard-tokens", "0"], "--shard-tokens must be at least 1 and at most 1000000000, not 0"),
        (["a.txt", "c", "--workers", "0"], "--workers must be at least 1 and at most 1024, not 0"),
        (["a.txt", "other"], "is not an unfinished corpus"),
        (["a.txt", "a.txt"], "is not an unfinished corpus"),
        (["pipe", "c"], "pipe is not an ordinary file"),
        (["circle", "c"], "circle: Too many levels of symbolic links: its links lead in a circle: mend them"),
        (["a.txt", "circle"], "circle"),
        (["a.txt", "c", "--held-out", "circle"], "circle: Too many levels of symbolic links"),
        (["other", "other/.work/.."], "other/.work/.. is inside other, all files of which are read"),
        (["other/*", "other"], "other/file is inside other, the corpus to be made"),
        (["a=other", "other/corpus"], "other/corpus is inside other, all files of which are read"),
    ],
)
def test_bad_arguments(tmp_path: Path, monkeypatch, capfd, arguments: list[str], message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("a b\nc d\n")
    Path("empty").mkdir()
    Path("other").mkdir()
    Path("other/file").write_text("mine")
    Path("circle").symlink_to("circle")
    os.mkfifo("pipe")
    assert main(arguments) == 1
    assert message in capfd.readouterr().err
    assert sorted(os.listdir()) == ["a.txt", "circle", "empty", "other", "pipe"]
    assert Path("a.txt").read_text() == "a b\nc d\n"
    assert Path("other/file").read_text() == "mine"


@pytest.mark.parametrize("mine", ["notes.txt", ".work/x/notes.txt"])
def test_a_folder_with_other_things_is_no_unfinished_corpus(tmp_path: Path, error_line, mine: str) -> None:
    (tmp_path / "a").write_text("a b\nc d\n" * 50)
    for name in (".work/0123456789abcdef/00000.ids", "shards/mine.bin", mine):
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    before = content(tmp_path / "project")
    error = error_line(main([str(tmp_path / "a"), str(tmp_path / "project")]))
    assert f"project/{mine.removesuffix('/notes.txt')} is not of an unfinished corpus, though " in error
    assert content(tmp_path / "project") == before


def test_a_finished_corpus_is_refused(tmp_path: Path, capfd) -> None:
    (tmp_path / "a").write_text("a b\nc d\n" * 50)
    assert main([str(tmp_path / "a"), str(tmp_path / "c")]) == 0
    before = content(tmp_path / "c")
    assert main([str(tmp_path / "a"), str(tmp_path / "c")]) == 1
    assert "finished corpus already" in capfd.readouterr().err
    assert content(tmp_path / "c") == before


def test_blocks_and_pieces_give_back_every_line(tmp_path: Path) -> None:
    generator = random.Random(2)
    lines = ["é" * generator.choice([0, 1, 50, 3000]) for _ in range(500)]
    (tmp_path / "a").write_text("\ufeff" + "\n".join(lines), encoding="utf-8")
    pieces = cut_pieces([tmp_path / "a"], 4000, False)
    assert len(pieces) > 5
    segments = [segment for piece in pieces for segment in piece.segments]
    text = "".join(text for segment in segments for _, text in read_blocks(segment, block_bytes=700))
    assert text.removesuffix("\n").split("\n") == lines
    numbered = list(read_blocks(Segment(str(tmp_path / "a")), block_bytes=700))
    assert all(line == 1 + sum(text.count("\n") for _, text in numbered[:at]) for at, (line, _) in enumerate(numbered))
