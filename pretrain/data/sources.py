"""Training data on disk: a corpus and its two vector tables, opened and checked, and how a run cuts it into windows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from elmoc.corpus import MOST_TIMES, Corpus
from elmoc.errors import InputError
from elmoc.files.checksums import fingerprint
from elmoc.files.writing import human_bytes
from elmoc.word_vectors.table import VectorTable
from elmoc.word_vectors.transform import VectorTransform
from pretrain.data.batches import ResidentTables, StreamedTables, Tables
from pretrain.data.candidates import CandidateSampler, LogUniformSampler, with_candidates
from pretrain.data.groups import TextGroups, require_sources
from pretrain.data.windows import (
    ANYWHERE,
    ORDERS,
    Cut,
    Position,
    Window,
    held_out_windows,
    require_held_out,
    training_windows,
    unread_text,
    windows_of,
    windows_per_epoch,
)
from pretrain.input_layers import InputLayerSettings, LexiconTable
from pretrain.output_layers import CandidateSettings, SampleSettings, log_frequencies


@dataclass(frozen=True)
class DataConfig:
    """What is read: a corpus directory and the names of two of its vector tables.

    tables_on_device: keep the whole tables on the GPU, where they fit, instead of streaming the rows of each window.
    On a CPU it changes nothing but where a window's vectors are read from.
    sources: how many times an epoch reads each source of a corpus whose text is named (see `build_corpus`): 1 unless
    said, and 0 leaves it out; with 0.4, each epoch reads another 40 %.
    """

    corpus: str = ""
    input_vectors: str = "input"
    target_vectors: str = "target"
    tables_on_device: bool = False
    sources: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, weight in self.sources.items():
            if not 0 <= weight <= MOST_TIMES:
                raise InputError(f"data.sources.{name:.50} must be at least 0 and at most {MOST_TIMES:,}, not {weight}")


def open_sources(
    config: DataConfig, input_layer: InputLayerSettings, *, window: int, reads_targets: bool
) -> tuple[Corpus, LexiconTable, LexiconTable]:
    """The corpus and its input and target tables; raises `InputError` for what is missing, damaged or too small.

    Where no target vectors are read, the input table stands in the place of theirs, which need not be there.
    """
    if not config.corpus:
        raise InputError("data.corpus is not set: name a corpus directory in the config or with --set data.corpus=DIR")
    corpus = Corpus(config.corpus)
    inputs = input_layer.open_table(corpus, config.input_vectors)
    targets = VectorTable(corpus, config.target_vectors) if reads_targets else inputs
    require_held_out(corpus, window)
    require_sources(corpus, config.sources)
    for table in (inputs, targets):
        table.transform  # noqa: B018 (it is read, and so checked, before the run begins)
    return corpus, inputs, targets


@dataclass(frozen=True, kw_only=True)
class TrainingData:
    """A corpus, the tables of its input and target vectors, and how windows are cut from it (see `TrainConfig`).

    `weights`, `order` and `cut` are `data.sources`, `train.order` and `train.cut`. What output layers ask for:
    `reads_targets`, target vectors; `words_ahead`, targets that reach so far (1: the next word); `candidates`, if any.
    `resident` says whether whole tables go to the device, `fixed_sizes` whether every batch has as many candidates.
    """

    corpus: Corpus
    inputs: LexiconTable
    targets: LexiconTable
    directions: tuple[str, ...]
    streams: int
    window: int
    mix_shards: int
    seed: int
    shard_pieces: int = 1
    weights: Mapping[str, float] = field(default_factory=dict)
    order: str = ORDERS[0]
    cut: str = ANYWHERE
    reads_targets: bool = True
    words_ahead: int = 1
    candidates: CandidateSettings | SampleSettings | None = None
    resident: bool = False
    fixed_sizes: bool = False

    @property
    def words_per_update(self) -> int:
        """Words (of each direction) that an update reads: streams times window."""
        return self.streams * self.window

    @cached_property
    def updates_per_epoch(self) -> int:
        """Updates of the first epoch; none at all is an `InputError`."""
        return windows_per_epoch(self.corpus, self.groups, self._cutting)

    @property
    def unread_text(self) -> str | None:
        """What to know of an epoch that leaves much of its text out, in a sentence; None where it reads nearly all."""
        return unread_text(self.groups, self._cutting)

    @cached_property
    def counts(self) -> np.ndarray:
        """float64 [V]: how often an epoch reads each type."""
        if all(weight == 1 for weight in self.weights.values()):
            return self.corpus.counts.astype(np.float64)
        counts = np.zeros(self.corpus.types)
        for shard in self.corpus.train:
            weight = self.weights.get(shard.source, 1.0)
            counts += weight * np.bincount(self.corpus.read_shard(shard), minlength=self.corpus.types)
        return counts

    @cached_property
    def sampler(self) -> CandidateSampler | LogUniformSampler | None:
        """What finds the candidates of windows, where output layers ask for them."""
        if self.candidates is None:
            return None
        counts, targets = self.corpus.counts, self.streams * (self.window + self.words_ahead - 1)
        if isinstance(self.candidates, SampleSettings):
            return LogUniformSampler(counts, targets=targets, settings=self.candidates, seed=self.seed)
        return CandidateSampler(counts, read=self.counts, targets=targets, settings=self.candidates, seed=self.seed)

    @cached_property
    def groups(self) -> TextGroups:
        """The groups of text that are shuffled together."""
        return TextGroups(
            self.corpus,
            self.weights,
            mix=self.mix_shards,
            seed=self.seed,
            pieces=self.shard_pieces,
            whole_documents=self.order == "documents",
        )

    @property
    def _cutting(self) -> Cut:
        return Cut(self.streams, self.window, self.order, self.cut, self.words_ahead)

    @property
    def most_tokens_together(self) -> int:
        """Tokens that are shuffled together, at most."""
        return self.groups.most_tokens

    @cached_property
    def fingerprints(self) -> dict[str, str]:
        """What names the data of a run, by the setting it comes from: a resumed run has to read the same.

        Keys with brackets came later (see `require_same_data`); a corpus from before there were checksums has no text.
        """
        tables = {"data.input_vectors": self.inputs}
        if self.reads_targets:
            tables["data.target_vectors"] = self.targets
        content = [self.corpus.lexicon_fingerprint, str(self.corpus.train_tokens), *filter(None, self.corpus.sources)]
        return (
            {"data.corpus": " ".join(content)}
            | {
                key: f"{table.source.fingerprint} {table.source.post_processing} {table.rows.dtype}"
                for key, table in tables.items()
            }
            | {ORDER: "sources in proportion"}
            | fingerprints_of_shards(self.corpus)
            | {f"{key} (transform)": fingerprint_of_transform(table.transform) for key, table in tables.items()}
        )

    def require_same_data(self, before: Mapping[str, str]) -> None:
        """Raise an `InputError` where the data are others than those with the fingerprints `before`.

        Checkpoints of older versions have fewer fingerprints: those are compared that both have. Those of versions that
        read the text in another order are refused.
        """
        if ORDER not in before:
            raise InputError(
                "the run was started by an older version, which read the text in another order: finish it with that "
                "version, or start a new run, which may go on from its model (--init-from)"
            )
        changed = [key for key, name in self.fingerprints.items() if before.get(key, name) != name]
        if changed:
            settings = ", ".join(dict.fromkeys(key.partition(" ")[0] for key in changed))
            raise InputError(
                f"the run was started with other data under {settings}: resume it with that, or start a new run"
            )

    def require_position(self, position: Position) -> None:
        """Raise an `InputError` when there is no such window, as in a corpus that a run was not started with."""
        groups, place = self.groups, position.shard
        tokens = groups.group(position.epoch, place).tokens if place < groups.count else 0
        windows = windows_of(tokens, self.streams, self.window, self.words_ahead)
        if self.cut != ANYWHERE:  # there are more of them, which only the text says
            windows = tokens // self.streams
        if place > groups.count or position.window >= max(1, windows):
            raise InputError(
                f"window {position.window} of group {place}, with which the run goes on, is not in {self.corpus.path}: "
                "resume it with the corpus that it was started with"
            )

    def expected_distinct(self, words: int) -> int:
        """About how many distinct types so many words of the training text are."""
        return round(float(-np.expm1(words * np.log1p(-np.exp(log_frequencies(self.corpus.counts)))).sum()))

    @property
    def bytes_in_memory(self) -> int:
        """Bytes of tables that are not memory-mapped."""
        tables = {table.path: table.rows for table in (self.inputs, self.targets)}
        return sum(rows.nbytes for rows in tables.values() if not isinstance(rows, np.memmap))

    @property
    def table_bytes(self) -> int:
        """Bytes of the tables, one that is both counted once."""
        return sum({table.path: table.rows.nbytes for table in (self.inputs, self.targets)}.values())

    def windows(
        self,
        position: Position = Position(),  # noqa: B008 (it is frozen)
        *,
        directions: Sequence[str] | None = None,
        own: slice = slice(None),
    ) -> Iterator[Window]:
        """Training windows from a position on, without end: of all directions or some, and of `own` streams."""
        windows = training_windows(
            self.corpus,
            self.groups,
            self._cutting,
            directions=self.directions if directions is None else tuple(directions),
            position=position,
            own=own if self.sampler is None else slice(None),
        )
        return windows if self.sampler is None else with_candidates(windows, self.sampler, position, own)

    def held_out_windows(self, *, words: int, most_streams: int, source: str = "") -> Iterator[dict[str, np.ndarray]]:
        """Ids [B, T + 1] for each direction of `words` held-out tokens of a source, whatever the run trains on.

        They are read in at most `most_streams` streams; see `held_out_windows`.
        """
        return held_out_windows(
            self.corpus,
            streams=most_streams,
            window=self.window,
            directions=self.directions,
            words=words,
            source=source,
            at=self.cut,
        )

    def tables(self, device: torch.device, *, resident: bool | None = None) -> Tables:
        """The tables where batches take their vectors from: streamed to the device, or on it as a whole."""
        targets = self.targets if self.reads_targets else None
        if self.resident if resident is None else resident:
            return ResidentTables(self.inputs, targets, device, sampler=self.sampler, fixed_sizes=self.fixed_sizes)
        return StreamedTables(self.inputs, targets, sampler=self.sampler, fixed_sizes=self.fixed_sizes)

    @property
    def held_out_tables(self) -> Tables:
        """The table of what is read of held-out words; the words to predict are scored by their ids."""
        return StreamedTables(self.inputs, None)

    def require_device_memory(self, device: torch.device) -> None:
        """Raise an `InputError` when the tables do not fit into the free memory of a GPU."""
        if device.type == "cpu":
            return
        free, _ = torch.cuda.mem_get_info(device)
        if self.table_bytes > free:
            raise InputError(
                f"data.tables_on_device is true, but the vector tables need {human_bytes(self.table_bytes)} and "
                f"{device} has {human_bytes(free)} free: set it to false, and their rows are streamed"
            )


ORDER = "data.corpus (order)"
"""A fingerprint that checkpoints of versions before have not: these shuffled the same text in another order."""


def fingerprints_of_shards(corpus: Corpus) -> dict[str, str]:
    """What names the shards of a corpus, held-out ones included, in their order: their sizes, and what is in them."""
    shards = [*corpus.train, *corpus.held_out]
    sizes = [(shard.tokens, shard.sentences, shard.documents, shard.source) for shard in shards]
    names = {"data.corpus (shards)": fingerprint(repr((len(corpus.train), sizes)).encode())}
    checksums = corpus.record.checksums
    files = [file for shard in shards for file in (shard.file, shard.documents_file)]
    if all(file in checksums for file in files):
        names["data.corpus (text)"] = fingerprint(*(checksums[file].whole.encode() for file in files))
    return names


def fingerprint_of_transform(transform: VectorTransform) -> str:
    """What names the numbers of a transform."""
    arrays = transform.arrays
    return fingerprint(*(part for name in sorted(arrays) for part in (name.encode(), arrays[name].tobytes())))
