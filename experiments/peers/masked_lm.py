"""Masked LM: a BERT with WordPiece subwords, trained by Hugging Face's Trainer; all
layers of a word's first subword.

    python -m experiments.peers.masked_lm TEXT… OUT --max-time 100m
    [--sentences FILE] [--seed 1] [--threads 2]

TEXT has one tokenised sentence a line; features of FILE go to OUT/features.h5.
Source: Devlin et al. 2019; the recipe for little compute (no dropout, one rise and fall
of the learning rate, logits of masked subwords alone) is that of Geiping and Goldstein
2023.
"""

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import BertWordPieceTokenizer
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, IterableDataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    BertTokenizerFast,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from elmoc.devices import has_bf16
from experiments.peers.common import (
    ENDLESS,
    Clock,
    Options,
    TextBlocks,
    run_peer,
    write_features,
)
from experiments.peers.pretrained import Encoder, division, pieces

VOCABULARY = 16384
# Blocks of text, 12 million words, of which the vocabulary is made.
VOCABULARY_BLOCKS = 1000
LAYERS = 4
SIZE = 256
HEADS = 4
INTERMEDIATE = 1024
# Subwords of a sentence that are read together.
POSITIONS = 128
# Of a batch, with padding.
BATCH_SUBWORDS = 4096
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.01
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BEGIN = SPECIAL.index("[CLS]")
END = SPECIAL.index("[SEP]")


def open_tokenizer(folder: Path) -> Any:
    """The tokenizer of a folder's vocab.txt, which keeps case and accents."""
    return BertTokenizerFast(
        str(folder / "vocab.txt"),
        do_lower_case=False,
        strip_accents=False,
        model_max_length=POSITIONS,
    )


class Batches(IterableDataset):
    """Batches of about equally many subwords, of sentences of like length, endless."""

    def __init__(self, text: TextBlocks, divide: Callable[[str], list[int]]) -> None:
        self._text = text
        self._divide = divide

    def __iter__(self) -> Iterator[tuple[list[dict[str, list[int]]], int]]:
        """Examples for the collator, and the words that they have."""
        for number, sentences in enumerate(self._text.mixed()):
            cuts = []
            for words in sentences:
                divided = [self._divide(word) for word in words]
                lengths = [len(ids) for ids in divided]
                for start, stop in pieces(lengths, POSITIONS - 2):
                    joined = list(chain.from_iterable(divided[start:stop]))
                    cuts.append((stop - start, joined))
            cuts.sort(key=lambda pair: len(pair[1]))
            made = []
            while cuts:
                size = max(1, BATCH_SUBWORDS // (len(cuts[-1][1]) + 2))
                made.append(cuts[-size:])
                del cuts[-size:]
            random.Random(number).shuffle(made)
            for batch in made:
                words = sum(words for words, _ in batch)
                yield [example(ids) for _, ids in batch], words


def example(ids: list[int]) -> dict[str, list[int]]:
    """A piece as the collator of transformers takes it."""
    special = [1] + [0] * len(ids) + [1]
    return {"input_ids": [BEGIN, *ids, END], "special_tokens_mask": special}


class ClockedTrainer(Trainer):
    """The Trainer with a learning rate by the clock, and logits of the masked subwords
    alone.
    """

    clock: Clock
    done: tuple[int, Any]

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """A linear rise and fall over the time."""
        self.lr_scheduler = LambdaLR(
            optimizer or self.optimizer, lambda _: max(self.clock.factor, 1e-4)
        )
        return self.lr_scheduler

    def get_train_dataloader(self) -> DataLoader:
        """The batches as they come."""
        return DataLoader(
            self.train_dataset, batch_size=None, collate_fn=self.data_collator
        )

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **_: Any
    ) -> Any:
        """The cross entropy of masked subwords."""
        self.clock.start()
        words = inputs.pop("words")
        labels = inputs.pop("labels")
        masked = labels != -100
        states = model.bert(**inputs).last_hidden_state[masked]  # [masked, size]
        loss = cross_entropy(model.cls(states).float(), labels[masked])
        self.done = words, loss.detach()
        return (loss, None) if return_outputs else loss


class ByClock(TrainerCallback):
    """Reports steps to the clock, and ends the training when its time is over."""

    trainer: ClockedTrainer

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step is done."""
        words, loss = self.trainer.done
        self.trainer.clock.step(words, loss.item())
        control.should_training_stop = self.trainer.clock.is_over


def train(texts: Sequence[Path], folder: Path, *, max_time: str, seed: int) -> None:
    """Make the vocabulary, train until the time is over, and write the model."""
    text = TextBlocks(texts, seed=seed)
    print("making the vocabulary", file=sys.stderr)
    learner = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    blocks = islice(text.blocks(), min(VOCABULARY_BLOCKS, len(text)))
    lines = (" ".join(words) for words in chain.from_iterable(blocks))
    learner.train_from_iterator(
        lines, vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False
    )
    learner.save_model(str(folder))
    tokenizer = open_tokenizer(folder)
    collator = DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=0.15, pad_to_multiple_of=8
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=SIZE,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=INTERMEDIATE,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        type_vocab_size=1,
    )
    options = TrainingArguments(
        output_dir=str(folder / "work"),
        use_cpu=True,
        bf16=has_bf16(torch.device("cpu")),
        seed=seed,
        max_steps=ENDLESS,
        learning_rate=LEARNING_RATE,
        weight_decay=WEIGHT_DECAY,
        adam_beta2=0.98,
        adam_epsilon=1e-6,
        max_grad_norm=1.0,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    by_clock = ByClock()
    trainer = ClockedTrainer(
        model=BertForMaskedLM(config),
        args=options,
        data_collator=lambda batch: {**collator(batch[0]), "words": batch[1]},
        train_dataset=Batches(text, division(tokenizer)),
        callbacks=[by_clock],
    )
    trainer.clock = Clock(max_time)
    by_clock.trainer = trainer
    trainer.train()
    trainer.model.save_pretrained(folder)


def encoder(folder: Path) -> Encoder:
    """The trained model; a word is its first subword."""
    model = BertModel.from_pretrained(folder, add_pooling_layer=False)
    return Encoder(model, open_tokenizer(folder), "first")


def train_and_write(options: Options) -> None:
    """Train, unless the folder has a model, and write the features of the sentences."""
    out = options.out
    if not (out / "config.json").exists():
        train(options.texts, out, max_time=options.max_time, seed=options.seed)
    if options.sentences is not None:
        attributes = {"peer": "masked_lm"}
        path = out / "features.h5"
        write_features(path, options.sentences, encoder(out).encode, attributes)


if __name__ == "__main__":
    what = "a masked language model: a BERT of Hugging Face transformers"
    run_peer("masked_lm", what, train_and_write)
