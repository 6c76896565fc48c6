"""Translation with vectors of subwords that are kept in several ways: tied (Press and
Wolf 2017, Section 4.3), factorised, ALONE (Takase and Kobayashi 2020, Section 3.2), and
codes that are learned with the model (Shu and Nakayama 2018, Section 5.3, learn them
from one that is trained).

    python -m experiments.translation OUT --data DIR [--updates N] [--rows NAME…]
    [--seeds 1 2] [--threads 2]

DIR has {train,val}.{en,de}.gz of Multi30k, a sentence a line: English to German. All
rows have one Transformer and one division into subwords, of both languages together.
Each line of OUT/results.jsonl has the numbers of all vectors, and the BLEU (sacrebleu)
of greedy translations; a row that is there is not trained again. It needs `pip install
sacrebleu`.
"""

import json
import math
import random
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, product, takewhile
from pathlib import Path
from typing import Annotated, Any

import sacrebleu
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from elmoc.command_line import run_main
from elmoc.devices import CPU, autocast, choose_precision
from elmoc.encoders.transformer import sinusoids
from elmoc.files.text import read_lines
from elmoc.process import progress_bar
from elmoc.settings import Meta
from elmoc.word_vectors.alone import AloneConfig, AloneNetwork
from experiments.peers.common import batches

# Subwords of both languages; Takase and Kobayashi (2020, Section 3.2) have 32,000
# merges, for more text.
SUBWORDS = 8_000
PAD, BEGIN, END = range(3)
MARKS = ["<pad>", "<s>", "</s>"]
# A small Transformer (Vaswani et al. 2017): the text has 345,000 words.
WIDTH, HEADS, LAYERS, FEEDFORWARD = 256, 4, 3, 1024
DROPOUT = 0.2
SMOOTHING = 0.1
RATE = 1e-3
# The first part of a training, in which the rate rises.
RISE = 0.3
BATCH = 128
# Subwords of a translation at most; captions have some twenty.
LONGEST = 50
# M, and K codewords each.
CODEBOOKS, CODEWORDS = 16, 16
Pairs = list[tuple[list[int], list[int]]]


class Vectors(nn.Module, ABC):
    """The vectors of V subwords, D wide.

    kept: numbers of 32 bits that a trained model keeps of them.
    """

    kept: float

    @abstractmethod
    def rows(self) -> Tensor:
        """[V, D]"""


class Table(Vectors):
    """A vector each."""

    def __init__(self, pieces: Sequence[str]) -> None:
        super().__init__()
        self.table = normal(len(pieces), WIDTH, deviation=WIDTH**-0.5)
        self.kept = self.table.numel()

    def rows(self) -> Tensor:
        return self.table


class Factorised(Vectors):
    """A short vector each, and a matrix for all."""

    def __init__(self, pieces: Sequence[str], rank: int) -> None:
        super().__init__()
        self.short = normal(len(pieces), rank, deviation=rank**-0.5)
        self.wider = normal(rank, WIDTH, deviation=WIDTH**-0.5)
        self.kept = self.short.numel() + self.wider.numel()

    def rows(self) -> Tensor:
        return self.short @ self.wider


class Alone(Vectors):
    """A network for all, with D_o = D (Takase and Kobayashi 2020, Section 2.3)."""

    def __init__(
        self, pieces: Sequence[str], inner_size: int, zeros: float | None
    ) -> None:
        super().__init__()
        config = AloneConfig(
            size=WIDTH, base_size=WIDTH, inner_size=inner_size, zeros=zeros
        )
        self.network = AloneNetwork(config)
        self.numbers = torch.from_numpy(config.numbers(pieces))
        self.kept = sum(each.numel() for each in self.network.parameters())

    def rows(self) -> Tensor:
        return self.network.forward(self.numbers)


class Codes(Vectors):
    """A codeword of each codebook, summed; which one is learned by straight-through
    Gumbel softmax.
    """

    def __init__(self, pieces: Sequence[str]) -> None:
        super().__init__()
        # With 1 in place of 5, noise chooses other codewords in every update, and the
        # loss stays that of chance.
        self.scores = normal(len(pieces), CODEBOOKS, CODEWORDS, deviation=5.0)
        deviation = (WIDTH * CODEBOOKS) ** -0.5
        self.codebooks = normal(CODEBOOKS, CODEWORDS, WIDTH, deviation=deviation)
        bits = len(pieces) * CODEBOOKS * math.log2(CODEWORDS)
        self.kept = self.codebooks.numel() + bits / 32

    def rows(self) -> Tensor:
        if self.training:
            chosen = F.gumbel_softmax(self.scores, hard=True)
        else:
            best = self.scores.argmax(dim=2)
            chosen = F.one_hot(best, CODEWORDS).to(self.scores.dtype)
        return torch.einsum("vmk,mkd->vd", chosen, self.codebooks)


def normal(*shape: int, deviation: float) -> nn.Parameter:
    """Normal numbers that are trained."""
    return nn.Parameter(deviation * torch.randn(shape))


@dataclass(frozen=True)
class Row:
    """How vectors are kept, and of how many of the three roles one set has: source,
    target, and what stands before the softmax.
    """

    make: Callable[[Sequence[str]], Vectors]
    roles: int = 3


# Half and a quarter of the numbers of a table of 8,000.
ROWS = {
    "untied": Row(Table, 1),
    "tied, two ways": Row(Table, 2),
    "tied, three ways": Row(Table),
    "factorised 124": Row(partial(Factorised, rank=124)),
    "factorised 62": Row(partial(Factorised, rank=62)),
    "alone 2000, real": Row(partial(Alone, inner_size=2_000, zeros=None)),
    "alone 2000, binary": Row(partial(Alone, inner_size=2_000, zeros=0.5)),
    "alone 1000, real": Row(partial(Alone, inner_size=1_000, zeros=None)),
    "codes": Row(Codes),
}


@dataclass(frozen=True)
class Options:
    """What is trained, on what, and how long."""

    out: Annotated[Path, Meta(description="folder of results.jsonl")]
    data: Annotated[
        Path,
        Meta(
            description="folder of the text",
            extra={"option": "--data", "metavar": "DIR"},
        ),
    ]
    updates: Annotated[int, Meta(ge=1, description="of each training")] = 1_500
    rows: Annotated[
        tuple[Annotated[str, Meta(pattern=f"^({'|'.join(ROWS)})$")], ...],
        Meta(description="which rows", extra={"metavar": "NAME"}),
    ] = tuple(ROWS)
    seeds: Annotated[
        tuple[int, ...], Meta(description="of trainings", extra={"metavar": "N"})
    ] = (1, 2)
    threads: Annotated[int, Meta(ge=1, description="threads that compute")] = 2


class Translator(nn.Module):
    """A Transformer between vectors of subwords."""

    def __init__(self, row: Row, pieces: Sequence[str]) -> None:
        super().__init__()
        self.source = row.make(pieces)
        self.target = self.source if row.roles == 3 else row.make(pieces)
        self.output = self.target if row.roles >= 2 else row.make(pieces)
        self.transformer = nn.Transformer(
            *(WIDTH, HEADS, LAYERS, LAYERS, FEEDFORWARD, DROPOUT),
            batch_first=True,
            norm_first=True,
        )

    @property
    def vectors(self) -> list[Vectors]:
        """Each set of vectors once."""
        return list(dict.fromkeys((self.source, self.target, self.output)))

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores [B, T, V] of the subword behind each of the target's [B, T], with the
        source [B, S]; both are padded.
        """
        rows = {each: each.rows() for each in self.vectors}
        memory = self.encoded(source, rows)
        return F.linear(
            self.decoded(target, memory, source == PAD, rows), rows[self.output]
        )

    def encoded(self, source: Tensor, rows: dict[Vectors, Tensor]) -> Tensor:
        """What the encoder makes of the source [B, S]: [B, S, D]."""
        read = embedded(source, rows[self.source])
        made: Tensor = self.transformer.encoder(
            read, src_key_padding_mask=source == PAD
        )
        return made

    def decoded(
        self,
        target: Tensor,
        memory: Tensor,
        padding: Tensor,
        rows: dict[Vectors, Tensor],
    ) -> Tensor:
        """[B, T, D], from what the encoder has made, and where the source [B, S] is
        padded.
        """
        time = target.shape[1]
        hidden: Tensor = self.transformer.decoder(
            embedded(target, rows[self.target]),
            memory,
            tgt_mask=torch.ones(time, time, dtype=torch.bool).triu(1),
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=padding,
        )
        return hidden

    @torch.inference_mode()
    def translate(self, source: Tensor) -> list[list[int]]:
        """The likeliest next subword, again and again, until all have ended."""
        rows = {each: each.rows() for each in self.vectors}
        memory = self.encoded(source, rows)
        target = torch.full((len(source), 1), BEGIN)
        while target.shape[1] < LONGEST and not (target == END).any(dim=1).all():
            # Scores of the last subword alone: those of all take most of the time.
            last = self.decoded(target, memory, source == PAD, rows)[:, -1]
            best = F.linear(last, rows[self.output]).argmax(dim=1)
            target = torch.cat([target, best[:, None]], dim=1)
        return [list(takewhile(END.__ne__, line)) for line in target[:, 1:].tolist()]


def embedded(ids: Tensor, rows: Tensor) -> Tensor:
    """[B, T, D]: vectors times √D, and positions (Vaswani et al. 2017)."""
    vectors = math.sqrt(WIDTH) * F.embedding(ids, rows)
    return vectors + sinusoids(ids.shape[1], WIDTH, ids.device).to(vectors.dtype)


def learned_subwords(texts: Sequence[list[str]]) -> Tokenizer:
    """Byte-level BPE of both languages together."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SUBWORDS, special_tokens=MARKS, show_progress=False
    )
    tokenizer.train_from_iterator((line for text in texts for line in text), trainer)
    return tokenizer


def padded(lines: Sequence[list[int]]) -> Tensor:
    """int64 [B, T], padded at the end."""
    tensors = [torch.tensor(line) for line in lines]
    return pad_sequence(tensors, batch_first=True, padding_value=PAD)


def padded_batches(
    pairs: Pairs, generator: random.Random
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of sentences of like length, in random order, without end."""
    lengths = [len(target) for _, target in pairs]
    while True:
        for places in batches(lengths, BATCH, generator):
            sources, targets = zip(*(pairs[place] for place in places), strict=True)
            yield padded(sources), padded(targets)


def train(model: Translator, pairs: Pairs, updates: int, seed: int) -> None:
    """Train at a rate that rises linearly, and falls linearly."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser,
        max_lr=RATE,
        total_steps=updates,
        pct_start=RISE,
        anneal_strategy="linear",
        cycle_momentum=False,
    )
    precision = choose_precision("auto", CPU)
    read = islice(padded_batches(pairs, random.Random(seed)), updates)
    bar = progress_bar(iterable=read, total=updates, unit=" updates", desc="training")
    for source, target in bar:
        with autocast(CPU, precision):
            scores = model(source, target[:, :-1])
        loss = F.cross_entropy(
            scores.float().flatten(0, 1),
            target[:, 1:].flatten(),
            ignore_index=PAD,
            label_smoothing=SMOOTHING,
        )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        bar.set_postfix_str(f"loss {loss.item():.3f}", refresh=False)


def bleu_of(
    model: Translator,
    tokenizer: Tokenizer,
    sources: list[list[int]],
    references: list[str],
) -> float:
    """BLEU of greedy translations, with sacrebleu's own division into words."""
    translated = []
    for start in range(0, len(sources), BATCH):
        found = model.translate(padded(sources[start : start + BATCH]))
        translated += [each.strip() for each in tokenizer.decode_batch(found)]
    score: float = sacrebleu.corpus_bleu(translated, [references]).score
    return score


def run(options: Options) -> None:
    """Train, translate and score each row and seed that is not there."""
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "results.jsonl"
    done = []
    if results.exists():
        for line in results.read_text().splitlines():
            known = json.loads(line)
            done.append((known["row"], known["seed"], known["updates"]))
    texts = {
        name: list(read_lines(options.data / f"{name}.gz"))
        for name in ("train.en", "train.de", "val.en", "val.de")
    }
    tokenizer = learned_subwords([texts["train.en"], texts["train.de"]])
    pieces = [tokenizer.id_to_token(each) for each in range(tokenizer.get_vocab_size())]
    ids = {
        name: [[BEGIN, *each.ids, END] for each in tokenizer.encode_batch(text)]
        for name, text in texts.items()
    }
    pairs = list(zip(ids["train.en"], ids["train.de"], strict=True))
    for seed, name in product(options.seeds, options.rows):
        if (name, seed, options.updates) in done:
            continue
        torch.manual_seed(seed)
        model = Translator(ROWS[name], pieces).train()
        began = time.monotonic()
        train(model, pairs, options.updates, seed)
        minutes = (time.monotonic() - began) / 60
        bleu = bleu_of(model.eval(), tokenizer, ids["val.en"], texts["val.de"])
        result: dict[str, Any] = {
            "row": name,
            "seed": seed,
            "million_numbers": round(sum(each.kept for each in model.vectors) / 1e6, 3),
            "updates": options.updates,
            "minutes": round(minutes, 1),
            "bleu": round(bleu, 2),
        }
        with open(results, "a") as file:
            file.write(json.dumps(result) + "\n")
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    sys.exit(
        run_main(
            Options,
            run,
            None,
            prog="python -m experiments.translation",
            description="Translate with vectors of subwords kept in several ways.",
        )
    )
