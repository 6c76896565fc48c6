"""Download: what arrives is whole and what was asked for, whatever a server says, or it is one sentence."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from data_scripts.parts.download import download, file_name
from elmoc.errors import InputError

DATA = bytes(range(256)) * 20


@contextmanager
def server(status: int, headers: dict[str, str], body: bytes = DATA) -> Iterator[str]:
    """The address of a file on a server that gives this answer to every request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments) -> None:
            pass

    running = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{running.server_port}/file.gz"
    finally:
        running.shutdown()
        running.server_close()


WHOLE = b"%x\r\n%s\r\n0\r\n\r\n" % (len(DATA), DATA)
NO_LENGTH = "does not say how long the file is"


@pytest.mark.parametrize(
    ("status", "headers", "body", "message"),
    [
        (200, {}, DATA, NO_LENGTH + r" \(Content-Length: none\)"),
        (200, {"Content-Length": "abc"}, DATA, NO_LENGTH + r" \(Content-Length: abc\)"),
        (200, {"Content-Length": "-5"}, DATA, NO_LENGTH),
        (200, {"Content-Length": "9" * 5000}, DATA, NO_LENGTH),
        (200, {"Content-Length": "9" * 15}, DATA, "needs about 1000.0 TB, but its disk"),
        (200, {"Content-Length": str(len(DATA) + 1)}, DATA, "broke off at 5,120 of 5,121 bytes: run the command again"),
        (200, {"Transfer-Encoding": "chunked"}, WHOLE[:-5], "broke off .*: run the command again to go on"),
        (200, {"Transfer-Encoding": "chunked"}, b"many\r\n", "broke off .*: run the command again to go on"),
        (204, {}, b"", NO_LENGTH),
        (302, {"Location": "file:///etc/passwd"}, b"", "the server answers HTTP Error 302: .*: check the address"),
        (302, {"Location": "ftp://127.0.0.1/file"}, b"", "unknown url type: ftp"),
        (302, {"Location": "http://[::1"}, b"", "is not an address"),
        (302, {"Location": "/file.gz"}, b"", "the server answers HTTP Error 302: .*infinite loop"),
        (500, {"X": "y" * 70_000}, b"", "cannot be downloaded .*got more than 65536 bytes"),
        (404, {}, b"", "the server answers HTTP Error 404: Not Found: check the address"),
        (429, {}, b"", "the server answers HTTP Error 429: .*: run the command again later to go on"),
        (503, {}, b"", "the server answers HTTP Error 503: .*: run the command again later to go on"),
    ],
)
def test_other_answers_are_one_sentence(tmp_path: Path, status: int, headers, body: bytes, message: str) -> None:
    with server(status, headers, body) as address, pytest.raises(InputError, match=message) as error:
        download(address, tmp_path / "file.gz")
    assert len(str(error.value)) < 600
    assert [path.name for path in tmp_path.iterdir()] in ([], ["file.gz.partial"])


def test_a_chunked_answer_says_where_it_ends(tmp_path: Path) -> None:
    with server(200, {"Transfer-Encoding": "chunked"}, WHOLE) as address:
        download(address, tmp_path / "file.gz")
    assert (tmp_path / "file.gz").read_bytes() == DATA
    assert [path.name for path in tmp_path.iterdir()] == ["file.gz"]


def test_another_part_than_was_asked_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.gz.partial").write_bytes(DATA[:100])
    headers = {"Content-Length": str(len(DATA)), "Content-Range": f"bytes 0-{len(DATA) - 1}/{len(DATA)}"}
    with server(206, headers) as address, pytest.raises(InputError, match=r"another part .*: remove .*gz\.partial"):
        download(address, tmp_path / "file.gz")
    assert (tmp_path / "file.gz.partial").read_bytes() == DATA[:100]


def test_a_file_that_is_there_is_not_downloaded_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file.gz").write_bytes(b"mine")
    download("http://127.0.0.1:1/file.gz", tmp_path / "file.gz")
    assert capsys.readouterr().out == f"{tmp_path / 'file.gz'} is there already: not downloaded again\n"
    assert (tmp_path / "file.gz").read_bytes() == b"mine"


@pytest.mark.parametrize("whole", [True, False])
def test_all_that_there_is_may_have_arrived_before(tmp_path: Path, whole: bool) -> None:
    (tmp_path / "file.gz.partial").write_bytes(DATA)
    with server(416, {"Content-Range": f"bytes */{len(DATA) - (not whole)}"}, b"") as address:
        if whole:
            download(address, tmp_path / "file.gz")
            assert (tmp_path / "file.gz").read_bytes() == DATA
        else:
            with pytest.raises(
                InputError, match=r"answers HTTP Error 416: .*: remove .*gz\.partial and run the command again"
            ):
                download(address, tmp_path / "file.gz")


@pytest.mark.parametrize(
    "address",
    [
        "http://[::1/file",
        "http://a.b:port/file",
        "http://a b/file",
        "http://127.0.0.1:1/é",
        "http://\ud800/f",
        "http:///f",
    ],
)
def test_bad_addresses(tmp_path: Path, address: str) -> None:
    with pytest.raises(InputError, match=r"is not an address|cannot be downloaded") as error:
        download(address, tmp_path / "file")
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_the_name_of_a_file() -> None:
    assert file_name("https://a.b/c/d.tar.gz?download=1#top") == "d.tar.gz"
    assert file_name("https://a.b/c/d.tar.gz/") == "d.tar.gz"
    for address, message in [
        ("http://a.b", "names no file"),
        ("http://a.b/..", "names no file"),
        ("http://[::1", "is not an address"),
    ]:
        with pytest.raises(InputError, match=message):
            file_name(address)


def test_two_downloads_of_a_file(tmp_path: Path, other_writer) -> None:
    other_writer(tmp_path / "file.gz")
    with pytest.raises(InputError, match=r"another process is writing .*file\.gz: wait for it, or stop it"):
        download("http://127.0.0.1:1/file.gz", tmp_path / "file.gz")
