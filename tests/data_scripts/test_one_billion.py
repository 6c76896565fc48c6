"""`one_billion`: a (tiny) archive of the benchmark's layout is split as in the paper."""

import gzip
import re
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
from tests.data_scripts.archives import CHUNKS, add, write_archive


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


@pytest.mark.parametrize("damage", [b"[]", b"{}", b"{", b"1" * 10_000, b'{"format": "elmoc-unpacked", "version": 1}'])
def test_an_unpacked_folder_without_its_description_is_unpacked_again(
    archive: Path, tmp_path: Path, monkeypatch, damage: bytes
) -> None:
    folder = tmp_path / ".corpus.unpacked"
    module.unpack(archive, folder)
    whole = (folder / "unpacked.json").read_bytes()
    (folder / "unpacked.json").write_bytes(damage)
    (folder / "news.en-00003-of-00100").write_text("something else\n")
    module.unpack(archive, folder)
    assert (folder / "unpacked.json").read_bytes() == whole
    assert (folder / "news.en-00003-of-00100").read_text() == "this is sentence c3 .\n"


def test_an_unpacked_folder_that_was_half_removed_is_unpacked_again(archive: Path, tmp_path: Path) -> None:
    """As by a run that was killed while it removed it, whose corpus is removed by now."""
    module.unpack(archive, tmp_path / ".corpus.unpacked")
    for number in (7, 99):
        (tmp_path / f".corpus.unpacked/news.en-{number:05}-of-00100").unlink()
    assert main([str(archive), str(tmp_path / "corpus"), "--workers", "1"]) == 0
    check(Corpus(tmp_path / "corpus"))


def test_the_corpus_may_be_the_folder_of_the_command(archive: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "corpus").mkdir()
    monkeypatch.chdir(tmp_path / "corpus")
    assert main([str(archive), ".", "--workers", "1"]) == 0
    check(Corpus(tmp_path / "corpus"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1b.tar.gz", "corpus"]


@pytest.mark.parametrize("mtime", [1e20, -1e20, float("nan"), float("inf"), -5, 0.25])
def test_times_in_the_archive_do_not_matter(tmp_path: Path, mtime: float) -> None:
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for number in range(1, 100):
            add(archive, f"{CHUNKS}/news.en-{number:05}-of-00100", b"a\n", mtime=0, pax_headers={"mtime": str(mtime)})
    module.unpack(tmp_path / "a.tar", tmp_path / "unpacked")
    archive_time = (tmp_path / "a.tar").stat().st_mtime_ns
    assert {file.stat().st_mtime_ns for file in (tmp_path / "unpacked").glob("news*")} == {archive_time}


@pytest.mark.parametrize(
    ("number", "fields", "message"),
    [
        ("00007", {}, "holds news.en-00007-of-00100 twice: download the benchmark's archive"),
        ("00000", {}, "1 of the chunks .* are missing, or too many (00000)"),
        ("00100", {}, "1 of the chunks .* are missing, or too many (00100)"),
        ("00099", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "are missing, or too many (00099)"),
        ("00099", {"type": tarfile.LNKTYPE, "linkname": "../../secret"}, "are missing, or too many (00099)"),
        ("00099", {"type": tarfile.FIFOTYPE}, "are missing, or too many (00099)"),
        ("00099", {"type": tarfile.DIRTYPE}, "are missing, or too many (00099)"),
        ("00099", {"size": 10**15}, "needs about 1000.0 TB, but its disk"),
    ],
)
def test_odd_members(tmp_path: Path, error_line, number: str, fields: dict, message: str) -> None:
    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.GNU_FORMAT) as archive:
        for each in range(1, 99 if number == "00099" else 100):
            add(archive, f"{CHUNKS}/news.en-{each:05}-of-00100", b"a\n")
        add(archive, f"{CHUNKS}/news.en-{number}-of-00100", **fields)
    error = error_line(main([str(tmp_path / "a.tar"), str(tmp_path / "corpus")]))
    assert re.search(message.replace("(", "[(]").replace(")", "[)]"), error)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_names_in_the_archive_lead_nowhere_else(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for number in range(1, 100):
            name = f"{CHUNKS}/news.en-{number:05}-of-00100"
            add(archive, "", b"a\n", name=f"/etc/{name}" if number % 2 else f"../../{name}")
    module.unpack(tmp_path / "a.tar", tmp_path / "unpacked")
    assert len(list((tmp_path / "unpacked").iterdir())) == 100
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "unpacked"]


def test_damage_that_only_the_checksum_of_gzip_shows(archive: Path, tmp_path: Path, error_line) -> None:
    stored = gzip.compress(gzip.decompress(archive.read_bytes()), compresslevel=0)
    archive.write_bytes(stored.replace(b"this is sentence c50 .", b"this is sentence c51 ."))
    error = error_line(main([str(archive), str(tmp_path / "corpus")]))
    assert "1b.tar.gz is truncated, damaged or not a tar archive (CRC check failed" in error
    assert [path.name for path in tmp_path.iterdir()] == ["1b.tar.gz"]


@pytest.mark.parametrize(
    "address", ["http://[::1", "http://127.0.0.1:1", "http://127.0.0.1:1/é.tar.gz", "http://a b/c"]
)
def test_bad_addresses(tmp_path: Path, error_line, address: str) -> None:
    assert address in error_line(main([address, str(tmp_path / "corpus")])).replace("'", "")
    assert not list(tmp_path.iterdir())


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
