"""Dumping: how a file of sentences becomes a feature file of their layer states.

A file is read twice. First its sentences are counted and checked (`survey`). Then they
are read in parts of some thousand; the layer states of a part are encoded in batches,
and written one behind the other into the folder `.NAME.parts` beside the output.
Process r of n makes the parts r, r + n, …; to resume is to skip the parts that are
there. At the end the first process copies the parts, in order, into the output.
"""

import math
import shutil
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec
import numpy as np
import xxhash
from torch import Tensor, distributed

from elmoc.batches import buffered
from elmoc.errors import InputError, human_bytes, reading, say
from elmoc.features.layouts import Entry, FeatureShape
from elmoc.features.options import DumpOptions
from elmoc.features.reader import LAYOUTS, FeatureFile
from elmoc.files.writing import atomic_path, locked
from elmoc.model import ElmoC
from elmoc.process import progress_bar, wait_for_all
from elmoc.settings import checked
from elmoc.stopping import Stopped, noted_signals
from elmoc.text.documents import AnySource
from elmoc.text.sentences import (
    Sentence,
    SentenceInput,
    opened_input,
    survey,
)

# Words of a part at most: enough for batches of sentences of similar length.
PART_WORDS = 50_000
# Bytes of the layer states of a part at most, which are in memory while the next part
# is encoded: 50,000 words at the paper's size, with all layers.
PART_BYTES = 5 << 27
# Bytes of the hash at the end of a part.
_HASH_BYTES = 8


def dump_features(
    model: ElmoC,
    files: Iterable[tuple[AnySource, Path | str]],
    options: DumpOptions = DumpOptions(),
    *,
    command_line: str = "",
) -> None:
    """Write the layer states of every sentence of files, in order; all are looked at
    before any are dumped.

    Where `torch.distributed` is initialised, its processes, which share a file system,
    make one file together.

    Args:
        model: the encoder.
        files: pairs of sentences and output. Sentences are tokenised text of any kind
            (see `read_documents`), one sentence a line, or lists of words; `-` is
            standard input. The output must not exist, unless a dump that is finished
            already is resumed. It is described in docs/features.md.
        options: what is dumped.
        command_line: recorded in the files.

    Raises:
        InputError: bad input, or not enough disk; it names the file, and the line.
    """
    options = checked(options)
    is_first = _rank_and_world_size()[0] == 0
    with ExitStack() as stack:
        dumps = []
        for source, output in files:
            output = Path(output)
            if is_first:
                stack.enter_context(locked(output, new=not options.resume))
                if parts_of(output) and not options.resume:
                    raise InputError(
                        f"{output} was begun by a command that did not end: give that "
                        "command --resume (in Python resume=True) to go on, or remove "
                        f"{parts_folder(output)} to begin anew"
                    )
            needs_documents = LAYOUTS[options.layout].needs_documents
            opened = opened_input(source, options, needs_documents=needs_documents)
            sentences = stack.enter_context(opened)
            dumps.append(Dump(model, sentences, output, options, command_line))
        if dumps and is_first:
            _require_room(dumps)
        for dump in dumps:
            dump.run()


def parts_folder(output: Path) -> Path:
    """The folder of the parts of an output."""
    return output.with_name(f".{output.name}.parts")


def parts_of(output: Path) -> list[Path]:
    """The parts of an output that an earlier dump has left, which can be resumed."""
    return list(parts_folder(output).glob("*.part"))


def words_of_a_part(batch_words: int, numbers_a_word: int) -> int:
    """After how many words a part ends."""
    return max(batch_words, min(PART_WORDS, PART_BYTES // (4 * numbers_a_word)))


def _rank_and_world_size() -> tuple[int, int]:
    """Which of the processes that dump together this is, and their number."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _require_room(dumps: Sequence["Dump"]) -> None:
    """Raise an `InputError` where the disk has too little room for what is begun."""
    # A dataset of HDF5 takes some hundred bytes beside its numbers.
    sizes = [
        int(1.01 * dump.size) + 1000 * dump.survey.sentences
        for dump in dumps
        if not dump.output.exists() and not parts_of(dump.output)
    ]
    # All outputs, and beside them the parts of one.
    needed = sum(sizes) + max(sizes, default=0)
    folder = dumps[0].output.parent
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise InputError(
            f"{folder} has {human_bytes(free)} free, about {human_bytes(needed)} are "
            "needed"
        )


class Dump:
    """One dump of one input; see `dump_features`.

    output: the feature file.
    survey: the numbers of its sentences and words.
    size: bytes of its layer states.
    """

    def __init__(
        self,
        model: ElmoC,
        source: SentenceInput,
        output: Path,
        options: DumpOptions,
        command_line: str,
    ) -> None:
        self.output = output
        self._model = model
        self._source = source
        self._options = options
        self._command_line = command_line
        self._rank, self._world_size = _rank_and_world_size()
        by_words = LAYOUTS[options.layout].found_by_words and options.sentence_map
        self.survey = survey(source, found_by_words=by_words, tell=self._rank == 0)
        self._chosen = model.choose_layers(options.layers)
        self._shape = FeatureShape(
            layers=len(self._chosen.names),
            width=model.width,
            dtype=options.dtype,
            single=options.layers in ("top", "average"),
            words=self.survey.words,
        )
        word_numbers = math.prod(self._shape.of(1))
        self._part_words = words_of_a_part(options.batch_words, word_numbers)
        self.size = self.survey.words * word_numbers * np.dtype(options.dtype).itemsize
        self._identity = self._make_identity(self.survey.fingerprint)
        # Parts of another size begin with other sentences. What they are of stands in
        # their names, too: where a text was edited, parts before that stay good.
        self._key = f"{self._make_identity('')}-{self._part_words}"

    def _make_identity(self, input_hash: str) -> str:
        """A hash of all that an output depends on, with the hash of its input."""
        options = self._options
        content = [
            self._model.identity,
            self._chosen.names,
            [options.dtype, options.layout, options.sentence_map],
            options.boundaries,
            input_hash,
        ]
        return xxhash.xxh3_64_hexdigest(msgspec.json.encode(content))

    def run(self) -> None:
        """Write the parts of this process and, in the first process, the output."""
        if self._rank == 0:
            self._begin()
        wait_for_all(self._world_size)
        if self.output.exists():
            return
        try:
            parts, content = self._write_parts()
            wait_for_all(self._world_size)
            if self._rank == 0:
                # Processes may have read it before and after it changed.
                is_whole = all(part.exists() for part in parts)
                if content != self.survey.fingerprint or not is_whole:
                    raise InputError(
                        f"{self._source.path} has changed while it was dumped: the "
                        "same command with --resume goes on, and keeps what is the same"
                    )
                self._merge(parts)
        finally:
            # Nothing is left of a dump that failed before its first part was whole.
            if self._rank == 0 and not parts_of(self.output):
                shutil.rmtree(parts_folder(self.output), ignore_errors=True)

    def _begin(self) -> None:
        """Make the folder of the parts, or see whether the parts that are there are of
        this dump.
        """
        folder = parts_folder(self.output)
        if self.output.exists():
            with FeatureFile(self.output) as file:
                if file.record.dump != self._identity:
                    raise InputError(
                        f"{self.output} exists already, of another model, input or "
                        "options: remove it"
                    )
            # A kill may have come while the parts were removed.
            shutil.rmtree(folder, ignore_errors=True)
            say(f"{self.output} is finished already")
            return
        found = parts_of(self.output)
        if not all(part.name.startswith(self._key) for part in found):
            raise InputError(
                f"{self.output} was begun with another model or options: "
                f"give what was given before, or remove {folder} to begin anew"
            )
        folder.mkdir(parents=True, exist_ok=True)
        going_on = f"; going on with {len(found)} parts" if found else ""
        say(
            f"{self.survey.sentences:,} sentences, {self.survey.words:,} words, "
            f"layers {', '.join(self._chosen.names)}, {self._shape.dtype}: about "
            f"{human_bytes(self.size)}{going_on}"
        )

    def _write_parts(self) -> tuple[list[Path], str]:
        """Write the parts of this process that are not there yet, each while the next
        is encoded.

        Returns:
            The parts of all processes, in order, and the hash of all that was read.
        """
        folder = parts_folder(self.output)
        paths: list[Path] = []
        digest = xxhash.xxh3_64()
        # A part has the same sentences wherever a dump goes on: so batches, and numbers
        # to the last bit, are the same.
        parts = buffered(
            self._source, lambda sentence: sentence.length, most=self._part_words
        )
        with (
            progress_bar(
                total=self.survey.words,
                unit=" words",
                unit_scale=True,
                desc="dump-features",
                disable=self._rank > 0,
            ) as progress,
            ThreadPoolExecutor(1) as writing,
        ):
            # Nothing is being written yet.
            written: Future[None] = writing.submit(lambda: None)
            for number, sentences in enumerate(parts):
                content = b"".join(sentence.content for sentence in sentences)
                digest.update(content)
                of_part = xxhash.xxh3_64_hexdigest(content)
                path = folder / f"{self._key}-{number:08}-{of_part}.part"
                paths.append(path)
                is_own = number % self._world_size == self._rank
                if is_own:
                    # Also of a part that is there: the last bits of a word's vector
                    # depend on the words that are looked up with it.
                    rows = self._model.look_up(each.tokens for each in sentences)
                if not is_own or _is_whole(path):
                    progress.update(sum(each.length for each in sentences))
                    continue
                encoded = self._model.encode(
                    rows,
                    batch_words=self._options.batch_words,
                    batch_size=self._options.batch_size,
                    progress=progress.update,
                    select=self._chosen.select,
                    boundaries=self._options.boundaries,
                )
                written.result()
                written = writing.submit(self._write_part, path, sentences, encoded)
                # Only the writer needs it: two parts are in memory, not three.
                del encoded
            written.result()
        return paths, digest.hexdigest()

    def _write_part(
        self,
        path: Path,
        sentences: Sequence[Sentence],
        states: Sequence[Tensor],
    ) -> None:
        """Write a part: a line of JSON with its entries, the states of the sentences
        one behind the other, and a hash of its name and all of these.
        """
        entries = [Entry(each.length, each.line, each.document) for each in sentences]
        record = msgspec.json.encode(entries) + b"\n"
        digest = xxhash.xxh3_64(path.name.encode() + record)
        with (
            atomic_path(path, sync=False) as unfinished,
            open(unfinished, "wb") as file,
        ):
            file.write(record)
            for sentence, tensor in zip(sentences, states, strict=True):
                with reading(sentence.where):
                    array = converted(tensor.numpy(), self._shape.dtype)
                numbers = np.ascontiguousarray(array).data
                digest.update(numbers)
                file.write(numbers)
            file.write(digest.digest())

    def _read_part(self, path: Path) -> Iterator[tuple[Entry, np.ndarray]]:
        """The sentences of a part and their states."""
        dtype = np.dtype(self._shape.dtype)
        with open(path, "rb") as file:
            for entry in msgspec.json.decode(file.readline(), type=list[Entry]):
                shape = self._shape.of(entry.length)
                numbers = file.read(math.prod(shape) * dtype.itemsize)
                yield entry, np.frombuffer(numbers, dtype).reshape(shape)

    def _merge(self, parts: Sequence[Path]) -> None:
        """Copy the parts into the output, and remove them."""
        options = self._options
        attributes: dict[str, object] = {
            **self._model.identity,
            "layers": self._chosen.names,
            "input": self.survey.fingerprint,
            "dump": self._identity,
            "command_line": self._command_line,
        }
        if self._model.training_words is not None:
            attributes["training_words"] = self._model.training_words
        if options.boundaries:
            attributes["boundaries"] = True
        opened = LAYOUTS[options.layout].open(
            self.output,
            attributes,
            shape=self._shape,
            sentence_map=options.sentence_map,
        )
        # Between two sentences: the library of HDF5 crashes where an exception breaks
        # into it.
        with noted_signals() as noted, opened as writer:
            for part in parts:
                for entry, states in self._read_part(part):
                    writer.add(entry, states)
                    if noted:
                        raise Stopped(noted[0])
        shutil.rmtree(parts_folder(self.output))
        say(f"{self.output}: {human_bytes(self.output.stat().st_size)}")


def _is_whole(path: Path) -> bool:
    """Whether a part is there as it was written."""
    if not path.exists() or path.stat().st_size <= _HASH_BYTES:
        return False
    content = np.memmap(path, np.uint8, "r")
    digest = xxhash.xxh3_64(path.name.encode())
    digest.update(content[:-_HASH_BYTES].data)
    return digest.digest() == content[-_HASH_BYTES:].tobytes()


def converted(states: np.ndarray, dtype: str) -> np.ndarray:
    """The layer states of a sentence in the type of a file.

    Raises:
        InputError: numbers are too large for the type.
    """
    try:
        # NumPy itself would write infinity, and warn.
        with np.errstate(over="raise"):
            return states.astype(dtype, copy=False)
    except FloatingPointError:
        raise InputError(
            f"the layer states are too large for {dtype}: write another type"
        ) from None
