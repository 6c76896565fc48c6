"""Readers of `data_scripts`: text, what an interrupted build has left, archives and downloads."""

import os
import re
import socket
import threading
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from data_scripts.build_corpus import build_corpus
from data_scripts.one_billion import unpack
from data_scripts.parts.download import download
from data_scripts.tokenize import tokenise_file
from elmoc.corpus import Corpus
from tests.fuzz.mutations.archives import TAR
from tests.fuzz.mutations.arrays import NPY
from tests.fuzz.mutations.json_tree import JSON
from tests.fuzz.mutations.raw import RAW
from tests.fuzz.mutations.text import TEXT, compressed
from tests.fuzz.readers.directories import read_corpus
from tests.fuzz.readers.elmoc import text_lines
from tests.fuzz.readers.reader import Reader, consistent
from tests.references import plain_overlap


def tokenise(name: str) -> Any:
    def read(folder: Path) -> None:
        """Letters and digits are all there, in their order."""
        source, target = folder / "text" / name, folder / "out/tokenised.txt"
        tokenise_file(source, target)
        kept = ["".join(filter(str.isalnum, "".join(text_lines(path)))) for path in (source, target)]
        assert kept[0] == kept[1]

    return read


def build(name: str) -> Any:
    def read(folder: Path) -> None:
        """The corpus holds the words of the text."""
        source, built = folder / "text" / name, folder / "out/corpus"
        build_corpus([source], built, shard_tokens=60)
        corpus = Corpus(built)
        words = [corpus.lexicon[row] for shard in corpus.train + corpus.held_out for row in corpus.read_shard(shard)]
        sentences = [line.split() for line in text_lines(source) if line.split()]
        assert words == [word for sentence in sentences for word in ("<s>", *sentence, "</s>")]

    return read


def leave_out(folder: Path) -> None:
    """The corpus holds the sentences of the text that do not overlap with those to be left out."""
    source, others, built = folder / "text/tokenised.txt", folder / "text/raw.txt", folder / "out/corpus"
    build_corpus([source], built, shard_tokens=60, leave_out=[others])
    corpus = Corpus(built)
    words = [corpus.lexicon[row] for shard in corpus.train + corpus.held_out for row in corpus.read_shard(shard)]
    known = [line.split() for line in text_lines(others)]
    sentences = [line.split() for line in text_lines(source) if line.split()]
    kept = [sentence for sentence in sentences if not plain_overlap(sentence, known)]
    assert words == [word for sentence in kept for word in ("<s>", *sentence, "</s>")]


def go_on_building(folder: Path) -> Any:
    """An interrupted build goes on, and gives what an undisturbed one gives."""
    build_corpus([folder / "text/known.txt"], folder / "unfinished", shard_tokens=120)
    return read_corpus(folder / "unfinished")


def unpack_archive(folder: Path) -> list[str]:
    unpack(folder / "archive/words.tar.gz", folder / "archive/.corpus.unpacked")
    return sorted(path.name for path in (folder / "archive/.corpus.unpacked").glob("news*"))


@lru_cache
def server(process: int) -> tuple[socket.socket, dict[str, bytes]]:
    """A server in this process, which no fork inherits; it answers all that is asked with `answer["bytes"]`."""
    listening, answer = socket.create_server(("127.0.0.1", 0)), {"bytes": b""}

    def serve() -> None:
        while True:
            connection, _ = listening.accept()
            with connection, suppress(OSError):  # of a client that has gone
                connection.recv(65536)
                connection.sendall(answer["bytes"])
                connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=serve, daemon=True).start()
    return listening, answer


def fetch(folder: Path) -> None:
    """What is kept was sent, as far as the length says that there is, or to the end where there is no length."""
    response = (folder / "text/response.http").read_bytes()
    listening, answer = server(os.getpid())
    answer["bytes"] = response
    download(f"http://127.0.0.1:{listening.getsockname()[1]}/response.http", folder / "out/file")
    kept = (folder / "out/file").read_bytes()
    length = re.search(rb"(?i)\ncontent-length:[ \t]*(\d+)\r?\n", response)
    assert kept in response if length else response.endswith(kept)
    assert length is None or int(length[1]) == len(kept)


READERS = (
    *(
        Reader(name=f"tokenise {name}", target=f"text/{name}", mutations=kind, read=tokenise(name), right=consistent)
        for name, kind in (("raw.txt", TEXT), ("raw.txt.gz", (compressed,)))
    ),
    *(
        Reader(
            name=f"build {name}",
            target=f"text/{name}",
            mutations=kind,
            read=build(name),
            right=consistent,
            names=("sample/text", "--shard-tokens"),
            share=0.5,
        )
        for name, kind in (("tokenised.txt", TEXT), ("tokenised.txt.gz", (compressed,)))
    ),
    Reader(
        name="leave out raw.txt",
        target="text/raw.txt",
        mutations=TEXT,
        read=leave_out,
        right=consistent,
        names=("sample/text",),
        share=0.3,
    ),
    *(
        Reader(
            name=f"work {name}",
            target=f"unfinished/.work/*/{name}",
            mutations=kind,
            read=go_on_building,
            share=0.2,
            writes=True,
        )
        for name, kind in (
            *(("piece.json", JSON), ("lexicon.txt", TEXT), ("00000.ids", RAW)),
            *(("00000.counts.npy", NPY), ("00000.documents.npy", NPY), ("left_out.npy", NPY)),
        )
    ),
    Reader(
        name="archive",
        target="archive/words.tar.gz",
        mutations=TAR,
        read=unpack_archive,
        names=("words.tar.gz", ".corpus.unpacked"),
        share=0.2,
        writes=True,
    ),
    Reader(
        name="unpacked.json",
        target="archive/.corpus.unpacked/unpacked.json",
        mutations=JSON,
        read=unpack_archive,
        share=0.1,
        writes=True,
    ),
    Reader(name="download", target="text/response.http", mutations=TEXT, read=fetch, right=consistent, is_file=False),
)
