"""Dumping: how a file of sentences becomes a feature file of their layer states.

The sentences are counted, and then read in parts of some thousand. The layer states of
a part are encoded in batches, and written one behind the other as an array into the
folder `.NAME.parts` beside the output. Process r of n makes the parts r, r + n, …; to
resume is to skip the parts that are there. At the end the first process copies the
parts, in order, into the output.
"""

import math
import shutil
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path

import numpy as np
import xxhash
from torch import Tensor, distributed

from elmoc.batches import buffered, length_bucketed
from elmoc.encoders.inference import CarriedState
from elmoc.errors import InputError, human_bytes, reading, say
from elmoc.features.layouts import LAYOUTS
from elmoc.features.layouts.interface import FeatureShape, converted
from elmoc.features.options import DumpOptions
from elmoc.features.reader import FeatureFile
from elmoc.files.writing import atomic_path, locked, refuse_existing
from elmoc.model import ElmoC
from elmoc.process import progress_bar
from elmoc.settings import checked
from elmoc.text.sentences import Sentence, SentenceInput, count_words, opened_input
from elmoc.text.survey import survey

# Words of a part at most: enough for batches of sentences of similar length.
PART_WORDS = 50_000
# Layer states of a part, in memory while the next part is encoded: 50,000 words at the
# paper's size, with all layers.
PART_BYTES = 5 << 27

Progress = Callable[[int], object]


DEFAULT = DumpOptions()


def dump_features(
    model: ElmoC,
    pairs: Iterable[tuple[Path | str, Path | str]],
    options: DumpOptions = DEFAULT,
    *,
    command_line: str = "",
) -> None:
    """Write the layer states of every sentence of files, in order; all are looked at
    before any are dumped.

    Where `torch.distributed` is initialised, its processes, which share a file system,
    make one file together.

    Args:
        model: the encoder.
        pairs: of sentences and output. Sentences are text, one tokenised sentence a
            line, or documents as JSON lines (see `SentenceInput`); `-` is standard
            input. The output must not exist, unless a dump that is finished already is
            resumed.
        options: what is dumped.
        command_line: recorded in the files.

    Raises:
        InputError: bad input, or not enough disk.
    """
    options = checked(options)
    with ExitStack() as stack:
        dumps = []
        for sentences, output in pairs:
            source = opened_input(
                sentences,
                documents=LAYOUTS[options.layout].needs_documents,
                carry_state=options.carry_state,
                allow_empty=options.allow_empty,
                boundaries=options.boundaries,
            )
            dumps.append(
                Dump(
                    model,
                    stack.enter_context(source),
                    Path(output),
                    options,
                    command_line,
                )
            )
        new = [
            dump
            for dump in dumps
            if not (dump.output.exists() or parts_of(dump.output))
        ]
        sizes = [int(1.01 * dump.size) + 1000 * dump.survey.sentences for dump in new]
        if sizes:  # all outputs, and beside them the parts of one
            folder = dumps[0].output.parent
            needed = sum(sizes) + max(sizes)
            folder.mkdir(parents=True, exist_ok=True)
            if (free := shutil.disk_usage(folder).free) < needed:
                raise InputError(
                    f"{folder} has {human_bytes(free)} free, about {human_bytes(needed)} are needed"
                )
        for dump in dumps:
            dump.run()


def parts_folder(output: Path) -> Path:
    """The folder of the parts of an output."""
    return output.with_name(f".{output.name}.parts")


def parts_of(output: Path) -> list[Path]:
    """The parts of an output that an earlier dump has left, with which it can be gone
    on.
    """
    return list(parts_folder(output).glob("*.part"))


def refuse_output(output: Path) -> None:
    """Raise an `InputError` where a dump that does not resume finds its output, or
    parts of it.
    """
    refuse_existing(output)
    if parts_of(output):
        raise InputError(
            f"{output} was begun by a command that did not end: give that command --resume (in Python resume=True) to "
            f"go on, or remove {parts_folder(output)} to begin anew"
        )


def words_of_a_part(batch_words: int, numbers_a_word: int) -> int:
    """After how many words a part ends."""
    return max(batch_words, min(PART_WORDS, PART_BYTES // (4 * numbers_a_word)))


class Dump:
    """One dump of one input; see `dump_features`."""

    def __init__(
        self,
        model: ElmoC,
        source: SentenceInput,
        output: Path,
        options: DumpOptions,
        command_line: str,
    ) -> None:
        together = distributed.is_available() and distributed.is_initialized()
        self.rank, self.world_size = (
            (distributed.get_rank(), distributed.get_world_size())
            if together
            else (0, 1)
        )
        self.model = model
        self.source = source
        self.output = output
        self.options = options
        self.command_line = command_line
        by_words = LAYOUTS[options.layout].found_by_words and options.sentence_map
        self.changed = (
            Path(source.path).stat().st_mtime_ns if Path(source.path).exists() else 0
        )
        self.survey = survey(source, found_by_words=by_words, warn=self.rank == 0)
        self.names, self.select = model.sentence_encoder.choose_layers(options.layers)
        self.shape = FeatureShape(
            layers=len(self.names),
            width=model.width,
            dtype=options.dtype,
            single=options.layers in ("top", "average"),
            words=self.survey.words,
        )
        self.part_words = words_of_a_part(
            options.batch_words, len(self.names) * model.width
        )
        self.size = (
            math.prod(self.shape.of(self.survey.words))
            * np.dtype(options.dtype).itemsize
        )  # in bytes
        self.identity = self._identity()
        # parts of another size begin with other sentences
        self.key = f"{self.identity}-{self.part_words}"

    def run(self) -> None:
        """Write the parts of this process and, in the first process, the output."""
        with locked(self.output) if self.rank == 0 else nullcontext():
            if self.rank == 0:
                self._begin()
            self._wait_for_all()
            if self.output.exists():
                return
            try:
                self._write_parts()
                self._wait_for_all()
                if self.rank == 0:
                    self._merge()
            finally:
                if self.rank == 0 and not parts_of(self.output):
                    shutil.rmtree(parts_folder(self.output), ignore_errors=True)

    def _wait_for_all(self) -> None:
        if (
            self.world_size > 1
        ):  # a process may end at once after it, which it must not after a plain barrier
            distributed.monitored_barrier()

    def _begin(self) -> None:
        """Make the folder of the parts, or see whether the parts that are there are of
        this dump.
        """
        if not self.options.resume:
            refuse_output(self.output)
        folder = parts_folder(self.output)
        found = parts_of(self.output)
        if self.output.exists():
            with FeatureFile(self.output) as file:
                if file.attributes.get("dump") != self.identity:
                    raise InputError(
                        f"{self.output} exists already, of another model, input or options: remove it"
                    )
            shutil.rmtree(
                folder, ignore_errors=True
            )  # a kill may have come while it was removed
            say(f"{self.output} is finished already")
        elif not all(part.name.startswith(self.key) for part in found):
            raise InputError(
                f"{self.output} was begun with another model, input or options: give what was given before, or remove "
                f"{folder} to begin anew"
            )
        elif found:
            say(f"going on with {len(found)} parts that are there")
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            say(
                f"{self.survey.sentences:,} sentences, {self.survey.words:,} words, layers {', '.join(self.names)}, "
                f"{self.options.dtype}: about {human_bytes(self.size)}"
            )

    def _identity(self) -> str:
        """A hash of all that the content of the output depends on."""
        options = self.options
        encoder = (
            self.model.encoder.config.to_dict()
        )  # weights do not tell clips, residual connections, or heads
        content = [
            *self.model.sentence_encoder.identity.values(),
            *(value for name, value in encoder.items() if name != "dropout"),
            *self.names,
            *(options.dtype, options.layout, options.compress, options.sentence_map),
            *(
                options.carry_state,
                options.boundaries,
                self.survey.fingerprint,
            ),
        ]
        return xxhash.xxh3_64_hexdigest("\0".join(map(str, content)).encode())

    def _parts(self) -> Iterator[tuple[Path, list[Sentence]]]:
        """The file and the sentences of each part, of all processes; of whole documents
        where the state is carried.

        A part has the same sentences wherever a dump goes on: so batches, and numbers
        to the last bit, are the same.
        """
        parts = buffered(
            self.source,
            lambda sentence: sentence.length,
            most=self.part_words,
            may_begin=lambda sentence: sentence.begins or not self.options.carry_state,
        )
        for number, sentences in enumerate(parts):
            yield parts_folder(self.output) / f"{self.key}-{number:06}.part", sentences

    def _write_parts(self) -> None:
        """Write the parts of this process that are not there yet, each while the next
        is encoded.
        """
        with (
            progress_bar(
                total=self.survey.words,
                unit=" words",
                unit_scale=True,
                desc="dump-features",
                disable=self.rank > 0,
            ) as progress,
            ThreadPoolExecutor(1) as writing,
        ):
            written = writing.submit(lambda: None)
            for number, (path, sentences) in enumerate(self._parts()):
                if number % self.world_size != self.rank or self._is_whole(
                    path, sentences
                ):
                    progress.update(count_words(sentences))
                    continue
                states = self._states(sentences, progress.update)
                if (
                    count_words(sentences) > 2 * self.part_words
                ):  # a long document: written while it is encoded
                    self._write_part(path, sentences, states)
                    continue
                encoded = list(states)
                written.result()
                written = writing.submit(self._write_part, path, sentences, encoded)
                del encoded
            written.result()

    def _states(
        self, sentences: list[Sentence], progress: Progress
    ) -> Iterator[np.ndarray]:
        """The layer states of the sentences of a part, in order: float32 [L', n, 2P] or
        [n, 2P] each.
        """
        if self.options.carry_state:
            yield from self._carried_states(sentences, progress)
            return
        options = self.options
        sizes = {"batch_words": options.batch_words, "batch_size": options.batch_size}
        rows = self.model.sentence_encoder.look_up(
            sentence.tokens for sentence in sentences
        )
        for states in self.model.sentence_encoder.encode(
            rows,
            **sizes,
            progress=progress,
            select=self.select,
            boundaries=options.boundaries,
        ):
            yield states.numpy()

    def _carried_states(
        self, sentences: list[Sentence], progress: Progress
    ) -> Iterator[np.ndarray]:
        """The same with the state carried from each sentence of a document to the next.

        Documents are read side by side; a document longer than a part is read sentence
        by sentence.
        """
        documents: list[list[Sentence]] = []
        for sentence in sentences:
            if sentence.begins:
                documents.append([])
            documents[-1].append(sentence)
        beside = [
            number
            for number, each in enumerate(documents)
            if count_words(each) <= self.part_words
        ]
        longest = [
            max(len(sentence.tokens) for sentence in documents[number])
            for number in beside
        ]
        encoded: dict[int, list[Tensor]] = {}  # by the number of a document
        for batch in length_bucketed(
            longest, self.options.batch_words, self.options.batch_size
        ):
            numbers = [beside[index] for index in batch]
            tokens = [
                [sentence.tokens for sentence in documents[number]]
                for number in numbers
            ]
            for number, found in zip(
                numbers, self.model.embed_documents(tokens), strict=True
            ):
                encoded[number] = [self.select(each).clone() for each in found]
                progress(count_words(documents[number]))
        for number, document in enumerate(documents):
            if number in encoded:
                yield from (states.numpy() for states in encoded.pop(number))
                continue
            carried: CarriedState = {}
            for sentence in document:
                [[states]] = self.model.embed_documents([[sentence.tokens]], carried)
                progress(len(sentence.tokens))
                yield self.select(states).clone().numpy()

    def _write_part(
        self, path: Path, sentences: list[Sentence], states: Iterable[np.ndarray]
    ) -> None:
        """The states of the sentences, one behind the other, and a hash of the name and
        these bytes.
        """
        digest = xxhash.xxh3_64(path.name.encode())
        with atomic_path(path, sync=False) as partial, open(partial, "wb") as file:
            for sentence, array in zip(sentences, states, strict=True):
                with reading(f"{self.source.path}, {sentence.where}"):
                    array = np.ascontiguousarray(converted(array, self.shape.dtype))
                digest.update(array.data)
                file.write(array.data)
            file.write(digest.digest())

    def _is_whole(self, path: Path, sentences: list[Sentence]) -> bool:
        """Whether a part is there as it was written."""
        numbers = (
            math.prod(self.shape.of(count_words(sentences)))
            * np.dtype(self.shape.dtype).itemsize
        )
        if (
            not path.exists()
            or path.stat().st_size != numbers + xxhash.xxh3_64().digest_size
        ):
            return False
        content = np.memmap(path, np.uint8, "r")
        digest = xxhash.xxh3_64(path.name.encode())
        digest.update(content[:numbers].data)
        return digest.digest() == content[numbers:].tobytes()

    def _merge(self) -> None:
        """Copy the parts into the output, and remove them."""
        if self.changed != Path(self.source.path).stat().st_mtime_ns:
            raise InputError(
                f"{self.source.path} has changed while it was dumped: run the command again with --resume"
            )
        options = self.options
        words = self.model.training_words
        attributes = {
            **self.model.sentence_encoder.identity,
            **({} if words is None else {"training_words": words}),
            "layers": self.names,
            "carry_state": options.carry_state,
            **({"boundaries": True} if options.boundaries else {}),
            "input": self.survey.fingerprint,
            "dump": self.identity,
            "command_line": self.command_line,
        }
        with LAYOUTS[options.layout].open(
            self.output,
            attributes,
            shape=self.shape,
            compress=options.compress,
            sentence_map=options.sentence_map,
        ) as writer:
            for path, sentences in self._parts():
                shape = (math.prod(self.shape.of(count_words(sentences))),)
                numbers = np.asarray(
                    np.memmap(path, self.shape.dtype, "r", shape=shape)
                    if shape[0]
                    else np.empty(0, self.shape.dtype)
                )
                for sentence in sentences:
                    of_sentence = self.shape.of(sentence.length)
                    states = numbers[: math.prod(of_sentence)]
                    numbers = numbers[math.prod(of_sentence) :]
                    writer.add(sentence, states.reshape(of_sentence))
        shutil.rmtree(parts_folder(self.output))
        say(f"{self.output}: {human_bytes(self.output.stat().st_size)}")
