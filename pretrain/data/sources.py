"""Training data on disk: which corpus and vector tables does a run read, and how does
it cut them into windows?
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Annotated

import numpy as np
from msgspec import Meta

from elmoc.corpus import MOST_TIMES, Corpus
from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint
from pretrain.data.batches import BatchMaker
from pretrain.data.candidates import CandidateSampler, LogUniformSampler, TargetSampler
from pretrain.data.windows import (
    Order,
    Position,
    TextGroups,
    Window,
    training_windows,
    windows_per_epoch,
)
from pretrain.input_layers import LexiconTable
from pretrain.output_layers import SampleSettings

# Where an epoch reads less of its text than this share, `unread_text` says so.
NEARLY_ALL = 0.95


@dataclass(frozen=True)
class DataConfig:
    """What is read: a corpus directory and the names of two of its vector tables."""

    corpus: Annotated[str, Meta(description="the corpus directory")] = ""
    input_vectors: Annotated[
        str, Meta(description="name of the vector table that the encoder reads")
    ] = "input"
    target_vectors: Annotated[
        str,
        Meta(
            description="name of the vector table that the output layer is trained "
            "against"
        ),
    ] = "target"
    sources: Annotated[
        dict[str, Annotated[float, Meta(ge=0, le=MOST_TIMES)]],
        Meta(
            description="how many times an epoch reads each source of a corpus whose "
            "text is named (see `build_corpus`): 1 unless said; 0 leaves it out; 0.4: "
            "another 40 % each epoch"
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """A corpus, the tables of its input and target vectors, and how windows are cut
    from it (see `TrainConfig`).

    weights: `data.sources`.
    carry_state: whether a window begins in the state of the one before it.
    reads_targets: whether the output layer needs target vectors streamed.
    candidates: which candidates it needs streamed, if any (see `OutputLayerSettings`).
    """

    corpus: Corpus
    inputs: LexiconTable
    targets: LexiconTable
    directions: tuple[str, ...]
    streams: int
    window: int
    mix_shards: int
    seed: int
    weights: Mapping[str, float] = field(default_factory=dict)
    order: Order = "sentences"
    carry_state: bool = True
    reads_targets: bool = True
    candidates: str | SampleSettings | None = None

    @property
    def words_per_update(self) -> int:
        """Words (of each direction) that an update reads: streams times window."""
        return self.streams * self.window

    @cached_property
    def groups(self) -> TextGroups:
        """The groups of text that are shuffled together."""
        return TextGroups(
            self.corpus, self.weights, mix=self.mix_shards, seed=self.seed
        )

    @cached_property
    def updates_per_epoch(self) -> int:
        """Updates of the first epoch; none at all is an `InputError`."""
        return windows_per_epoch(self.groups, streams=self.streams, window=self.window)

    @property
    def unread_text(self) -> str | None:
        """A warning where an epoch leaves much of its text out; None where it reads
        nearly all.
        """
        epoch_tokens = float(self.groups.epoch_tokens)
        share = self.updates_per_epoch * self.words_per_update / epoch_tokens
        if share >= NEARLY_ALL:
            return None
        return (
            f"an epoch reads {share:.0%} of its text, since {self.streams} streams "
            f"take few whole windows of {self.window} words from the shards that are "
            "shuffled together: set a higher train.mix_shards, or use fewer streams"
        )

    @cached_property
    def counts_read(self) -> np.ndarray:
        """float64 [V]: how often an epoch reads each type."""
        if all(weight == 1 for weight in self.weights.values()):
            return self.corpus.counts.astype(np.float64)
        read = np.zeros(self.corpus.types)
        for shard in self.corpus.train:
            ids = self.corpus.read_shard(shard)
            weight = self.weights.get(shard.source, 1.0)
            read += weight * np.bincount(ids, minlength=len(read))
        return read

    @cached_property
    def sampler(self) -> CandidateSampler | None:
        """What finds the candidates of windows, if the output layer asks for any."""
        if self.candidates is None:
            return None
        if isinstance(self.candidates, SampleSettings):
            return LogUniformSampler(
                self.counts_read, settings=self.candidates, seed=self.seed
            )
        return TargetSampler(self.counts_read, targets=self.words_per_update)

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """What names the data of a run, by the setting it comes from: a resumed run has
        to read the same.
        """
        corpus = self.corpus
        shards = [
            (each.file, each.source) for each in chain(corpus.train, corpus.held_out)
        ]
        files = sorted(
            (name, each.whole) for name, each in corpus.record.checksums.items()
        )
        content = repr((len(corpus.train), shards, files))
        names = {
            "data.corpus": fingerprint([content.encode()]),
            "data.input_vectors": table_fingerprint(self.inputs),
        }
        if self.reads_targets:
            names["data.target_vectors"] = table_fingerprint(self.targets)
        return names

    def require_same_data(self, before: Mapping[str, str]) -> None:
        """Raise an `InputError` where the data are others than those with the
        fingerprints `before`.
        """
        now = self.fingerprints
        changed = [name for name in now if before.get(name) != now[name]]
        if changed:
            raise InputError(
                f"the run was started with other data under {', '.join(changed)}: "
                "resume it with that, or start anew"
            )

    def windows(
        self,
        position: Position = Position(),
        *,
        own: slice = slice(None),
    ) -> Iterator[Window]:
        """Training windows of the streams `own`, from a position on, without end.

        Candidates are drawn for all streams.
        """
        windows = training_windows(
            self.groups,
            streams=self.streams,
            window=self.window,
            order=self.order,
            directions=self.directions,
            position=position,
        )
        for window in windows:
            candidates = {}
            if self.sampler is not None:
                candidates = {
                    name: self.sampler.candidates(ids[:, 1:], position, name)
                    for name, ids in window.ids.items()
                }
            # what is drawn for a window comes from its own position
            position = window.next
            rows = {name: each[own] for name, each in window.ids.items()}
            yield Window(rows, position, candidates)

    def batch_maker(self) -> BatchMaker:
        """What makes batches of training windows."""
        return BatchMaker(
            self.inputs,
            self.targets if self.reads_targets else None,
            sampler=self.sampler,
        )


def table_fingerprint(table: LexiconTable) -> str:
    """What tells a table apart from others: its source, type of numbers and
    transform.
    """
    source = table.source
    return (
        f"{source.fingerprint} {source.post_processing} {table.rows.dtype} "
        f"{fingerprint(table.transform.content)}"
    )
