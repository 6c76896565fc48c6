"""Dumping features: how a file of sentences becomes a feature file of their layer states."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from elmoc.batches import BUFFER_WORDS
from elmoc.errors import InputError, shortened
from elmoc.features.dumping.buffers import (
    Buffer,
    CarriedReading,
    Encoded,
    EncodedPiece,
    Reading,
    SeparateReading,
    naming,
    refuse_unknown,
)
from elmoc.features.dumping.input import ContentDigest, Line, SentenceInput, opened_input, survey
from elmoc.features.dumping.options import DumpOptions, LayerSelection, layer_selection
from elmoc.features.dumping.pipeline import run_pipeline
from elmoc.features.dumping.ranks import Ranks, require_identity
from elmoc.features.layout_names import LAYOUT_NAMES
from elmoc.features.layouts.sentence import FeatureShape
from elmoc.features.numbers import converted
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import FeatureWriter, write_features
from elmoc.files.checksums import fingerprint
from elmoc.files.locks import unfinished_path
from elmoc.files.writing import human_bytes, refuse_existing, require_space
from elmoc.model import ElmoC
from elmoc.progress import progress_bar

BUFFER_BYTES = 5 << 27
"""Of the layer states that are in memory before they are written: 50,000 words at the paper's size, with all layers.

The next ones are computed meanwhile.
"""
CHECKPOINT_SECONDS = 30.0
"""Between two points from which a killed dump can go on."""
DEFAULT, ALONE = DumpOptions(), Ranks()


def dump_features(
    model: ElmoC,
    sentences: Path | str,
    output: Path | str,
    options: DumpOptions = DEFAULT,
    *,
    ranks: Ranks = ALONE,
) -> None:
    """Write the layer states of every sentence of a file to `output`, in order.

    Args:
        model: the encoder.
        sentences: text, one tokenised sentence a line, or documents as JSON lines (see `JsonlinesInput`); `-` is
            standard input.
        output: the feature file; it must not exist, unless a dump that is finished already is resumed.
        options: what is dumped.
        ranks: which share of the sentences this process dumps; the last one to finish makes `output`.

    Raises:
        InputError: bad input, or not enough disk.
    """
    dump_several(model, [(sentences, output)], options, ranks=ranks)


def dump_several(
    model: ElmoC,
    pairs: Iterable[tuple[Path | str, Path | str]],
    options: DumpOptions = DEFAULT,
    *,
    ranks: Ranks = ALONE,
) -> None:
    """`dump_features` of each pair of sentences and output; all sentences are looked at before any are dumped."""
    with ExitStack() as stack:
        dumps = []
        for sentences, output in pairs:
            source = opened_input(
                sentences,
                ranks.part(output),
                documents=LAYOUT_NAMES[options.layout].needs_documents,
                blank_lines_divide=options.carry_state,
                keep_blank=options.allow_empty,
            )
            dumps.append(Dump(model, stack.enter_context(source), output, options, ranks))
        require_space_for(dumps)
        for dump in dumps:
            dump.run()


def require_space_for(dumps: Sequence["Dump"]) -> None:
    """Raise an `InputError` where a folder has no room for all the files of which nothing is there yet."""
    folders: dict[Path, list[Dump]] = {}
    for dump in dumps:
        if not any(path.exists() for path in (Path(dump.output), dump.part, unfinished_path(dump.part))):
            folders.setdefault(dump.part.parent, []).append(dump)
    for members in folders.values():
        require_space(members[0].part, sum(dump.needed for dump in members))


def buffer_words(model: ElmoC, selection: LayerSelection, batch_words: int) -> int:
    """How many words are encoded before the first of them are written."""
    return max(batch_words, min(BUFFER_WORDS, BUFFER_BYTES // (4 * len(selection.names) * model.width)))


class Dump:
    """One dump of one input by one process; see `dump_features`."""

    def __init__(
        self, model: ElmoC, source: SentenceInput, output: Path | str, options: DumpOptions, ranks: Ranks
    ) -> None:
        self.model, self.source, self.output, self.options, self.ranks = model, source, output, options, ranks
        self.part = ranks.part(output)
        self.selection = layer_selection(options.layers, model.layers)
        self.survey = survey(
            source, allow_empty=options.allow_empty, found_by_words=options.found_by_words, warn=ranks.rank == 0
        )
        self.share = self.survey.shares(ranks.world_size)[ranks.rank]
        self.identity = self._identity()

    @property
    def size(self) -> int:
        """Of the layer states of this process's share, in bytes."""
        numbers = self.share.words * len(self.selection.names) * self.model.width
        return numbers * np.dtype(self.options.dtype).itemsize

    @property
    def needed(self) -> int:
        """The most that its file takes, in bytes."""
        return int(self.size * 1.01) + 1000 * len(self.share.sentences)

    def run(self) -> None:
        """Write this process's part, and join all parts where it is the last one."""
        if self._is_there(Path(self.output)):
            self._refuse_links()
            return
        self.ranks.refuse_other_parts(self.output)
        if self.ranks.alone or not self._is_there(self.part):
            self._write()
        if not self.ranks.alone:
            joined = self.ranks.join(self.output, self.identity, merge=self.options.merge)
            said = f"{self.output} is finished" if joined else "the process that ends last joins the parts"
            print(f"rank {self.ranks.rank}: {self.part.name} is finished; {said}")

    def _refuse_links(self) -> None:
        """An `InputError` where all was to be in one file, and the finished output links to its parts."""
        if self.options.merge:
            with FeatureFile(self.output) as file:
                if len(file.files) > 1:
                    raise InputError(
                        f"{self.output} is finished, and links to its parts: remove it, but not the folder of its "
                        "parts, and the same command merges them"
                    )

    def _is_there(self, path: Path) -> bool:
        """Whether a finished file of this dump is there; another one, or one that is not to be resumed, is refused."""
        if not self.options.resume:
            refuse_existing(path)
        if not path.exists():
            return False
        require_identity(path, self.identity)
        print(f"{path} is finished already")
        return True

    def _write(self) -> None:
        options, sentences, words = self.options, len(self.share.sentences), self.share.words
        shape = FeatureShape(
            layers=len(self.selection.names),
            width=self.model.width,
            dtype=options.dtype,
            single=self.selection.single,
            words=words,
        )
        self._say(
            f"{sentences:,} sentences, {words:,} words, layers {', '.join(self.selection.names)}, {options.dtype}: "
            f"about {human_bytes(self.size)}"
        )
        with write_features(
            self.part,
            self._attributes(),
            shape=shape,
            layout=options.layout,
            compress=options.compress,
            sentence_map=options.sentence_map,
            sentence_keys=options.sentence_keys,
            resume=options.resume,
        ) as writer:
            require_space(self.part, self.needed * (sentences - writer.sentences) // sentences)
            self._fill(writer)
        self._say(f"{self.part}: {human_bytes(self.part.stat().st_size)}")

    def _fill(self, writer: FeatureWriter) -> None:
        """Read, encode and write the sentences that are not in the file yet."""
        first, written = self.share.sentences.start, writer.sentences
        reading = self._reading()
        sink = Sink(writer, self.options.dtype, self.source.name, first)
        if written:
            self._say(f"going on after {written:,} sentences")

        def buffers() -> Iterator[Buffer]:
            for buffer in reading.buffers(self._lines(), first=first, written=first + written):
                if self.options.unknown == "error" and not buffer.written:
                    refuse_unknown(self.model, self.source.name, buffer)
                yield buffer

        def encode(buffer: Buffer) -> Iterator[Encoded | EncodedPiece]:
            if buffer.written:
                progress.initial += buffer.words
                progress.update(buffer.words)
                return
            with naming(self.source.name, buffer):
                yield from reading.encode(buffer, progress.update)

        with progress_bar(
            total=self.share.words,
            unit=" words",
            unit_scale=True,
            desc="dump-features",
            disable=self.ranks.rank > 0,
        ) as progress:
            try:
                run_pipeline(buffers(), encode, sink)
            except KeyboardInterrupt:
                if writer.sentences:
                    sink.checkpoint()
                if writer.can_go_on:
                    print("what is done is kept: the same command with --resume goes on", file=sys.stderr)
                raise

    def _lines(self) -> Iterator[Line]:
        """The lines of this process's share; the others are read too, and an input that has changed is refused."""
        digest = ContentDigest()
        for index, line in enumerate(self.source):
            digest.update(line)
            if index in self.share.sentences:
                yield line
        if digest.hexdigest() != self.survey.fingerprint:
            raise InputError(f"{self.source.name} has changed while it was dumped: run the command again")

    def _reading(self) -> Reading:
        words = buffer_words(self.model, self.selection, self.options.batch_words)
        if self.options.carry_state:
            self.model.require_carried_state()
        kind = CarriedReading if self.options.carry_state else SeparateReading
        return kind(self.model, words, self.options.batch_words, self.options.batch_size, self.selection.select)

    def _attributes(self) -> dict[str, Any]:
        return {
            **self.model.describe(),
            **({} if self.model.training_words is None else {"training_words": self.model.training_words}),
            "layers": self.selection.names,
            "carry_state": self.options.carry_state,
            "input": self.survey.fingerprint,
            "dump": self.identity,
            "command_line": self.options.command_line,
        }

    def _identity(self) -> str:
        """A hash of all that the content of the output depends on."""
        options = self.options
        encoder = self.model.encoder.config.to_dict()  # weights do not tell clips, residual connections, or heads
        parts = (
            *self.model.describe().values(),
            *(value for name, value in encoder.items() if name != "dropout"),
            *self.selection.names,
            *(options.dtype, options.layout, options.compress, options.sentence_map, options.sentence_keys),
            *(options.carry_state, self.survey.fingerprint),
        )
        return fingerprint(*(str(part).encode() for part in parts))

    def _say(self, what: str) -> None:
        if self.ranks.rank == 0:
            print(what, flush=True)


class Sink:
    """The last stage of a dump: converts layer states and writes them; called in one thread."""

    def __init__(self, writer: FeatureWriter, dtype: str, name: str, first: int) -> None:
        self._writer, self._dtype, self._name = writer, dtype, name
        self._written = first + writer.sentences
        self._slab: Any = None
        self._due = time.monotonic() + CHECKPOINT_SECONDS

    def __call__(self, item: Encoded | EncodedPiece) -> None:
        """Write what is not in the file yet."""
        if isinstance(item, EncodedPiece):
            self._write_piece(item)
        else:
            for index, (line, states) in enumerate(zip(item.lines, item.states, strict=True), item.first):
                if index >= self._written:
                    self._writer.add(line.sentence, self._converted(states.numpy(), line))
        if self._slab is None and time.monotonic() >= self._due:
            self.checkpoint()

    def _write_piece(self, item: EncodedPiece) -> None:
        if item.first < self._written:
            return
        if self._slab is None:
            self._slab = self._writer.start(item.line.sentence)
        if item.piece is None:
            self._slab = None
            return
        start, columns, states = item.piece
        array = self._converted(states.numpy(), item.line)
        self._slab.put(start, start + array.shape[-2], columns, array)

    def checkpoint(self) -> None:
        """Have a killed dump go on from here, unless this is in the middle of a sentence."""
        if self._slab is None:
            self._writer.checkpoint()
            self._due = time.monotonic() + CHECKPOINT_SECONDS

    def _converted(self, states: np.ndarray, line: Line) -> np.ndarray:
        what = f'{self._name}, {line.where} ("{shortened(line.sentence.line)}")'
        return converted(states, self._dtype, what)
