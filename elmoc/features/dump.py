"""Dumping: how a file of sentences becomes a feature file of their layer states.

The sentences are counted, and then read in parts of some thousand. The layer states of a part are encoded in batches,
and written as a small feature file (of the flat layout) into the folder `.NAME.parts` beside the output. Process r of n
makes the parts r, r + n, …; to resume is to skip the parts that are there. At the end the first process copies the
parts, in order, into the output.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, distributed

from elmoc.batches import BUFFER_WORDS, length_bucketed
from elmoc.errors import InputError, describe_error, ran_out_of_memory, shortened
from elmoc.features.input import Line, SentenceInput, opened_input, survey
from elmoc.features.layout_names import LAYOUT_NAMES
from elmoc.features.layouts.sentence import FeatureShape
from elmoc.features.options import DumpOptions, layer_selection
from elmoc.features.reader import FeatureFile
from elmoc.features.writer import converted, write_features
from elmoc.files.checksums import fingerprint
from elmoc.files.locks import locked
from elmoc.files.records import read_json, write_json
from elmoc.files.writing import human_bytes, refuse_existing, require_space
from elmoc.model import WINDOW_WORDS, CarriedState, ElmoC
from elmoc.progress import progress_bar

# Layer states of a part, in memory while the next part is encoded: 50,000 words at the paper's size, with all layers.
PART_BYTES = 5 << 27
FORMAT = "elmoc-dump-parts, version 1"
DEFAULT = DumpOptions()

Progress = Callable[[float], object]


def dump_features(model: ElmoC, sentences: Path | str, output: Path | str, options: DumpOptions = DEFAULT) -> None:
    """Write the layer states of every sentence of a file to `output`, in order.

    Where `torch.distributed` is initialised, its processes, which share a file system, make one file together.

    Args:
        model: the encoder.
        sentences: text, one tokenised sentence a line, or documents as JSON lines (see `SentenceInput`); `-` is
            standard input.
        output: the feature file; it must not exist, unless a dump that is finished already is resumed.
        options: what is dumped.

    Raises:
        InputError: bad input, or not enough disk.
    """
    dump_several(model, [(sentences, output)], options)


def dump_several(model: ElmoC, pairs: Iterable[tuple[Path | str, Path | str]], options: DumpOptions = DEFAULT) -> None:
    """`dump_features` of each pair of sentences and output; all sentences are looked at before any are dumped."""
    with ExitStack() as stack:
        dumps = []
        for sentences, output in pairs:
            source = opened_input(
                sentences,
                documents=LAYOUT_NAMES[options.layout].needs_documents,
                carry_state=options.carry_state,
                allow_empty=options.allow_empty,
            )
            dumps.append(Dump(model, stack.enter_context(source), Path(output), options))
        sizes = [
            int(1.01 * dump.size) + 1000 * dump.survey.sentences
            for dump in dumps
            if not (dump.output.exists() or has_parts(dump.output))
        ]
        if sizes:  # all outputs, and beside them the parts of one
            require_space(dumps[0].output, sum(sizes) + max(sizes))
        for dump in dumps:
            dump.run()


def parts_folder(output: Path) -> Path:
    """The folder of the parts of an output."""
    return output.with_name(f".{output.name}.parts")


def has_parts(output: Path) -> bool:
    """Whether an earlier dump has left parts of an output, with which it can be gone on."""
    return any(parts_folder(output).glob("*.h5"))


def refuse_output(output: Path) -> None:
    """Raise an `InputError` where a dump that does not resume finds its output, or parts of it."""
    refuse_existing(output)
    if has_parts(output):
        raise InputError(
            f"{output} was begun by a command that did not end: give that command --resume (in Python resume=True) to "
            f"go on, or remove {parts_folder(output)} to begin anew"
        )


class Dump:
    """One dump of one input; see `dump_features`."""

    def __init__(self, model: ElmoC, source: SentenceInput, output: Path, options: DumpOptions) -> None:
        if options.carry_state:
            model.require_carried_state()
        together = distributed.is_available() and distributed.is_initialized()
        self.rank, self.world_size = (distributed.get_rank(), distributed.get_world_size()) if together else (0, 1)
        self.model, self.source, self.output, self.options = model, source, output, options
        self.changed = Path(source.path).stat().st_mtime_ns if Path(source.path).exists() else 0
        self.survey = survey(
            source, allow_empty=options.allow_empty, found_by_words=options.found_by_words, warn=self.rank == 0
        )
        self.selection = layer_selection(options.layers, model.layers)
        self.shape = FeatureShape(
            layers=len(self.selection.names),
            width=model.width,
            dtype=options.dtype,
            single=self.selection.single,
            words=self.survey.words,
        )
        numbers_a_word = len(self.selection.names) * model.width
        self.part_words = words_of_a_part(options.batch_words, numbers_a_word)
        self.size = self.survey.words * numbers_a_word * np.dtype(options.dtype).itemsize  # in bytes

    def run(self) -> None:
        """Write the parts of this process and, in the first process, the output."""
        with locked(self.output) if self.rank == 0 else nullcontext():
            if self.rank == 0:
                self._begin()
            self._wait_for_all()
            if self.output.exists():
                return
            try:
                count = self._write_parts()
                self._wait_for_all()
                if self.rank == 0:
                    self._merge(count)
            finally:
                if self.rank == 0 and not has_parts(self.output):
                    shutil.rmtree(parts_folder(self.output), ignore_errors=True)

    def _wait_for_all(self) -> None:
        if self.world_size > 1:  # a process may end at once after it, which it must not after a plain barrier
            distributed.monitored_barrier()

    def _begin(self) -> None:
        """Make the folder of the parts, or see whether what is there is of this dump."""
        if not self.options.resume:
            refuse_output(self.output)
        folder = parts_folder(self.output)
        settings = {"format": FORMAT, **self._content(), "words a part": str(self.part_words)}
        record = folder / "settings.json"
        if self.output.exists():
            with FeatureFile(self.output) as file:
                if file.attributes.get("dump") != self._identity():
                    raise InputError(
                        f"{self.output} exists already, of another dump (another model, input or options): remove it, "
                        "or choose another output path"
                    )
            shutil.rmtree(folder, ignore_errors=True)  # a kill may have come while it was removed
            print(f"{self.output} is finished already")
        elif has_parts(self.output):
            begun = read_json(record)
            for name in sorted({*begun, *settings}):
                then, now = (each.get(name, "nothing") for each in (begun, settings))
                if then != now:
                    raise InputError(
                        f"{self.output} was begun with {name} {shortened(then)}, and cannot be gone on with {name} "
                        f"{shortened(now)}: give what was given before, or remove {folder} to begin anew"
                    )
            print(f"going on with {len(list(folder.glob('*.h5')))} parts that are there")
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            write_json(record, settings)
            print(
                f"{self.survey.sentences:,} sentences, {self.survey.words:,} words, layers "
                f"{', '.join(self.selection.names)}, {self.options.dtype}: about {human_bytes(self.size)}",
                flush=True,
            )

    def _content(self) -> dict[str, str]:
        """All that the content of the output depends on, by name."""
        options = self.options
        encoder = self.model.encoder.config.to_dict()  # weights do not tell clips, residual connections, or heads
        content = {
            **self.model.describe(),
            **{f"encoder.{name}": value for name, value in encoder.items() if name != "dropout"},
            **{f"layer {place}": name for place, name in enumerate(self.selection.names)},
            **{name: getattr(options, name) for name in ("dtype", "layout", "compress", "sentence_map")},
            **{name: getattr(options, name) for name in ("sentence_keys", "carry_state")},
            "input": self.survey.fingerprint,
        }
        return {name: str(value) for name, value in content.items()}

    def _identity(self) -> str:
        return fingerprint(*(value.encode() for value in self._content().values()))

    def _part(self, number: int) -> Path:
        return parts_folder(self.output) / f"{number:06}.h5"

    def _write_parts(self) -> int:
        """Write the parts of this process that are not there yet; returns how many parts all processes write."""
        number = -1
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
            for number, lines in enumerate(parts(self.source, self.part_words, whole=self.options.carry_state)):
                words = count_words(lines)
                if number % self.world_size != self.rank or self._part(number).exists():
                    progress.initial = getattr(progress, "initial", 0) + words  # a disabled bar has none
                    progress.update(words)
                    continue
                states = self._states(lines, progress.update)
                if words > 2 * self.part_words:  # a long line or document: written while it is encoded
                    self._write_part(number, lines, states)
                    continue
                with naming(self.source.path, lines):
                    encoded = list(states)
                written.result()
                written = writing.submit(self._write_part, number, lines, encoded)
                del encoded
            written.result()
        return number + 1

    def _write_part(self, number: int, lines: list[Line], states: Iterable[np.ndarray]) -> None:
        shape = replace(self.shape, words=count_words(lines))
        with write_features(self._part(number), {}, shape=shape, layout="flat") as writer:
            for line, array in zip(lines, states, strict=True):
                with naming(self.source.path, [line]):
                    array = converted(array, self.options.dtype)
                writer.add(line.sentence, array)

    def _states(self, lines: list[Line], progress: Progress) -> Iterator[np.ndarray]:
        """The layer states of the lines of a part, in order."""
        if self.options.unknown == "error":
            self._refuse_unknown(lines)
        if self.options.carry_state:
            yield from self._carried_states(lines, progress)
            return
        short = self.model.look_up(line.sentence.tokens for line in lines if not is_long(line))
        states = iter(
            self.model.embed_rows(
                short,
                batch_words=self.options.batch_words,
                batch_size=self.options.batch_size,
                progress=progress,
                select=self.selection.select,
            )
        )
        for line in lines:
            yield self._long_states(line, None, progress) if is_long(line) else next(states).numpy()

    def _carried_states(self, lines: list[Line], progress: Progress) -> Iterator[np.ndarray]:
        """The same with the state carried from each sentence of a document to the next.

        Documents are read side by side; one that is longer than a part, or has a long line, sentence by sentence.
        """
        documents: list[list[Line]] = []
        for line in lines:
            if line.begins:
                documents.append([])
            documents[-1].append(line)
        beside = [each for each in documents if count_words(each) <= self.part_words and not any(map(is_long, each))]
        longest = [max(len(line.sentence.tokens) for line in each) for each in beside]
        encoded: dict[int, list[Tensor]] = {}  # by the id of a document
        for batch in length_bucketed(longest, self.options.batch_words, self.options.batch_size):
            tokens = [[line.sentence.tokens for line in beside[index]] for index in batch]
            for index, found in zip(batch, self.model.embed_documents(tokens), strict=True):
                encoded[id(beside[index])] = [self.selection.select(each).clone() for each in found]
            progress(sum(count_words(beside[index]) for index in batch))
        for document in documents:
            if id(document) in encoded:
                yield from (states.numpy() for states in encoded.pop(id(document)))
                continue
            carried: CarriedState = {}
            for line in document:
                if is_long(line):
                    yield self._long_states(line, carried, progress)
                    continue
                [[states]] = self.model.embed_documents([[line.sentence.tokens]], carried)
                progress(len(line.sentence.tokens))
                yield self.selection.select(states).clone().numpy()

    def _long_states(self, line: Line, carried: CarriedState | None, progress: Progress) -> np.ndarray:
        """The layer states of a line of any length, in a temporary file that is mapped into memory."""
        with tempfile.TemporaryFile(dir=parts_folder(self.output)) as file:
            shape = self.shape.of(len(line.sentence.tokens))
            states = np.memmap(file, self.options.dtype, "w+", shape=shape)
        with naming(self.source.path, [line]):
            for piece in self.model.embed_pieces(line.sentence.tokens, carried):
                array = converted(self.selection.select(piece.states).numpy(), self.options.dtype)
                states[..., piece.start : piece.start + array.shape[-2], piece.columns] = array
                progress(array.shape[-2] / len(self.model.encoder.directions))
        return states

    def _refuse_unknown(self, lines: list[Line]) -> None:
        """Raise an `InputError` that names the first word without a vector, and its line."""
        for line in lines:
            for start in range(0, len(line.sentence.tokens), WINDOW_WORDS):
                window = line.sentence.tokens[start : start + WINDOW_WORDS]
                if unknown := self.model.look_up([window]).unknown:
                    word = next(word for word in window if word in unknown)
                    raise InputError(
                        f'{self.source.path}, {line.where}: the word "{shortened(word)}" has no vector in '
                        f"{self.model.word_vectors.origin}: give vectors that have it, or read such words as zeros "
                        "with --unknown zero"
                    )

    def _merge(self, count: int) -> None:
        """Copy the parts into the output, and remove them."""
        if self.changed != Path(self.source.path).stat().st_mtime_ns:
            raise InputError(f"{self.source.path} has changed while it was dumped: run the command again")
        options, lines = self.options, iter(self.source)
        with write_features(
            self.output,
            self._attributes(),
            shape=self.shape,
            layout=options.layout,
            compress=options.compress,
            sentence_map=options.sentence_map,
            sentence_keys=options.sentence_keys,
        ) as writer:
            for number in range(count):
                with FeatureFile(self._part(number)) as part:
                    for index in range(len(part)):
                        writer.add(next(lines).sentence, part.view(index))
        shutil.rmtree(parts_folder(self.output))
        print(f"{self.output}: {human_bytes(self.output.stat().st_size)}", flush=True)

    def _attributes(self) -> dict[str, Any]:
        words = self.model.training_words
        return {
            **self.model.describe(),
            **({} if words is None else {"training_words": words}),
            "layers": self.selection.names,
            "carry_state": self.options.carry_state,
            "input": self.survey.fingerprint,
            "dump": self._identity(),
            "command_line": self.options.command_line,
        }


def words_of_a_part(batch_words: int, numbers_a_word: int) -> int:
    """After how many words a part ends."""
    return max(batch_words, min(BUFFER_WORDS, PART_BYTES // (4 * numbers_a_word)))


def parts(lines: Iterable[Line], words: int, *, whole: bool) -> Iterator[list[Line]]:
    """The lines in lists of at least `words` words, but for the last; with `whole`, of whole documents.

    Where they begin and end does not depend on where a dump goes on: each batch is made of the same sentences then, and
    its numbers are the same to the last bit.
    """
    part: list[Line] = []
    count = 0
    for line in lines:
        if count >= words and (line.begins or not whole):
            yield part
            part, count = [], 0
        part.append(line)
        count += len(line.sentence.tokens)
    if part:
        yield part


def count_words(lines: Sequence[Line]) -> int:
    """The number of words of lines."""
    return sum(len(line.sentence.tokens) for line in lines)


def is_long(line: Line) -> bool:
    """Whether a line is read in windows."""
    return len(line.sentence.tokens) > WINDOW_WORDS


@contextmanager
def naming(name: Path | str, lines: Sequence[Line]) -> Iterator[None]:
    """Say in errors of the block about what a person gave, and in lack of memory, which lines they are about."""
    try:
        yield
    except Exception as error:
        if not (isinstance(error, InputError) or ran_out_of_memory(error)) or str(error).startswith(f"{name}, line"):
            raise
        first, last = lines[0].where, lines[-1].where
        where = first if first == last else f"lines {first.removeprefix('line ')} to {last.removeprefix('line ')}"
        raise InputError(f"{name}, {where}: {describe_error(error)}") from error
