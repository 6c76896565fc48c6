"""Commands of peers: the command lines of `train` and `dump`, and what every peer is given and gives."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from downstream.probe.settings import CommandSettings, add_options, chosen, option_name
from elmoc.errors import InputError, install_advice, run_command
from elmoc.process import wait_without_spinning
from elmoc.settings import check_settings, parse_duration, setting

if TYPE_CHECKING:
    from downstream.peers.clock import Clock
    from downstream.peers.dumping import Encoder
    from downstream.peers.record import PeerDirectory, PeerRecord
    from downstream.peers.text import TextBlocks

DTYPES = ("float32", "float16")
CHECKPOINT_SECONDS = 300.0
"""Of training between two points from which it can go on."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(CommandSettings):
    """How a peer is trained, beside its settings."""

    seed: int = setting(1, help="of weights and order", least=0, below=2**32)
    threads: int = setting(2, help="threads that compute", least=1, most=1024)


@dataclass(frozen=True, kw_only=True)
class Training:
    """What the training of a peer is given.

    directory: its folder `work` is there; the folder `model` is to be made.
    record: what to begin or to go on with.
    settings: an instance of the peer's.
    clock: counts from its first step.
    """

    directory: "PeerDirectory"
    record: "PeerRecord"
    settings: Any
    text: "TextBlocks"
    clock: "Clock"

    def keep(self, **progress: Any) -> None:
        """Write down how far the training has come; `progress` is of `PeerRecord`."""
        self.directory.write(replace(self.record, **self.so_far, **progress))

    @property
    def so_far(self) -> dict[str, Any]:
        """The seconds and words of the record that is to be written."""
        return {"seconds": self.clock.seconds, "words": round(self.clock.words)}


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A peer: its name (that of its module), what it is, its default settings, and what it needs.

    packages: those that training imports; `dump_packages` those that dumping does.
    train: fills the folder `model`; ends when the time of the clock is over.
    load: reads what training has made, whose checksums are right.
    """

    name: str
    what: str
    settings: Any
    packages: tuple[str, ...]
    dump_packages: tuple[str, ...]
    train: Callable[[Training], None]
    load: "Callable[[Path, PeerRecord], Encoder]"


def run_peer(peer: Peer, arguments: Sequence[str] | None = None) -> int:
    """Run the command of a peer; returns the exit status."""
    wait_without_spinning()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    return run_command(lambda: _run(peer, sys.argv[1:] if arguments is None else arguments))


def _run(peer: Peer, arguments: Sequence[str]) -> None:
    options = parser(peer).parse_args(arguments)
    if options.command == "train":
        train(peer, options)
    else:
        dump_features(peer, options)


def parser(peer: Peer) -> argparse.ArgumentParser:
    """The command line of a peer."""
    whole = argparse.ArgumentParser(prog=f"python -m downstream.peers.{peer.name}", description=f"{peer.what}.")
    commands = whole.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train", help="train it for a given time", description=f"Train {peer.what}.")
    training.add_argument("texts", nargs="+", type=Path, metavar="TEXT", help="one tokenised sentence a line")
    training.add_argument("out", type=Path, metavar="OUT", help="the directory to make")
    training.add_argument("--max-time", required=True, metavar="TIME", help="of training, e.g. 100m, 2h, 90s")
    training.add_argument("--resume", action="store_true", help="go on with a training that was stopped")
    for each in (RunOptions(), peer.settings):
        add_options(training, each)
    dumping = commands.add_parser("dump", help="write its features", description="Write features of sentences.")
    dumping.add_argument("out", type=Path, metavar="OUT", help="the directory of a trained peer")
    dumping.add_argument(
        "sentences", metavar="SENTENCES", help="one tokenised sentence a line (.txt, .gz, - or .jsonl)"
    )
    dumping.add_argument("features", type=Path, metavar="FEATURES.h5", help="the feature file to write")
    dumping.add_argument("--dtype", choices=DTYPES, default="float32", help="of the numbers (default: float32)")
    dumping.add_argument("--resume", action="store_true", help="go on with a dump that was killed")
    dumping.add_argument("--threads", type=int, default=RunOptions().threads, help="threads that compute (default: 2)")
    return whole


def train(peer: Peer, options: argparse.Namespace) -> None:
    """Train a peer as the parsed command line says."""
    run, settings = chosen(options, RunOptions()), chosen(options, peer.settings)
    limit = parse_duration(options.max_time)
    require_packages(peer.packages)
    from downstream.peers.clock import Clock
    from downstream.peers.record import PeerDirectory, PeerRecord
    from downstream.peers.text import TextBlocks
    from elmoc.files.checksums import fingerprint_file

    text = TextBlocks(options.texts, seed=run.seed)
    directory = PeerDirectory(options.out)
    asked = PeerRecord(
        peer=peer.name,
        settings=asdict(settings),
        texts=[str(path) for path in options.texts],
        text_fingerprints=[fingerprint_file(path) for path in options.texts],
        seed=run.seed,
        threads=run.threads,
        max_seconds=limit,
    )
    with directory.opened(asked, resume=options.resume) as record:
        if record.model:
            print(f"{options.out} is trained already")
            return
        directory.work.mkdir(exist_ok=True)
        _seed(run)
        clock = Clock(limit, before=record.seconds, words=record.words, log=directory.log)
        training = Training(directory=directory, record=record, settings=settings, text=text, clock=clock)
        try:
            peer.train(training)
        except KeyboardInterrupt:
            print("interrupted: the same command with --resume goes on from the last checkpoint", file=sys.stderr)
            raise
        finally:
            clock.close()
        record = directory.finish(replace(record, **training.so_far))
    print(f"{options.out}: {record.words:,} words in {record.seconds / 60:.1f} minutes")


def dump_features(peer: Peer, options: argparse.Namespace) -> None:
    """Write a feature file as the parsed command line says."""
    run = RunOptions(threads=options.threads)
    check_settings(run, option_name)
    from downstream.peers.record import PeerDirectory

    directory = PeerDirectory(options.out)
    record = directory.trained(peer.name)
    require_packages(peer.dump_packages)
    from downstream.peers.dumping import dump

    _seed(run)
    encoder = peer.load(directory.model, record)
    dump(encoder, record, options.sentences, options.features, dtype=options.dtype, resume=options.resume)


def require_packages(names: Sequence[str]) -> None:
    """Raise an `InputError` where one of the packages is not installed."""
    for name in names:
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] in ("downstream", "elmoc"):
                raise
            raise InputError(
                f"this peer needs the package {error.name}, which is not installed: make peers-environment, or "
                f"{install_advice('peers')}"
            ) from None


def _seed(run: RunOptions) -> None:
    import random

    import torch

    random.seed(run.seed)
    torch.manual_seed(run.seed)
    torch.set_num_threads(run.threads)
