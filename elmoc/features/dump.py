"""Dumping: how a file of sentences becomes a feature file of their layer states.

The sentences are counted, and then read in parts of some thousand. The layer states of a part are encoded in batches,
and written one behind the other as an array into the folder `.NAME.parts` beside the output. Process r of n makes the
parts r, r + n, …; to resume is to skip the parts that are there. At the end the first process copies the parts, in
order, into the output.
"""

import math
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path

import numpy as np
from torch import distributed

from elmoc.errors import InputError, reading
from elmoc.features.input import Line, SentenceInput, opened_input, survey
from elmoc.features.layouts import LAYOUTS
from elmoc.features.layouts.interface import FeatureShape
from elmoc.features.reader import FeatureFile
from elmoc.features.states import DumpOptions, PartEncoder, count_words, divided, layer_selection, words_of_a_part
from elmoc.features.writer import converted, write_features
from elmoc.files.arrays import load_array
from elmoc.files.checksums import fingerprint
from elmoc.files.writing import atomic_path, human_bytes, locked, refuse_existing, require_space
from elmoc.model import ElmoC
from elmoc.process import progress_bar

DEFAULT = DumpOptions()


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
                documents=LAYOUTS[options.layout].writer.needs_documents,
                carry_state=options.carry_state,
                allow_empty=options.allow_empty,
            )
            dumps.append(Dump(model, stack.enter_context(source), Path(output), options))
        new = [dump for dump in dumps if not (dump.output.exists() or has_parts(dump.output))]
        sizes = [int(1.01 * dump.size) + 1000 * dump.survey.sentences for dump in new]
        if sizes:  # all outputs, and beside them the parts of one
            require_space(dumps[0].output, sum(sizes) + max(sizes))
        for dump in dumps:
            dump.run()


def parts_folder(output: Path) -> Path:
    """The folder of the parts of an output."""
    return output.with_name(f".{output.name}.parts")


def has_parts(output: Path) -> bool:
    """Whether an earlier dump has left parts of an output, with which it can be gone on."""
    return any(parts_folder(output).glob("*.npy"))


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
        by_words = LAYOUTS[options.layout].writer.found_by_words and (options.sentence_map or options.sentence_keys)
        self.changed = Path(source.path).stat().st_mtime_ns if Path(source.path).exists() else 0
        self.survey = survey(source, allow_empty=options.allow_empty, found_by_words=by_words, warn=self.rank == 0)
        self.select, self.names = layer_selection(options.layers, model.layers)
        self.shape = FeatureShape(
            layers=len(self.names),
            width=model.width,
            dtype=options.dtype,
            single=options.layers in ("top", "average"),
            words=self.survey.words,
        )
        self.part_words = words_of_a_part(options.batch_words, len(self.names) * model.width)
        self.size = math.prod(self.shape.of(self.survey.words)) * np.dtype(options.dtype).itemsize  # in bytes
        self.identity = self._identity()
        self.key = f"{self.identity}-{self.part_words}"  # parts of another size begin with other sentences

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
        found = list(folder.glob("*.npy"))
        if self.output.exists():
            with FeatureFile(self.output) as file:
                if file.attributes.get("dump") != self.identity:
                    raise InputError(f"{self.output} exists already, of another model, input or options: remove it")
            shutil.rmtree(folder, ignore_errors=True)  # a kill may have come while it was removed
            print(f"{self.output} is finished already")
        elif not all(part.name.startswith(self.key) for part in found):
            raise InputError(
                f"{self.output} was begun with another model, input or options: give what was given before, or remove "
                f"{folder} to begin anew"
            )
        elif found:
            print(f"going on with {len(found)} parts that are there")
        else:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            print(
                f"{self.survey.sentences:,} sentences, {self.survey.words:,} words, layers {', '.join(self.names)}, "
                f"{self.options.dtype}: about {human_bytes(self.size)}",
                flush=True,
            )

    def _identity(self) -> str:
        """A hash of all that the content of the output depends on."""
        options = self.options
        encoder = self.model.encoder.config.to_dict()  # weights do not tell clips, residual connections, or heads
        content = [
            *self.model.describe().values(),
            *(value for name, value in encoder.items() if name != "dropout"),
            *self.names,
            *(options.dtype, options.layout, options.compress, options.sentence_map),
            *(options.sentence_keys, options.carry_state, self.survey.fingerprint),
        ]
        return fingerprint(*(str(value).encode() for value in content))

    def _parts(self) -> Iterator[tuple[Path, list[Line]]]:
        """The file and the lines of each part, of all processes."""
        for number, lines in enumerate(divided(self.source, self.part_words, whole=self.options.carry_state)):
            yield parts_folder(self.output) / f"{self.key}-{number:06}.npy", lines

    def _write_parts(self) -> None:
        """Write the parts of this process that are not there yet, each while the next is encoded."""
        folder, source, words = parts_folder(self.output), self.source.path, self.part_words
        encoder = PartEncoder(self.model, self.options, self.shape, self.select, source, folder, words)
        with (
            progress_bar(
                total=self.survey.words, unit=" words", unit_scale=True, desc="dump-features", disable=self.rank > 0
            ) as progress,
            ThreadPoolExecutor(1) as writing,
        ):
            written = writing.submit(lambda: None)
            for number, (path, lines) in enumerate(self._parts()):
                if number % self.world_size != self.rank or path.exists():
                    progress.update(count_words(lines))
                    continue
                states = encoder.states(lines, progress.update)
                if count_words(lines) > 2 * words:  # a long line or document: written while it is encoded
                    self._write_part(path, lines, states)
                    continue
                encoded = list(states)
                written.result()
                written = writing.submit(self._write_part, path, lines, encoded)
                del encoded
            written.result()

    def _write_part(self, path: Path, lines: list[Line], states: Iterable[np.ndarray]) -> None:
        """The states of the lines, one behind the other, as a `.npy` file of one axis."""
        header = {
            "descr": np.dtype(self.shape.dtype).str,
            "fortran_order": False,
            "shape": (math.prod(self.shape.of(count_words(lines))),),
        }
        with atomic_path(path, sync=False) as partial, open(partial, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for line, array in zip(lines, states, strict=True):
                with reading(f"{self.source.path}, {line.where}"):
                    array = converted(array, self.shape.dtype)
                file.write(np.ascontiguousarray(array).data)

    def _merge(self) -> None:
        """Copy the parts into the output, and remove them."""
        if self.changed != Path(self.source.path).stat().st_mtime_ns:
            raise InputError(f"{self.source.path} has changed while it was dumped: run the command again")
        options, words = self.options, self.model.training_words
        attributes = {
            **self.model.describe(),
            **({} if words is None else {"training_words": words}),
            "layers": self.names,
            "carry_state": options.carry_state,
            "input": self.survey.fingerprint,
            "dump": self.identity,
            "command_line": options.command_line,
        }
        with write_features(
            self.output,
            attributes,
            shape=self.shape,
            layout=options.layout,
            compress=options.compress,
            sentence_map=options.sentence_map,
            sentence_keys=options.sentence_keys,
        ) as writer:
            for path, lines in self._parts():
                shape = (math.prod(self.shape.of(count_words(lines))),)
                numbers = np.asarray(load_array(path, shape=shape, dtype=self.shape.dtype, mmap=True))
                for line in lines:
                    of_line = self.shape.of(len(line.sentence.tokens))
                    states, numbers = numbers[: math.prod(of_line)], numbers[math.prod(of_line) :]
                    writer.add(line.sentence, states.reshape(of_line))
        shutil.rmtree(parts_folder(self.output))
        print(f"{self.output}: {human_bytes(self.output.stat().st_size)}", flush=True)
