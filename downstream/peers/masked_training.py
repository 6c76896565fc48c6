"""Training of a masked LM: how does the Trainer of transformers read batches of sentences, and stop by the clock?"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, IterableDataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainerCallback, TrainingArguments

from downstream.peers.clock import Clock
from downstream.peers.command import Training
from downstream.peers.subwords import BEGIN, END, Subwords, cut
from downstream.peers.text import TextBlocks
from elmoc.devices import has_bf16

if TYPE_CHECKING:
    from downstream.peers.masked_lm import MaskedLmSettings

ENDLESS = 10**9
"""Steps of a training that the clock ends."""


class Batch(NamedTuple):
    """Sentences of like length; `position` is the block of text that comes after them."""

    examples: list[dict[str, list[int]]]
    words: int
    position: int


class Batches(IterableDataset[Batch]):
    """Batches of about equally many subwords, of sentences of like length, from block `first` on, without end."""

    def __init__(self, text: TextBlocks, subwords: Subwords, settings: "MaskedLmSettings", *, first: int) -> None:
        self._text, self._subwords, self._settings, self._first = text, subwords, settings, first

    def __iter__(self) -> Iterator[Batch]:
        for position, sentences in self._text.mixed(self._first):
            yield from self._batches(sentences, position)

    def _batches(self, sentences: list[list[str]], position: int) -> Iterator[Batch]:
        """Those of some sentences: of like lengths, in random order."""
        cuts = []
        for words in sentences:
            divided = [self._subwords[word] for word in words]
            for part in cut(list(map(len, divided)), most=self._settings.positions - 2):
                cuts.append((len(part), [each for index in part for each in divided[index]]))
        cuts.sort(key=lambda pair: len(pair[1]))
        made = []
        while cuts:
            number = max(1, self._settings.batch_subwords // (len(cuts[-1][1]) + 2))
            made.append(cuts[-number:])
            del cuts[-number:]
        random.Random(position).shuffle(made)
        for batch in made:
            yield Batch([_example(ids) for _, ids in batch], sum(words for words, _ in batch), position)


def _example(ids: list[int]) -> dict[str, list[int]]:
    return {"input_ids": [BEGIN, *ids, END], "special_tokens_mask": [1, *[0] * len(ids), 1]}


def new_model(settings: "MaskedLmSettings", vocabulary: int) -> BertForMaskedLM:
    """A BERT with random weights."""
    return BertForMaskedLM(
        BertConfig(
            vocab_size=vocabulary,
            hidden_size=settings.size,
            num_hidden_layers=settings.layers,
            num_attention_heads=settings.heads,
            intermediate_size=settings.intermediate_size,
            max_position_embeddings=settings.positions,
            hidden_dropout_prob=settings.dropout,
            attention_probs_dropout_prob=settings.dropout,
            type_vocab_size=1,
        )
    )


def trainer_arguments(settings: "MaskedLmSettings", folder: Path, seed: int) -> TrainingArguments:
    """The options of the Trainer: AdamW on the CPU, in bf16 where the processor computes it."""
    return TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        bf16=has_bf16(torch.device("cpu")),
        seed=seed,
        max_steps=ENDLESS,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        adam_beta2=0.98,
        adam_epsilon=1e-6,
        max_grad_norm=1.0,
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
        remove_unused_columns=False,
        ignore_data_skip=True,
    )


class MaskedTrainer(Trainer):
    """The Trainer with a learning rate by the clock, and logits of the masked subwords alone."""

    clock: Clock
    position = 0

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """A linear rise and fall over the time that is known."""
        self.lr_scheduler = LambdaLR(optimizer or self.optimizer, lambda _: max(self.clock.factor, 1e-4))
        return self.lr_scheduler

    def get_train_dataloader(self) -> DataLoader[Any]:
        """The batches as they come."""
        return DataLoader(self.train_dataset, batch_size=None, collate_fn=self.data_collator)

    def compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **_: Any) -> Any:
        """The cross entropy of masked subwords, from logits that are computed for these alone."""
        self.clock.start()
        words, self.position = inputs.pop("words"), inputs.pop("position")
        labels = inputs.pop("labels")
        masked = labels != -100
        states = model.bert(**inputs).last_hidden_state[masked]  # [masked, size]
        loss = cross_entropy(model.cls(states).float(), labels[masked])
        self.step_words, self.step_loss = words, loss
        return (loss, None) if return_outputs else loss


class ClockCallback(TrainerCallback):
    """Reports steps to the clock, ends the training when its time is over, and keeps what can be gone on from."""

    def __init__(self, training: Training, *, every: float) -> None:
        self._training, self._every = training, every
        self.trainer: MaskedTrainer

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A step is done."""
        clock, trainer = self._training.clock, self.trainer
        clock.record_step(trainer.step_words, trainer.step_loss.item())
        if clock.is_over:
            control.should_training_stop = True
        elif clock.is_due(self._every):
            control.should_save = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """A checkpoint is written: it is gone on from, and those before are removed."""
        name = f"checkpoint-{state.global_step}"
        self._training.keep(checkpoint=name, position=self.trainer.position)
        for other in Path(args.output_dir).glob("checkpoint-*"):
            if other.name != name:
                shutil.rmtree(other)
