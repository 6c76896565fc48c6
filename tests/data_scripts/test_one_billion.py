"""`one_billion`: a (tiny) folder of the benchmark's layout is split as in the paper."""

from pathlib import Path

import pytest

from data_scripts.one_billion import main
from elmoc.corpus import Corpus

CHUNKS = "training-monolingual.tokenized.shuffled"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sentence a chunk, which holds the chunk's number, and held-out files that are not used."""
    names = {f"{CHUNKS}/news.en-{number:05}-of-00100": number for number in range(1, 100)}
    names["heldout-monolingual.tokenized.shuffled/news.en.heldout-00000-of-00050"] = 1000
    names[f"{CHUNKS}/._news.en-00001-of-00100"] = 1000
    for name, number in names.items():
        path = tmp_path / "1-billion" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"this is sentence c{number} .\n")
    return tmp_path / "1-billion"


def test_the_last_chunk_is_held_out(folder: Path, tmp_path: Path) -> None:
    assert main([str(folder), str(tmp_path / "corpus"), "--workers", "1"]) == 0
    corpus = Corpus(tmp_path / "corpus")

    def words(shards) -> list[str]:
        return [corpus.lexicon[row] for shard in shards for row in corpus.read_shard(shard)]

    assert [word for word in words(corpus.held_out) if word[:1] == "c"] == ["c99"]
    assert [word for word in words(corpus.train) if word[:1] == "c"] == [f"c{number}" for number in range(1, 99)]
    assert "c1000" not in corpus.lexicon


def test_a_folder_without_a_chunk_is_refused(folder: Path, tmp_path: Path, error_line) -> None:
    (folder / CHUNKS / "news.en-00042-of-00100").unlink()
    for given in (folder, tmp_path / "nothing"):
        assert str(given) in error_line(main([str(given), str(tmp_path / "corpus")]))
    assert not (tmp_path / "corpus").exists()
