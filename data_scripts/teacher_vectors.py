"""Word vectors of a teacher: what a pretrained Transformer knows about each word by
itself.

Each word type of a corpus, or each of the most frequent ones, is read alone, between
the marks that the model puts around a sentence. Its vector is the mean over its pieces,
and over some layers, of the states. Every piece of the tokeniser is read alone in the
same way. Other strings are composed of their pieces, by a map that is fitted to the
words. Two hundred thousand words take minutes, and the Transformer is never needed
again.

Letters: n words and pieces, E width of the model's states.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta

from elmoc.command_line import run_main
from elmoc.corpus import Corpus
from elmoc.errors import InputError, human_bytes, reading, say
from elmoc.files.arrays import load_array, save_array
from elmoc.files.checksums import fingerprint
from elmoc.files.writing import atomic_path, locked, remove
from elmoc.process import progress_bar

if TYPE_CHECKING:
    from elmoc.word_vectors.compact import CompactVectors

# Pieces of a word that are read: longer ones are addresses.
_MOST_PIECES = 64
# Pieces that are read at once, marks among them.
_BATCH_PIECES = 8192
# Words of a part, the least that is not done again when the work goes on.
_PART_WORDS = 1 << 14
# Words to which the map from pieces is fitted.
_FITTED_WORDS = 50_000


@dataclass(frozen=True, kw_only=True)
class TeacherOptions:
    """How vectors are taken from a Transformer."""

    layers: Annotated[
        list[int] | None,
        Meta(
            description="layers whose mean is taken; 0 are the embeddings (default: "
            "the third quarter, e.g. 3 4 5 of 6)",
            extra={"metavar": "N"},
        ),
    ] = None
    words: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="most frequent words that are read; others are composed of "
            "their pieces (default: all)",
            extra={"metavar": "N"},
        ),
    ] = None
    device: Annotated[
        str, Meta(description="where the model is run: auto, cpu, cuda or cuda:N")
    ] = "auto"


@dataclass(frozen=True, kw_only=True)
class TeacherCommand(TeacherOptions):
    """The command line."""

    corpus: Annotated[
        Path, Meta(description="corpus directory of words", extra={"metavar": "CORPUS"})
    ]
    model: Annotated[
        str,
        Meta(
            description="a model of Hugging Face: its directory, or its name on the "
            "hub",
            extra={"metavar": "MODEL"},
        ),
    ]
    output: Annotated[
        Path,
        Meta(description="word vectors to make", extra={"metavar": "OUT.safetensors"}),
    ]


class Teacher:
    """A pretrained Transformer that reads words one by one.

    layers: whose mean is taken.
    size: E.
    about: its name, licence and layers, as a card says them.

    Raises:
        InputError: the model cannot be read, or has no fast tokeniser or no such layer.
    """

    def __init__(self, name: str, options: TeacherOptions) -> None:
        import torch
        from transformers import AutoModel, AutoTokenizer

        from elmoc.devices import checked_device, choose_precision, factor_dtype
        from elmoc.word_vectors.pieces import open_tokenizer

        with reading(name):
            tokenizer = AutoTokenizer.from_pretrained(name)
            self.tokenizer_file = tokenizer.backend_tokenizer.to_str().encode()
            model = AutoModel.from_pretrained(name)
        self.tokenizer = open_tokenizer(self.tokenizer_file)
        numbers = range(1 + max(self.tokenizer.get_vocab().values()))
        self.pieces = [[number] for number in numbers]
        # What the tokeniser puts before and behind any text.
        plain = self.tokenizer.encode("a", add_special_tokens=False).ids
        marked = self.tokenizer.encode("a").ids
        start = marked.index(plain[0])
        self._before = marked[:start]
        self._behind = marked[start + len(plain) :]
        device = checked_device(options.device)
        self._model = model.to(device).eval()
        self._model.to(factor_dtype(choose_precision("auto", device)))
        count = int(model.config.num_hidden_layers)
        # Rounded up, so that a model of six layers has three.
        usual = range(count // 2, -(-3 * count // 4) + 1)
        self.layers = sorted(set(options.layers or usual))
        if not 0 <= self.layers[0] <= self.layers[-1] <= count:
            raise InputError(f"{name} has layers 0 to {count}, not all of --layers")
        self.size = int(model.config.hidden_size)
        shown = ", ".join(map(str, self.layers))
        # Without the path of its directory.
        plain_name = Path(os.path.abspath(name)).name if os.path.isdir(name) else name
        self.about = f"{plain_name} ({licence_of(name)}), layers {shown}"
        weights = torch.cat([each.flatten()[:64] for each in model.parameters()])
        self._sample = weights.detach().float().cpu().numpy().tobytes()

    def name_of(self, items: Sequence[Sequence[int]]) -> str:
        """A fingerprint of the model, its layers, and what it is to read."""
        parts = [self.tokenizer_file, repr(self.layers).encode(), self._sample]
        return fingerprint([*parts, repr(items).encode()])

    def read(self, items: Sequence[Sequence[int]]) -> Iterator[np.ndarray]:
        """The vectors of items, each the pieces of a word, in batches float32 [b, E].

        Items of one length that stand together are read together. An empty item is
        zeros.
        """
        for length, group in groupby(items, key=len):
            alike = list(group)
            marked = length + len(self._before) + len(self._behind)
            step = max(1, _BATCH_PIECES // marked)
            for start in range(0, len(alike), step):
                batch = alike[start : start + step]
                if length:
                    yield self._states(batch)
                else:
                    yield np.zeros((len(batch), self.size), dtype=np.float32)

    def _states(self, batch: Sequence[Sequence[int]]) -> np.ndarray:
        """float32 [b, E] of items of one length."""
        import torch

        ids = [[*self._before, *item, *self._behind] for item in batch]
        inputs = torch.tensor(ids, device=self._model.device)
        with torch.inference_mode():
            output = self._model(
                input_ids=inputs,
                attention_mask=torch.ones_like(inputs),
                output_hidden_states=True,
            )
        first = len(self._before)
        own = slice(first, first + len(batch[0]))
        chosen = [output.hidden_states[layer][:, own] for layer in self.layers]
        means = torch.stack([states.float().mean(dim=1) for states in chosen])
        return means.mean(dim=0).cpu().numpy()


def make_teacher_vectors(
    corpus: Path | str,
    model: str,
    out: Path | str,
    options: TeacherOptions = TeacherOptions(),
) -> None:
    """Make the file of word vectors of a teacher. Its size is told before.

    An interrupted call goes on where it was: parts that are done are beside `out`.

    Args:
        corpus: a directory of words, whose types get a row each.
        model: of Hugging Face, with a fast tokeniser: a directory, or its name on the
            hub.
        out: the file to make, which `open_word_vectors` opens; its name ends in
            `.safetensors`.
        options: see `TeacherOptions`.

    Raises:
        InputError: the file exists or is being made, or the corpus or the model cannot
            be used.
    """
    from elmoc.word_vectors.pieces import divide

    out = Path(out)
    if out.suffix != ".safetensors":
        raise InputError(f"{out} must be named .safetensors, as it is opened by that")
    with locked(out, new=True):
        words_of = Corpus(corpus)
        words_of.require_words()
        lexicon = words_of.lexicon[: options.words]
        teacher = Teacher(model, options)
        # The pieces of each word, then every piece by itself.
        divided = divide(teacher.tokenizer, lexicon)
        items = [ids[:_MOST_PIECES] for ids in divided] + teacher.pieces
        parts = out.with_name(f".{out.name}.parts")
        # Parts of another model, or of other words, are not gone on with.
        rows = _read_all(teacher, items, parts / teacher.name_of(items))
        counts = words_of.counts[: options.words]
        vectors = taught_vectors(lexicon, counts, items, rows, teacher)
        with atomic_path(out, checksum=True) as partial_file:
            vectors.write(partial_file)
        remove(parts)
    say(f"{out}: {human_bytes(out.stat().st_size)}, {teacher.about}")


def _read_all(teacher: Teacher, items: list[list[int]], folder: Path) -> np.ndarray:
    """float16 [n, E], the vectors of all items, read part by part into a folder."""
    order = sorted(range(len(items)), key=lambda row: len(items[row]))
    folder.mkdir(parents=True, exist_ok=True)
    size = len(items) * teacher.size * 2
    say(
        f"{len(items):,} words and pieces, at most {human_bytes(size)}; {teacher.about}"
    )
    rows = np.empty((len(items), teacher.size), dtype=np.float16)
    with progress_bar(total=len(items), unit=" words", desc="teacher") as bar:
        for start in range(0, len(order), _PART_WORDS):
            chosen = order[start : start + _PART_WORDS]
            path = folder / f"{start}.npy"
            shape = (len(chosen), teacher.size)
            if path.exists():
                some = load_array(path, shape=shape, dtype=np.float16)
                bar.update(len(chosen))
            else:
                batches = []
                for vectors in teacher.read([items[row] for row in chosen]):
                    batches.append(vectors.astype(np.float16))
                    bar.update(len(vectors))
                some = np.concatenate(batches)
                save_array(path, some)
            rows[chosen] = some
    return rows


def taught_vectors(
    lexicon: Sequence[str],
    counts: np.ndarray,
    items: Sequence[Sequence[int]],
    rows: np.ndarray,
    teacher: Teacher,
) -> "CompactVectors":
    """The vectors of words and pieces as a file has them.

    Args:
        lexicon: the words, of which the first rows are.
        counts: of the words in the corpus.
        items: the pieces of the words, then every piece by itself.
        rows: float16 [n, E], of the items.
        teacher: that has read them.
    """
    from elmoc.word_vectors.coded_rows import PlainRows
    from elmoc.word_vectors.compact import CompactVectors
    from elmoc.word_vectors.pieces import Pieces, fit_composition

    number = len(lexicon)
    words = rows[:number]
    pieces = PlainRows(rows[number:])
    several = [row for row in range(number) if len(items[row]) > 1]
    fitted = several[:: max(1, len(several) // _FITTED_WORDS)]
    composition = fit_composition([items[row] for row in fitted], pieces, words[fitted])
    composed = Pieces(teacher.tokenizer_file, pieces, composition)
    return CompactVectors.of_words(
        lexicon,
        PlainRows(words),
        composed,
        about=teacher.about,
        counts=counts,
    )


def licence_of(model: str) -> str:
    """What the card of a model says of its licence."""
    from huggingface_hub import ModelCard

    path = os.path.join(model, "README.md") if os.path.isdir(model) else model
    try:
        licence: Any = ModelCard.load(path).data.get("license")
    except (OSError, ValueError):
        licence = None
    return str(licence or "licence not stated")


main = partial(
    run_main,
    TeacherCommand,
    lambda given: make_teacher_vectors(given.corpus, given.model, given.output, given),
    prog="python -m data_scripts.teacher_vectors",
    description="Take word vectors from a pretrained Transformer, which reads every "
    "word of a corpus alone. Safe to interrupt; goes on by the same command.",
)

if __name__ == "__main__":
    sys.exit(main())
