"""`one_billion`: a (tiny) archive of the benchmark's layout, or its folder, is split as in the paper."""

import gzip
import io
import shutil
import tarfile
from pathlib import Path

import pytest

from data_scripts import one_billion as module
from data_scripts.one_billion import main
from elmoc.corpus import Corpus

ROOT = "1-billion-word-language-modeling-benchmark-r13output"
CHUNKS = "training-monolingual.tokenized.shuffled"


def write_archive(path: Path, chunks: range = range(1, 100)) -> Path:
    """An archive of one sentence a chunk, which holds the chunk's number, and a held-out file that is not used."""
    with tarfile.open(path, "w:gz") as archive:
        names = {f"{CHUNKS}/news.en-{number:05}-of-00100": number for number in chunks}
        names["heldout-monolingual.tokenized.shuffled/news.en.heldout-00000-of-00050"] = 1000
        names[f"{CHUNKS}/._news.en-00001-of-00100"] = 1000
        for name, number in reversed(names.items()):
            data = f"this is sentence c{number} .\n".encode()
            member = tarfile.TarInfo(f"{ROOT}/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def check(path: Path) -> None:
    """The last chunk is held out, the other 98 are trained on, and nothing else was read."""
    corpus = Corpus(path)

    def words(shards) -> list[str]:
        return [corpus.lexicon[row] for shard in shards for row in corpus.read_shard(shard)]

    assert [word for word in words(corpus.held_out) if word[:1] == "c"] == ["c99"]
    assert [word for word in words(corpus.train) if word[:1] == "c"] == [f"c{number}" for number in range(1, 99)]
    assert "c1000" not in corpus.lexicon


def test_the_archive_and_its_folder(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "1b.tar.gz")
    assert main([str(archive), str(tmp_path / "corpus"), "--workers", "1"]) == 0
    check(tmp_path / "corpus")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1b.tar.gz", "corpus"]
    shutil.unpack_archive(archive, tmp_path / "folder")
    assert main([str(tmp_path / "folder"), str(tmp_path / "again"), "--workers", "1"]) == 0
    check(tmp_path / "again")


def test_interrupted_between_unpacking_and_building(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_args, **_kwargs):
        raise KeyboardInterrupt

    archive = write_archive(tmp_path / "1b.tar.gz")
    for interrupted, status in (("build_corpus", 130), ("unpack", 0)):  # all is unpacked the second time
        with monkeypatch.context() as patch:
            patch.setattr(module, interrupted, stop)
            assert main([str(archive), str(tmp_path / "corpus"), "--workers", "1"]) == status
    check(tmp_path / "corpus")


@pytest.mark.parametrize("damage", ["truncated", "checksum", "chunk", "text"])
def test_an_archive_that_is_not_whole_leaves_nothing(tmp_path: Path, error_line, damage: str) -> None:
    archive = write_archive(tmp_path / "1b.tar.gz", range(1, 99 if damage == "chunk" else 100))
    data = archive.read_bytes()
    wrong_sum = data[:-8] + bytes([data[-8] ^ 1]) + data[-7:]
    changed = {"truncated": data[:-500], "checksum": wrong_sum, "chunk": data, "text": gzip.compress(b"text")}
    archive.write_bytes(changed[damage])
    error_line(main([str(archive), str(tmp_path / "corpus")]))
    assert [path.name for path in tmp_path.iterdir()] == ["1b.tar.gz"]
