"""Text of peers: a pass reads every sentence once, in an order that mixes the files, and can be gone on with."""

from itertools import islice
from pathlib import Path

import pytest

from downstream.peers import text
from downstream.peers.text import TextBlocks
from elmoc.errors import InputError


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Two files of some blocks of 50 bytes, with a blank line, one longer than a block, and no last newline."""
    monkeypatch.setattr(text, "BLOCK_BYTES", 50)
    made = {
        "a": [f"a{number} Zürich ." for number in range(30)] + [""] + ["a " * 60],
        "b": [f"b{number} is  here" for number in range(60)],
    }
    for name, lines in made.items():
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    return [tmp_path / name for name in made]


def sentences_of(paths: list[Path]) -> list[list[str]]:
    return [words for path in paths for line in path.read_text("utf-8").split("\n") if (words := line.split())]


def test_a_pass_has_every_sentence_once_and_the_next_another_order(paths: list[Path]) -> None:
    blocks = TextBlocks(paths, seed=1)
    first, second = (
        [sentence for _, block in islice(blocks.blocks(start), len(blocks)) for sentence in block]
        for start in (0, len(blocks))
    )
    assert sorted(first) == sorted(second) == sorted(sentences_of(paths))
    assert first != second


def test_the_order_mixes_the_files_and_follows_the_seed(paths: list[Path]) -> None:
    read = [[block for _, block in islice(TextBlocks(paths, seed=seed).blocks(), 10)] for seed in (1, 1, 2)]
    assert read[0] == read[1] != read[2]
    assert {sentence[0][0] for block in read[0] for sentence in block} == {"a", "b"}


def test_reading_goes_on_at_a_block(paths: list[Path]) -> None:
    blocks = TextBlocks(paths, seed=1)
    whole = list(islice(blocks.blocks(), 3 * len(blocks)))
    assert list(islice(blocks.blocks(len(blocks) + 4), 5)) == whole[len(blocks) + 4 :][:5]
    for position, sentences in islice(blocks.mixed(2), 2):
        several = min(text.MIXED_BLOCKS, len(blocks))
        mixed = [sentence for number, block in whole if position - several <= number < position for sentence in block]
        assert sorted(sentences) == sorted(mixed)
        assert sentences != mixed


def test_samples_follow_each_other(paths: list[Path], tmp_path: Path) -> None:
    blocks = TextBlocks(paths, seed=1)
    following, words = blocks.write_sample(tmp_path / "one.txt", 20)
    assert 20 <= words < 100
    last, _ = blocks.write_sample(tmp_path / "two.txt", 10**9, first=following)
    assert last == len(blocks), "a sample ends with the pass"
    assert sorted(sentences_of([tmp_path / "one.txt", tmp_path / "two.txt"])) == sorted(sentences_of(paths))


@pytest.mark.parametrize(
    ("content", "says"), [(b"", "no words"), (b"ok\n\xff\n", "not valid UTF-8"), (b"\n\n", "no words")]
)
def test_text_that_cannot_be_used_is_one_sentence(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(InputError, match=says):
        TextBlocks([tmp_path / "a.txt"], seed=1)


def test_a_line_that_is_too_long_is_not_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of it would be in no block."""
    monkeypatch.setattr(text, "BLOCK_BYTES", 50)
    monkeypatch.setattr(text, "MAX_LINE_BYTES", 200)
    line = "a " * 100
    (tmp_path / "a.txt").write_text(f"b\n{line}\n")
    with pytest.raises(InputError, match=r"a\.txt has a line of more than .* MiB: break it into several lines"):
        list(islice(TextBlocks([tmp_path / "a.txt"], seed=1).blocks(), 4))
    (tmp_path / "a.txt").write_text(f"b\n{line[:-1]}\n")
    blocks = list(islice(TextBlocks([tmp_path / "a.txt"], seed=1).blocks(), 5))
    assert sorted(len(words) for _, block in blocks for words in block) == [1, 100]


def test_compressed_text_is_to_be_unpacked(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unpack it first"):
        TextBlocks([tmp_path / "a.txt.gz"], seed=1)
