"""Masked LM: a BERT with a WordPiece vocabulary, as Hugging Face transformers trains it; the first subword of words.

Source: Devlin et al. 2019; the recipe for little compute (no dropout, one rise and fall of the learning rate, logits of
masked words alone) is that of Geiping & Goldstein 2023. Sentences are read one by one, as in the probes.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from downstream.peers.command import CHECKPOINT_SECONDS, Peer, Training, run_peer
from downstream.peers.record import ADVICE, PeerRecord
from downstream.peers.subwords import BEGIN, END, MOST_SUBWORDS, PAD, SPECIAL, UNKNOWN, Subwords, pieces
from downstream.probe.settings import CommandSettings
from elmoc.errors import InputError
from elmoc.settings import setting

VOCABULARY_BLOCKS = 1000
"""Blocks of text (12 million words) of which the vocabulary is made."""
BATCH_SUBWORDS = 4096
"""Subwords, with padding, that are encoded together when features are dumped."""


@dataclass(frozen=True, kw_only=True)
class MaskedLmSettings(CommandSettings):
    """Sizes and training of the masked language model."""

    vocabulary: int = setting(16384, help="subwords", least=100, most=10**6)
    layers: int = setting(4, help="layers", least=1, most=100)
    size: int = setting(256, help="width of the layers", least=1, most=10**5)
    heads: int = setting(4, help="attention heads", least=1, most=1000)
    intermediate_size: int = setting(1024, help="width inside a layer", least=1, most=10**6)
    positions: int = setting(128, help="subwords of a sentence that are read together", least=2 * MOST_SUBWORDS + 2)
    dropout: float = setting(0.0, help="dropout", least=0, below=1)
    batch_subwords: int = setting(4096, help="subwords a batch, with padding", least=128, most=10**7)
    learning_rate: float = setting(1e-3, help="peak of the learning rate", above=0, most=1e3)
    weight_decay: float = setting(0.01, help="weight decay", least=0, most=1e3)


def train(training: Training) -> None:
    """Train with the Trainer of transformers until the time is over."""
    from transformers import DataCollatorForLanguageModeling, PrinterCallback

    from downstream.peers.masked_training import (
        Batch,
        Batches,
        ClockCallback,
        MaskedTrainer,
        new_model,
        trainer_arguments,
    )

    settings, record, folder = training.settings, training.record, training.directory
    if settings.size % settings.heads:
        raise InputError(f"--size {settings.size} is not a multiple of --heads {settings.heads}: change one of them")
    vocabulary = folder.work / "vocab.txt"
    if not vocabulary.exists():
        write_vocabulary(training, vocabulary)
    tokenizer = open_tokenizer(vocabulary, settings.positions)
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15, pad_to_multiple_of=8)

    def collated(batch: Batch) -> dict[str, Any]:
        return {**collator(batch.examples), "words": batch.words, "position": batch.position}

    trainer = MaskedTrainer(
        model=new_model(settings, len(tokenizer)),
        args=trainer_arguments(settings, folder.work, record.seed),
        data_collator=collated,
        train_dataset=Batches(training.text, subwords_of(tokenizer), settings, first=record.position),
        callbacks=[by_clock := ClockCallback(training, every=CHECKPOINT_SECONDS)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.clock, by_clock.trainer = training.clock, trainer
    left = folder.work / record.checkpoint
    trainer.train(resume_from_checkpoint=str(left) if record.checkpoint else None)
    trainer.model.save_pretrained(folder.model)
    tokenizer.save_pretrained(folder.model)


def write_vocabulary(training: Training, path: Path) -> None:
    """Train a cased WordPiece vocabulary on the beginning of the text as training reads it."""
    from tokenizers import BertWordPieceTokenizer

    def lines() -> Iterator[str]:
        for _, sentences in islice(training.text.blocks(), min(VOCABULARY_BLOCKS, len(training.text))):
            yield from (" ".join(words) for words in sentences)

    print("making the vocabulary", file=sys.stderr)
    tokenizer = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    tokenizer.train_from_iterator(
        lines(), vocab_size=training.settings.vocabulary, special_tokens=list(SPECIAL), show_progress=False
    )
    tokenizer.save_model(str(path.parent))


def open_tokenizer(vocabulary: Path, positions: int) -> Any:
    """The tokenizer of a vocabulary file."""
    from transformers import BertTokenizerFast

    return BertTokenizerFast(
        str(vocabulary),
        do_lower_case=False,
        strip_accents=False,
        model_max_length=positions,
        clean_up_tokenization_spaces=False,
    )


def subwords_of(tokenizer: Any) -> Subwords:
    """The subwords of words as a tokenizer divides them."""
    return Subwords(
        lambda word: tokenizer.backend_tokenizer.encode(word, add_special_tokens=False).ids, unknown=UNKNOWN
    )


class MaskedLm:
    """All layers of a trained BERT, the embeddings included, at the first subword of each word.

    A sentence of more subwords than it has positions is read in pieces that overlap by a quarter; see `pieces`.
    """

    def __init__(self, folder: Path, record: PeerRecord) -> None:
        from transformers import BertModel

        settings = MaskedLmSettings(**record.settings)
        try:
            self._model = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
            self._subwords = subwords_of(open_tokenizer(folder / "vocab.txt", settings.positions))
        except (OSError, ValueError) as error:
            raise InputError(f"{folder} cannot be read by transformers ({error}): {ADVICE}") from None
        self.layers, self.width = settings.layers + 1, settings.size
        self._most = settings.positions - 2

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """float32 [layers, n, width] for each sentence of n words."""
        states = [np.empty((self.layers, len(words), self.width), np.float32) for words in sentences]
        jobs = []
        for index, words in enumerate(sentences):
            divided = [self._subwords[word] for word in words]
            for piece in pieces(list(map(len, divided)), most=self._most, overlap=self._most // 4):
                jobs.append((index, piece, divided[piece.start : piece.stop]))
        jobs.sort(key=lambda job: sum(map(len, job[2])))
        while jobs:
            longest = sum(map(len, jobs[-1][2])) + 2
            taken = [jobs.pop() for _ in range(min(len(jobs), max(1, BATCH_SUBWORDS // longest)))]
            layers = self._read([divided for _, _, divided in taken], longest)
            for row, (index, piece, divided) in enumerate(taken):
                firsts = np.cumsum([1, *map(len, divided)])[piece.first - piece.start : piece.last - piece.start]
                states[index][:, piece.first : piece.last] = layers[:, row, firsts]
        return states

    def _read(self, batch: Sequence[Sequence[Sequence[int]]], longest: int) -> np.ndarray:
        """float32 [layers, sentences, longest, width]."""
        import torch

        ids = torch.full((len(batch), longest), PAD)
        mask = torch.zeros_like(ids)
        for row, divided in enumerate(batch):
            line = [BEGIN, *(each for word in divided for each in word), END]
            ids[row, : len(line)] = torch.tensor(line)
            mask[row, : len(line)] = 1
        with torch.inference_mode():
            output = self._model(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        return torch.stack(output.hidden_states).numpy()


PEER = Peer(
    name="masked_lm",
    what="a masked language model: a BERT of Hugging Face transformers",
    settings=MaskedLmSettings(),
    packages=("transformers", "tokenizers", "accelerate"),
    dump_packages=("transformers",),
    train=train,
    load=MaskedLm,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m downstream.peers.masked_lm` with `arguments`, by default those of the process."""
    return run_peer(PEER, arguments)


if __name__ == "__main__":
    sys.exit(main())
