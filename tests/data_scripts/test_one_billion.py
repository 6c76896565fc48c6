"""`one_billion`: a (tiny) archive of the benchmark's layout is split as in the paper."""

import io
import tarfile
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from data_scripts import one_billion as module
from data_scripts.one_billion import main
from data_scripts.parts.download import download
from elmoc.corpus import Corpus
from elmoc.errors import InputError

ROOT = "1-billion-word-language-modeling-benchmark-r13output"


def write_archive(path: Path, chunks: range = range(1, 100)) -> Path:
    """An archive of one sentence a chunk, which holds the chunk's number, and a held-out file that is not used."""
    with tarfile.open(path, "w:gz") as archive:
        names = {f"training-monolingual.tokenized.shuffled/news.en-{number:05}-of-00100": number for number in chunks}
        names["heldout-monolingual.tokenized.shuffled/news.en.heldout-00000-of-00050"] = 1000
        names["training-monolingual.tokenized.shuffled/._news.en-00001-of-00100"] = 1000
        for name, number in reversed(names.items()):
            member = tarfile.TarInfo(f"{ROOT}/{name}")
            data = f"this is sentence c{number} .\n".encode()
            member.size, member.mtime = len(data), 1_300_000_000
            archive.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    return write_archive(tmp_path / "1b.tar.gz")


def check(corpus: Corpus) -> None:
    """The last chunk is held out, the other 98 are trained on, and nothing else was read."""

    def words(shards) -> list[str]:
        return [corpus.lexicon[row] for shard in shards for row in corpus.read_shard(shard)]

    assert [word for word in words(corpus.held_out) if word[:1] == "c"] == ["c99"]
    assert [word for word in words(corpus.train) if word[:1] == "c"] == [f"c{number}" for number in range(1, 99)]
    assert "c1000" not in corpus.lexicon


def test_split(archive: Path, tmp_path: Path) -> None:
    assert main([str(archive), str(tmp_path / "corpus"), "--workers", "1"]) == 0
    corpus = Corpus(tmp_path / "corpus")
    check(corpus)
    assert corpus.record.sources[0] == f"{archive}:news.en-00001-of-00100"
    assert corpus.record.settings["held_out"] == [f"{archive}:news.en-00099-of-00100"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1b.tar.gz", "corpus"]
    assert main([str(archive), str(tmp_path / "corpus")]) == 1


def test_interrupted_between_unpacking_and_building(archive: Path, tmp_path: Path, monkeypatch) -> None:
    def stop(*_args, **_kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "build_corpus", stop)
        assert main([str(archive), str(tmp_path / "corpus"), "--workers", "1"]) == 130
    with monkeypatch.context() as patch:
        patch.setattr(module, "_unpack_chunks", stop)  # all is unpacked already
        assert main([str(archive), str(tmp_path / "corpus"), "--workers", "1"]) == 0
    check(Corpus(tmp_path / "corpus"))


@pytest.mark.parametrize("what", ["missing", "truncated", "other", "incomplete", "text"])
def test_bad_archives(tmp_path: Path, capfd, what: str) -> None:
    path = tmp_path / "1b.tar.gz"
    if what == "truncated":
        path.write_bytes(write_archive(path).read_bytes()[:-400])
    elif what == "other":
        write_archive(path, range(0))
    elif what == "incomplete":
        write_archive(path, range(1, 99))
    elif what == "text":
        path.write_text("no archive")
    expected = {
        "missing": "does not exist",
        "truncated": "truncated",
        "other": "99 of the chunks",
        "incomplete": "(00099)",
        "text": "not a tar archive",
    }
    assert main([str(path), str(tmp_path / "corpus"), "--workers", "1"]) == 1
    assert expected[what] in capfd.readouterr().err.splitlines()[-1]
    assert not [file for file in tmp_path.iterdir() if file != path]


class Server(BaseHTTPRequestHandler):
    """Serves `data` at any address, from the asked position on where `ranges`, and breaks off after `limit` bytes."""

    def __init__(self, *args, data: bytes, limit: list[int], ranges: bool) -> None:
        self.data, self.limit, self.ranges = data, limit, ranges
        super().__init__(*args)

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        if self.path == "/nothing":
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.ranges else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(self.data) - start))
        self.end_headers()
        self.wfile.write(self.data[start:][: self.limit.pop(0) if self.limit else None])

    def log_message(self, *_args) -> None:
        pass


@pytest.mark.parametrize("ranges", [True, False])
def test_download_goes_on_where_it_broke_off(archive: Path, tmp_path: Path, capfd, ranges: bool) -> None:
    handler = partial(Server, data=archive.read_bytes(), limit=[1000], ranges=ranges)
    server = HTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}/1b.tar.gz"
        corpus = tmp_path / "new" / "corpus"
        assert main([address, str(corpus), "--workers", "1"]) == 1
        assert "run the command again to go on" in capfd.readouterr().err
        assert (tmp_path / "new" / "1b.tar.gz.partial").stat().st_size == 1000
        assert main([address, str(corpus), "--workers", "1"]) == 0
        assert (tmp_path / "new" / "1b.tar.gz").read_bytes() == archive.read_bytes()
        check(Corpus(corpus))
        with pytest.raises(InputError, match="404"):
            download(f"http://127.0.0.1:{server.server_port}/nothing", tmp_path / "nothing")
    finally:
        server.shutdown()
        server.server_close()
    with pytest.raises(InputError, match="cannot be downloaded"):
        download(address, tmp_path / "again")
